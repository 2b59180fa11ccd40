package record_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

func runID(tb testing.TB, n int) marchwarden.TraceID {
	tb.Helper()
	id, err := marchwarden.ParseTraceID(fmt.Sprintf("0198c0de-7a3b-7c11-9d55-%012x", n))
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

// begin begins a run that came in so long ago, and goes on until its writer is closed.
func begin(tb testing.TB, p *place, n int, ago time.Duration, steps ...trace.Step) *trace.Writer {
	tb.Helper()
	w, err := p.traces.Create(runID(tb, n))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = w.Close() })
	start := &trace.Start{Format: trace.Format, TraceID: runID(tb, n), StartedAt: time.Now().Add(-ago)}
	for _, s := range append([]trace.Step{start}, steps...) {
		if err := w.Append(s); err != nil {
			tb.Fatal(err)
		}
	}
	return w
}

func end(tb testing.TB, w *trace.Writer) {
	tb.Helper()
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
}

// orphan is a blob that no trace mentions and that was last used so long ago.
func orphan(tb testing.TB, p *place, content string, ago time.Duration) blob.Ref {
	tb.Helper()
	ref, err := p.blobs.Put(context.Background(), []byte(content))
	if err != nil {
		tb.Fatal(err)
	}
	date(tb, time.Now().Add(-ago), p.blob(ref))
	return ref
}

// What a run that goes on may have used since it came in stays, however long ago that
// is and although no trace mentions it yet.
func TestCollectSparesWhatARunMayRelyOn(t *testing.T) {
	p := open(t, t.TempDir())
	w := begin(t, p, 1, 5*time.Hour)
	used, old := orphan(t, p, "used since", 4*time.Hour), orphan(t, p, "used before", 7*time.Hour)
	if _, c := collect(t, p, record.CollectOptions{}); c.Blobs != 1 {
		t.Errorf("collected %+v", c)
	}
	if _, err := os.Stat(p.blob(used)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.blob(old)); err == nil {
		t.Error("what nobody can rely on is still there")
	}
	end(t, w)
	if _, c := collect(t, p, record.CollectOptions{}); c.Blobs != 1 {
		t.Errorf("when the run has ended, collected %+v", c)
	}
}

// A rihla whose investigation is not known stays while something goes on that may be it.
func TestCollectSparesRihlasOfWhatGoesOn(t *testing.T) {
	p := open(t, t.TempDir())
	rihla, err := p.traces.Create(runID(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := rihla.Append(&trace.Start{Format: trace.Format, TraceID: runID(t, 1), PartOf: true, StartedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	end(t, rihla)
	date(t, time.Now().Add(-40*day), p.trace(runID(t, 1)))
	w := begin(t, p, 2, time.Minute)
	if plan, c := collect(t, p, record.CollectOptions{Older: 30 * day}); c.Traces != 0 || plan.Running != 1 {
		t.Errorf("plan %+v, collected %+v", plan, c)
	}
	end(t, w)
	if _, c := collect(t, p, record.CollectOptions{Older: 30 * day}); c.Traces != 1 {
		t.Errorf("when it has ended, collected %+v", c)
	}
}

// late is a shelf before whose removals something happens.
type late struct {
	*dir.Store
	before func()
}

func (l late) Remove(ctx context.Context, refs []blob.Ref, before time.Time, needed func() (map[blob.Ref]bool, error)) ([]blob.File, error) {
	l.before()
	return l.Store.Remove(ctx, refs, before, needed)
}

// What a trace names at the last moment stays: that is looked at when nobody can write.
func TestCollectLooksAgainUnderTheLock(t *testing.T) {
	p := open(t, t.TempDir())
	ref := orphan(t, p, "named at the last moment", 2*time.Hour)
	home := p.home()
	home.Shelf = late{p.blobs, func() { end(t, begin(t, p, 1, time.Minute, &trace.Evidence{ContentHash: ref})) }}
	plan, err := home.PlanCollection(t.Context(), record.CollectOptions{Now: time.Now()})
	if err != nil || plan.Blobs != 1 {
		t.Fatal(plan, err)
	}
	if c, err := plan.Run(t.Context()); c.Blobs != 0 || err != nil {
		t.Errorf("collected %+v, %v", c, err)
	}
}

// A hash is found wherever it stands in a trace, also where what is read at once ends.
func TestCollectFindsAHashAcrossReads(t *testing.T) {
	const piece = 64 << 10
	p := open(t, t.TempDir())
	for n, before := range []int{1, 3, 6, 7, 8, 40, 70} { // bytes of it that are read first
		ref := orphan(t, p, fmt.Sprint("text ", n), 0)
		lines := func(id int, pad int) []byte {
			end(t, begin(t, p, id, time.Hour, &trace.Message{Head: trace.Head{Decision: strings.Repeat("x", pad)}}, &trace.Evidence{ContentHash: ref}))
			return read(t, p.trace(runID(t, id)))
		}
		at := func(data []byte) int { return bytes.Index(data, []byte(ref.String())) }
		trial := lines(100+n, 1000)
		if err := p.traces.Remove(runID(t, 100+n)); err != nil {
			t.Fatal(err)
		}
		pad := 1000 + piece - before - at(trial)
		got := piece - at(lines(n, pad)) - before // times have as many digits as they need
		for ; got != 0; got = piece - at(lines(n, pad)) - before {
			pad += got
			if err := p.traces.Remove(runID(t, n)); err != nil {
				t.Fatal(err)
			}
		}
		date(t, time.Now().Add(-2*time.Hour), p.blob(ref))
	}
	if _, c := collect(t, p, record.CollectOptions{}); c.Blobs != 0 {
		t.Errorf("collected %+v", c)
	}
}

// A rihla belongs to its investigation from the moment when it is sent.
func TestParts(t *testing.T) {
	log := &trace.Log{Steps: []trace.Step{
		&trace.Start{TraceID: runID(t, 9), Investigation: &trace.Investigation{}},
		&trace.Rihla{Number: 1, TraceID: runID(t, 1)}, &trace.RihlaUnderWay{Number: 2, TraceID: runID(t, 2)}, &trace.RihlaComplete{Number: 3, TraceID: runID(t, 3)},
		&trace.RihlaComplete{Number: 1, TraceID: runID(t, 1)}, &trace.Rihla{Number: 4}, &trace.Rihla{Number: 5, TraceID: runID(t, 9)},
	}}
	if got, want := run.FactsOf(log.Steps).Parts, []marchwarden.TraceID{runID(t, 1), runID(t, 2), runID(t, 3)}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A trace under another's name is damage; a write that is under way is none.
func TestCheckOfNames(t *testing.T) {
	p := open(t, t.TempDir())
	end(t, begin(t, p, 1, time.Minute))
	if err := os.Rename(p.trace(runID(t, 1)), p.trace(runID(t, 2))); err != nil {
		t.Fatal(err)
	}
	writing := p.blob(orphan(t, p, "x", 0)) + ".ABCDEF.tmp"
	write(t, writing, []byte("half"))
	r := check(t, p, record.CheckOptions{})
	if len(r.Findings) != 1 || r.Findings[0].Kind != record.DamagedTrace || !strings.Contains(r.Findings[0].Problem, "another run, "+runID(t, 1).String()) {
		t.Errorf("%s", describe(r))
	}
	if _, err := os.Stat(writing); err != nil || r.Leftovers != 0 {
		t.Errorf("%d leftovers, %v", r.Leftovers, err)
	}
}

// A run that somebody went on with since the plan was made stays.
func TestCollectSparesWhatWentOnSince(t *testing.T) {
	p := open(t, t.TempDir())
	end(t, begin(t, p, 1, time.Minute))
	date(t, time.Now().Add(-40*day), p.trace(runID(t, 1)))
	plan, err := p.home().PlanCollection(t.Context(), record.CollectOptions{Now: time.Now(), Older: 30 * day})
	if err != nil || len(plan.Families) != 1 {
		t.Fatal(plan, err)
	}
	w, _, err := p.traces.Append(runID(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(&trace.Resume{}); err != nil {
		t.Fatal(err)
	}
	end(t, w)
	if c, err := plan.Run(t.Context()); c.Traces != 0 || err != nil {
		t.Errorf("collected %+v, %v", c, err)
	}
}
