// Package resumetest keeps one run for a test: it cuts the record off after any line,
// fills the disk under it, and holds what became of it to what every finished run
// keeps. How a run is made and made again is the tests' own affair.
package resumetest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// ID is the id of the run.
const ID = "00000000-0000-7000-8000-000000000001"

// TheID is ID, for the maker of the run.
func TheID() marchwarden.TraceID {
	id, err := marchwarden.ParseTraceID(ID)
	if err != nil {
		panic(err)
	}
	return id
}

// T is a test, or one case of a property.
type T interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// Place is where the run is kept. A test may put another store into it, and closes
// Traces if it makes many.
type Place struct {
	Dir    string
	Traces *trace.Dir
	Blobs  blob.Store
	now    func() time.Time
	torn   int // bytes of a line that the trace ended in when it was cut
}

// Open makes a place with nothing in it.
func Open(t T, dir string, now func() time.Time) Place {
	t.Helper()
	traces, err := trace.OpenDir(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	return Place{Dir: dir, Traces: traces, Blobs: blob.NewMem(), now: now}
}

// Raw is the trace of the run.
func (p Place) Raw(t T) []byte {
	t.Helper()
	data, err := p.Traces.Text(TheID())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Log is the trace of the run, read.
func (p Place) Log(t T) *trace.Log {
	t.Helper()
	log, err := p.Traces.Load(TheID())
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// Cut is a place with the first k lines of this one's trace, so many bytes of the
// next, and the blobs that those lines name.
func (p Place) Cut(t T, dir string, k, torn int) Place {
	t.Helper()
	lines := bytes.SplitAfter(p.Raw(t), []byte("\n"))
	kept := bytes.Join(lines[:k], nil)
	if k < len(lines) {
		kept = append(kept, lines[k][:min(torn, max(0, len(lines[k])-1))]...)
	}
	c := Open(t, dir, p.now)
	if err := os.WriteFile(filepath.Join(dir, ID+".jsonl"), kept, 0o600); err != nil {
		t.Fatal(err)
	}
	log := c.Log(t)
	c.torn = int(log.Torn)
	for _, s := range log.Steps {
		for _, ref := range trace.Refs(s) {
			content, err := p.Blobs.Get(context.Background(), ref)
			if err == nil {
				_, err = c.Blobs.Put(context.Background(), content)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// Again runs a record once more: want is what it holds, got what came of it.
type Again func(context.Context, *trace.Log, blob.Store) (want, got []byte, err error)

// Whole holds a finished run to what every one keeps: its trace is closed and was
// begun once, its blobs are there, its rerun gives the bytes that were returned, and
// it fits the budget of all its parts.
func (p Place) Whole(t T, res *marchwarden.Result, again Again) {
	t.Helper()
	log := p.Log(t)
	// A run that had ended has nothing to write, and leaves alone what was torn after it.
	if log.Complete() == nil || log.Torn != 0 && int(log.Torn) != p.torn {
		t.Fatalf("the trace is not closed: %d torn bytes", log.Torn)
	}
	for i, s := range log.Steps {
		if _, ok := s.(*trace.Start); ok && i > 0 {
			t.Fatalf("step %d begins the run anew", i+1)
		}
	}
	if err := replay.CheckBlobs(context.Background(), log, p.Blobs); err != nil {
		t.Fatal(err)
	}
	want, got, err := again(context.Background(), log, p.Blobs)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.Raw(t))
	}
	if returned := Encode(t, res); !bytes.Equal(want, got) || !bytes.Equal(want, returned) {
		t.Fatalf("the rerun differs\nrecorded %s\nrerun    %s\nreturned %s\n%s", want, got, returned, p.Raw(t))
	}
	start, err := log.Start()
	if err != nil {
		t.Fatal(err)
	}
	limits := start.Limits
	for _, e := range start.Extended {
		limits = limits.Plus(e.Limits())
	}
	if use := res.CostMetadata; (use.TokensUsed > limits.TokenBudget) != use.OverBudget || use.IterationsRun > limits.MaxIterations || use.SourcesRead > limits.MaxSources {
		t.Fatalf("%+v is over %+v", use, limits)
	}
}

// Encode is a result as it is recorded.
func Encode(t T, res *marchwarden.Result) []byte {
	t.Helper()
	out, err := marchwarden.EncodeResult(res)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// FullDisk is a store on a disk that has room for so many more objects.
type FullDisk struct {
	blob.Store
	Room atomic.Int64
}

// Put fails once there is no room.
func (f *FullDisk) Put(ctx context.Context, content []byte) (blob.Ref, error) {
	if f.Room.Add(-1) < 0 {
		return blob.Ref{}, marchwarden.Wrap(syscall.ENOSPC, marchwarden.CodeUnavailable, "store")
	}
	return f.Store.Put(ctx, content)
}

// Memory is a folder for a test, in memory where there is such a place: a trace is
// synced line by line.
func Memory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "marchwarden")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Checks sets how many cases rapid tries in this test, unless its own flag does.
func Checks(t *testing.T, n int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	was := f.Value.String()
	if was != f.DefValue {
		return
	}
	if err := f.Value.Set(fmt.Sprint(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(was) })
}
