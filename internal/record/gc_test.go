package record_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

const day = 24 * time.Hour

func collect(tb testing.TB, p *place, o record.CollectOptions) (*record.Plan, record.Collected) {
	tb.Helper()
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	plan, err := p.home().PlanCollection(context.Background(), o)
	if err != nil {
		tb.Fatal(err)
	}
	c, err := plan.Run(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return plan, c
}

// date makes files look as if they were last written at a time.
func date(tb testing.TB, at time.Time, paths ...string) {
	tb.Helper()
	for _, path := range paths {
		if err := os.Chtimes(path, at, at); err != nil {
			tb.Fatal(err)
		}
	}
}

// age makes all of a family look old.
func age(tb testing.TB, p *place, run *run.Run, by time.Duration) {
	tb.Helper()
	at := time.Now().Add(-by)
	for _, r := range run.All() {
		date(tb, at, p.trace(r.ID))
	}
	for _, ref := range run.Refs() {
		date(tb, at, p.blob(ref))
	}
}

func kept(tb testing.TB, p *place) []marchwarden.TraceID {
	tb.Helper()
	ids, err := p.traces.List()
	if err != nil {
		tb.Fatal(err)
	}
	return ids
}

func TestCollectOrphansOnly(t *testing.T) {
	p, runs := investigated(t, questions[:2]...)
	old, err := p.blobs.Put(t.Context(), []byte("an old orphan"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.blobs.Put(t.Context(), []byte("a young orphan")); err != nil {
		t.Fatal(err)
	}
	date(t, time.Now().Add(-2*time.Hour), p.blob(old))
	for _, r := range runs {
		age(t, p, r, 400*day)
	}
	traces := len(kept(t, p))
	plan, c := collect(t, p, record.CollectOptions{})
	if c.Blobs != 1 || c.Traces != 0 || c.Bytes == 0 || plan.Blobs != 1 || plan.Spared == 0 || len(kept(t, p)) != traces {
		t.Errorf("plan %+v, collected %+v", plan, c)
	}
	if r := check(t, p, record.CheckOptions{}); len(r.Findings) != 0 {
		t.Errorf("afterwards:\n%s", describe(r))
	}
}

func TestCollectByAge(t *testing.T) {
	p, runs := investigated(t, questions[:3]...)
	age(t, p, runs[0], 40*day)
	age(t, p, runs[2], 20*day)
	plan, c := collect(t, p, record.CollectOptions{Older: 30 * day})
	if len(plan.Families) != 1 || plan.Families[0].IDs[0] != runs[0].ID || c.Traces != len(runs[0].All()) || c.Families != 1 || c.Blobs == 0 {
		t.Fatalf("plan %+v, collected %+v", plan, c)
	}
	for _, run := range runs[0].All() {
		if slices.Contains(kept(t, p), run.ID) {
			t.Errorf("%s is still there", run.ID)
		}
	}
	for _, run := range runs[1:] {
		if err := stands(p, run.ID); err != nil {
			t.Error(err)
		}
	}
	if r := check(t, p, record.CheckOptions{}); len(r.Findings) != 0 {
		t.Errorf("afterwards:\n%s", describe(r))
	}
}

// What somebody works on stays, with its family; so do rihlas that may be part of
// it, and traces that cannot be read with all that they mention.
func TestCollectSparesWhatIsAliveOrUnreadable(t *testing.T) {
	p, runs := investigated(t, questions[:3]...)
	for _, r := range runs {
		age(t, p, r, 40*day)
	}
	w, _, err := p.traces.Append(runs[0].Rihlas[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	data := read(t, p.trace(runs[1].ID))
	half, mark := len(data)/2, []byte(`"decision":"`)
	data[half+bytes.Index(data[half:], mark)+len(mark)] ^= 1 // a letter, not a hash
	write(t, p.trace(runs[1].ID), data)
	age(t, p, runs[1], 40*day)
	plan, _ := collect(t, p, record.CollectOptions{Older: day})
	if len(plan.Families) != 1 || plan.Families[0].IDs[0] != runs[2].ID || plan.Running < 1 || plan.Sealed < 1 {
		t.Errorf("plan %+v", plan)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := stands(p, runs[0].ID); err != nil {
		t.Error(err)
	}
	for _, ref := range runs[1].Refs() {
		if _, err := p.blobs.Stat(t.Context(), ref); err != nil {
			t.Errorf("mentioned by a damaged trace: %v", err)
		}
	}
}

// A run that is asked for by name goes with its rihlas, young and unreadable as it
// may be, and nothing else does.
func TestCollectByName(t *testing.T) {
	p, runs := investigated(t, questions[:3]...)
	home, now := p.home(), time.Now()
	plan := func(ids ...marchwarden.TraceID) (*record.Plan, error) {
		return home.PlanCollection(t.Context(), record.CollectOptions{Now: now, Runs: ids})
	}
	unknown, err := marchwarden.ParseTraceID("01980000-0000-7000-8000-000000000001")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan(unknown); marchwarden.CodeOf(err) != marchwarden.CodeNotFound {
		t.Errorf("a run that is not there: %v", err)
	}
	if _, err := plan(runs[0].Rihlas[0].ID); marchwarden.CodeOf(err) != marchwarden.CodeInvalid || !strings.Contains(marchwarden.HintOf(err), "--run "+runs[0].ID.String()) {
		t.Errorf("a rihla: %v", err)
	}
	w, _, err := p.traces.Append(runs[0].Rihlas[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan(runs[0].ID); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
		t.Errorf("a run that goes on: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// The second cannot be read, and mentions the third.
	data := append(read(t, p.trace(runs[1].ID)), "damage "+runs[2].ID.String()+"\n{}\n"...)
	write(t, p.trace(runs[1].ID), data)
	both, err := plan(runs[0].ID, runs[1].ID, runs[0].ID)
	if err != nil || len(both.Families) != 2 {
		t.Fatalf("%+v, %v", both, err)
	}
	if _, err := both.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := kept(t, p)
	for _, id := range []marchwarden.TraceID{runs[0].ID, runs[0].Rihlas[0].ID, runs[1].ID} {
		if slices.Contains(left, id) {
			t.Errorf("%s is still there", id)
		}
	}
	if err := stands(p, runs[2].ID); err != nil {
		t.Error(err)
	}
	if r := check(t, p, record.CheckOptions{}); len(r.Findings) != 0 {
		t.Errorf("afterwards:\n%s", describe(r))
	}
}

// An investigation that names runs which it did not send, as one that was imported may,
// does not take them along; nor do they go before it.
func TestCollectLeavesWhatIsOnlyNamed(t *testing.T) {
	p, runs := investigated(t, questions[:2]...)
	own, rihla := runs[0], runs[1].Rihlas[0]
	thief, err := marchwarden.ParseTraceID("01980000-0000-7000-8000-000000000001")
	if err != nil {
		t.Fatal(err)
	}
	w, err := p.traces.Create(thief)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []trace.Step{
		&trace.Start{Format: trace.Format, TraceID: thief, Investigation: &trace.Investigation{}},
		&trace.RihlaComplete{Number: 1, TraceID: own.ID}, &trace.RihlaComplete{Number: 2, TraceID: rihla.ID},
	} {
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		age(t, p, r, 40*day)
	}
	plan, err := p.home().PlanCollection(t.Context(), record.CollectOptions{Now: time.Now(), Runs: []marchwarden.TraceID{thief}})
	if err != nil || len(plan.Families) != 1 || len(plan.Families[0].IDs) != 1 {
		t.Errorf("with it go %+v, %v", plan.Families, err)
	}
	if plan, _ := collect(t, p, record.CollectOptions{Older: 30 * day}); len(plan.Families) != 1 || plan.Families[0].IDs[0] != runs[1].ID {
		t.Errorf("by age go %+v", plan.Families)
	}
	for _, id := range []marchwarden.TraceID{own.ID, own.Rihlas[0].ID, rihla.ID} {
		if !slices.Contains(kept(t, p), id) {
			t.Errorf("%s went before what names it", id)
		}
	}
	if err := stands(p, own.ID); err != nil {
		t.Error(err)
	}
	write(t, p.blob(own.Log.Complete().Result), []byte("damaged"))
	r := check(t, p, record.CheckOptions{})
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Remedy, "--run "+own.ID.String()) {
		t.Errorf("what to remove:\n%s", describe(r))
	}
}

// Somebody goes on with a run between the plan and its execution.
func TestCollectFindsOutAgainWhatIsNeeded(t *testing.T) {
	p, runs := investigated(t, questions[:2]...)
	for _, r := range runs {
		age(t, p, r, 40*day)
	}
	plan, err := p.home().PlanCollection(t.Context(), record.CollectOptions{Now: time.Now(), Older: day})
	if err != nil || len(plan.Families) != 2 {
		t.Fatalf("%+v, %v", plan, err)
	}
	w, _, err := p.traces.Append(runs[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c, err := plan.Run(t.Context())
	if err != nil || c.Families != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := stands(p, runs[0].ID); err != nil {
		t.Error(err)
	}
}

// Runs begin, use what earlier ones had stored and nobody needs any more, and end,
// while collections run one after another.
func TestCollectBesideRuns(t *testing.T) {
	path := t.TempDir()
	enough := int64(12)
	if full() {
		enough = 120
	}
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	var group errgroup.Group
	var ran, collected atomic.Int64
	tried := func() bool { return ctx.Err() != nil || ran.Load() >= enough && collected.Load() >= enough }
	for w := range 3 {
		p := open(t, path)
		group.Go(func() error {
			for n := 0; !tried(); n++ {
				if err := oneRun(p, w, n); err != nil {
					return err
				}
				ran.Add(1)
			}
			return nil
		})
	}
	for range 2 {
		p := open(t, path)
		group.Go(func() error {
			for !tried() {
				plan, err := p.home().PlanCollection(context.Background(), record.CollectOptions{Now: time.Now(), Older: 30 * day})
				if err != nil {
					return err
				}
				c, err := plan.Run(context.Background())
				collected.Add(int64(c.Blobs))
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if r := check(t, open(t, path), record.CheckOptions{}); len(r.Findings) != 0 {
		t.Errorf("afterwards:\n%s", describe(r))
	}
	t.Logf("%d runs, %d blobs collected", ran.Load(), collected.Load())
	if ran.Load() == 0 || collected.Load() == 0 {
		t.Error("nothing was tried")
	}
}

// oneRun is a run that stores what the one before it stored, whose trace it removes
// and whose blobs it makes look old.
func oneRun(p *place, w, n int) error {
	id := func(n int) marchwarden.TraceID {
		id, err := marchwarden.ParseTraceID(fmt.Sprintf("01980000-0000-7000-8%03d-%012d", w, n))
		if err != nil {
			panic(err)
		}
		return id
	}
	old := time.Now().Add(-3 * time.Hour)
	if n > 0 {
		if err := p.traces.Remove(id(n - 1)); err != nil {
			return err
		}
	}
	var content [][]byte
	for i := range 4 {
		content = append(content, fmt.Appendf(nil, "page %d of writer %d", i, w))
		_ = os.Chtimes(p.blob(blob.Of(content[i])), old, old) // if it is there
	}
	time.Sleep(2 * time.Millisecond) // lets collections see it so
	out, err := p.traces.Create(id(n))
	if err != nil {
		return err
	}
	defer out.Close()
	if err := out.Append(&trace.Start{Format: trace.Format, TraceID: id(n), StartedAt: time.Now()}); err != nil {
		return err
	}
	for _, c := range content {
		ref, err := p.blobs.Put(context.Background(), c)
		if err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
		if err := out.Append(&trace.FetchComplete{RawHash: ref, ContentHash: ref}); err != nil {
			return err
		}
	}
	for _, c := range content {
		if _, err := p.blobs.Stat(context.Background(), blob.Of(c)); err != nil {
			return fmt.Errorf("a run misses what it has stored: %w", err)
		}
	}
	return nil
}

// stock is investigations that can be put into a home again and again.
type stock struct {
	runs  []*run.Run
	lines map[marchwarden.TraceID]string
	blobs map[blob.Ref][]byte
}

func newStock(t *testing.T) stock {
	p, runs := investigated(t, questions...)
	s := stock{runs: runs, lines: map[marchwarden.TraceID]string{}, blobs: map[blob.Ref][]byte{}}
	for _, run := range runs {
		for _, r := range run.All() {
			s.lines[r.ID] = string(read(t, p.trace(r.ID)))
		}
		for _, ref := range run.Refs() {
			content, err := p.blobs.Get(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			s.blobs[ref] = content
		}
	}
	return s
}

// After any sequence of runs, interruptions and collections every trace that is
// kept has all it needs; finished ones verify and rerun to the same bytes.
func TestAnySequenceOfRunsAndCollections(t *testing.T) {
	checks := "4"
	switch os.Getenv("MARCHWARDEN_TEST_FULL") {
	case "":
	case "torture":
		checks = "1000"
	default:
		checks = "15"
	}
	if err := flag.Set("rapid.checks", checks); err != nil {
		t.Fatal(err)
	}
	s := newStock(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := open(t, t.TempDir())
		for range rapid.IntRange(2, 10).Draw(rt, "operations") {
			switch rapid.SampledFrom([]string{"run", "run", "interrupt", "collect"}).Draw(rt, "operation") {
			case "run":
				s.enact(t, rt, p, false)
			case "interrupt":
				s.enact(t, rt, p, true)
			case "collect":
				collect(t, p, record.CollectOptions{
					Older: time.Duration(rapid.IntRange(0, 20).Draw(rt, "days")) * day,
				})
			}
		}
		collect(t, p, record.CollectOptions{Older: 10 * day})
		for _, f := range check(t, p, record.CheckOptions{}).Findings {
			rt.Fatalf("%s %s: %s", f.Kind, f.Object, f.Problem)
		}
		for _, id := range kept(t, p) {
			log, err := p.traces.Load(id)
			if err != nil {
				rt.Fatal(err)
			}
			if log.Complete() == nil {
				continue
			}
			if err := stands(p, id); err != nil {
				rt.Fatalf("%s: %v", id, err)
			}
			for _, part := range run.FactsOf(log.Steps).Parts {
				if _, err := p.traces.Load(part); err != nil {
					rt.Fatalf("a rihla of %s: %v", id, err)
				}
			}
		}
	})
}

// enact puts a run into a home as a process would: blobs first, then its traces. One
// that is interrupted has only the beginning of the investigation's.
func (s stock) enact(t *testing.T, rt *rapid.T, p *place, interrupted bool) {
	run := rapid.SampledFrom(s.runs).Draw(rt, "run")
	for _, ref := range run.Refs() {
		if _, err := p.blobs.Put(t.Context(), s.blobs[ref]); err != nil {
			rt.Fatal(err)
		}
	}
	for _, r := range run.All() {
		text := s.lines[r.ID]
		if interrupted && r == run {
			lines := strings.SplitAfter(strings.TrimSpace(text), "\n")
			whole := rapid.IntRange(0, len(lines)-1).Draw(rt, "whole lines")
			text = strings.Join(lines[:whole], "") + lines[whole][:rapid.IntRange(0, len(lines[whole])-1).Draw(rt, "torn")]
		}
		write(t, p.trace(r.ID), []byte(text))
	}
	age(t, p, run, time.Duration(rapid.IntRange(0, 20).Draw(rt, "days ago"))*day)
}

// cutOff is a shelf from which so many blobs are removed before it all ends.
type cutOff struct {
	record.Shelf
	after int
}

var errCutOff = errors.New("cut off")

func (c cutOff) Remove(ctx context.Context, refs []blob.Ref, before time.Time, needed func() (map[blob.Ref]bool, error)) ([]blob.File, error) {
	gone, err := c.Shelf.Remove(ctx, refs[:min(c.after, len(refs))], before, needed)
	return gone, errors.Join(err, errCutOff)
}

// Whatever ends a collection, what is left is whole, and the next one goes on.
func TestCollectionThatIsCutOff(t *testing.T) {
	p, runs := investigated(t, questions[:3]...)
	age(t, p, runs[0], 40*day)
	age(t, p, runs[1], 40*day)
	// Among the traces: the investigation is gone, its rihlas are still there.
	if err := p.traces.Remove(runs[0].ID); err != nil {
		t.Fatal(err)
	}
	if r := check(t, p, record.CheckOptions{}); len(r.Findings) != 0 {
		t.Errorf("without the investigation:\n%s", describe(r))
	}
	// Among the blobs.
	home := p.home()
	home.Shelf = cutOff{p.blobs, 3}
	plan, err := home.PlanCollection(t.Context(), record.CollectOptions{Now: time.Now(), Older: 30 * day})
	if err != nil {
		t.Fatal(err)
	}
	c, err := plan.Run(t.Context())
	if !errors.Is(err, errCutOff) || c.Blobs != 3 || c.Traces != len(runs[0].Rihlas)+len(runs[1].All()) {
		t.Fatalf("%+v, %v", c, err)
	}
	if r := check(t, p, record.CheckOptions{}); len(r.Findings) != 0 {
		t.Errorf("cut off:\n%s", describe(r))
	}
	if _, c := collect(t, p, record.CollectOptions{}); c.Blobs != plan.Blobs-3 {
		t.Errorf("the next one removed %d blobs of %d", c.Blobs, plan.Blobs-3)
	}
	if err := stands(p, runs[2].ID); err != nil {
		t.Error(err)
	}
}
