package register

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

func id(n int) marchwarden.TraceID {
	out, err := marchwarden.ParseTraceID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n))
	if err != nil {
		panic(err)
	}
	return out
}

// What is over is dropped from the file when it is most of it, under the eyes of others,
// and what waits or is held stays so.
func TestCompact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue")
	one, two := OpenQueues(path), OpenQueues(path)
	const all = 2010
	for n := range all {
		if err := one.book.Append(true, func() (any, error) {
			return &Pointer{Task: id(n), Record: id(n), Investigation: id(n), Queue: "web", Priority: dispatch.Normal}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := two.Refresh(); err != nil {
		t.Fatal(err)
	}
	for n := range all - 5 {
		if p := one.Next("web"); p == nil || p.Task != id(n) {
			t.Fatalf("the %d. is %+v", n, p)
		}
		if err := one.Done(id(n)); err != nil {
			t.Fatal(err)
		}
	}
	held := one.Next("web")
	if err := one.Compact(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 4096 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
	if err := one.Refresh(); err != nil {
		t.Fatal(err)
	}
	if p := one.Next("web"); p == nil || p.Task == held.Task {
		t.Errorf("what is held is taken again: %+v", p)
	}
	if err := two.Refresh(); err != nil {
		t.Fatal(err)
	}
	for n := all - 5; n < all; n++ {
		if p := two.Next("web"); p == nil || p.Task != id(n) {
			t.Errorf("the %d. is %+v", n, p)
		}
	}
	if p := two.Next("web"); p != nil {
		t.Errorf("there is more: %+v", p)
	}
}

// Owners take turns within a band, and a lower band goes first.
func TestTurns(t *testing.T) {
	q := OpenQueues(filepath.Join(t.TempDir(), "queue"))
	n := 0
	for _, w := range []struct {
		owner string
		band  dispatch.Priority
	}{{"a", 1}, {"a", 1}, {"a", 1}, {"b", 1}, {"c", 2}, {"c", 0}} {
		n++
		if err := q.Add(&Pointer{Task: id(n), Record: id(n), Queue: "web", Owner: w.owner, Priority: w.band}); err != nil {
			t.Fatal(err)
		}
	}
	got := ""
	for p := q.Next("web"); p != nil; p = q.Next("web") {
		got += p.Owner
	}
	if got != "cabaac" {
		t.Errorf("they went %s", got)
	}
	if q.Next("arxiv") != nil {
		t.Error("a queue that nobody has filled has something")
	}
}
