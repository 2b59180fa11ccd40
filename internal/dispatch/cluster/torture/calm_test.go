//go:build linux

package torture

import (
	"context"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/resumetest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// calm is an undisturbed run, in one process.
type calm struct {
	essence string
	paid    map[string]int
	lines   int
}

// undisturbed makes the run of an errand, under its own id, which is in what models are
// told.
func undisturbed(t testing.TB, traces *trace.Dir, e errand) calm {
	t.Helper()
	id, c := e.ID, &till{}
	blobs := blob.NewMem()
	lab := researcher.Lab{Traces: traces, Blobs: blobs, Now: time.Now, NewID: newID}
	res, err := research(marchwarden.WithTraceID(context.Background(), id), lab, c.pay(id), marchwarden.Request{Question: question(e.Plot)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	what, err := essence(res)
	if err != nil {
		t.Fatal(err)
	}
	log, err := traces.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	return calm{essence: string(what), paid: c.paid[id], lines: len(log.Steps)}
}

func calmFolder(t testing.TB) *trace.Dir {
	t.Helper()
	traces, err := trace.OpenDir(resumetest.Memory(t), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = traces.Close() })
	return traces
}

// The world that the other tests break is one in which there is something to break.
func TestWorld(t *testing.T) {
	traces := calmFolder(t)
	began := time.Now()
	one, two := undisturbed(t, traces, errand{newID(), 1}), undisturbed(t, traces, errand{newID(), 2})
	t.Logf("a run has %d lines and %d calls, and takes %v", one.lines, len(one.paid), time.Since(began)/2)
	if one.essence == two.essence || len(one.paid) < 6 {
		t.Errorf("two plots have the answer %s after %d calls", one.essence, len(one.paid))
	}
	for key, n := range one.paid {
		if n != 1 {
			t.Errorf("%s is asked %d times", key, n)
		}
	}
}
