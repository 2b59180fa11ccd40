package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// book is a record whose state a test sets.
type book struct {
	mu    sync.Mutex // guards what follows
	size  int64
	ended bool
	err   error
	fails error
	told  int
}

func (b *book) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *book) tails() *tails {
	return newTails(
		func(context.Context, marchwarden.TraceID) (int64, bool, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.size, b.ended, b.err
		},
		func(context.Context, string) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.told++
			return b.fails
		})
}

// wait lets what follows a record look, and gives how often a follower was told.
func (b *book) wait() int {
	time.Sleep(time.Second)
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.told
}

var id marchwarden.TraceID

// A follower is told of every growth and of the end, and of nothing after it.
func TestGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{err: marchwarden.Errorf(marchwarden.CodeNotFound, "not yet")}
		tails := b.tails()
		defer tails.close()
		if err := tails.follow("a", "x", id, 0); err != nil {
			t.Fatal(err)
		}
		for want, step := range []func(){func() {}, func() { b.size, b.err = 10, nil }, func() { b.size = 20 }, func() { b.ended = true }, func() { b.size = 30 }} {
			b.set(step)
			if got := b.wait(); got != min(want, 3) {
				t.Errorf("told %d times, want %d", got, min(want, 3))
			}
		}
	})
}

// One who leaves hears no more, and takes nothing from others.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		tails := b.tails()
		defer tails.close()
		for _, who := range []string{"a", "a", "b"} {
			if err := tails.follow(who, "x", id, 0); err != nil {
				t.Fatal(err)
			}
		}
		heard := func(want bool) {
			t.Helper()
			before := b.wait()
			b.set(func() { b.size++ })
			if got := b.wait() > before; got != want {
				t.Errorf("heard: %v", got)
			}
		}
		tails.leave("stranger", "x")
		tails.leave("b", "x")
		tails.leave("b", "x")
		heard(true)
		tails.leave("a", "x")
		heard(false)
		tails.leave("a", "nothing")
	})
}

// There is an end to what is followed, and what cannot be read or told is not.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		tails := b.tails()
		for i := range 1000 {
			if err := tails.follow("a", fmt.Sprint(i), id, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := tails.follow("a", "one more", id, 0); !errors.Is(err, marchwarden.CodeUnavailable) {
			t.Errorf("one more: %v", err)
		}
		if err := tails.follow("b", "7", id, 0); err != nil {
			t.Errorf("one that is followed: %v", err)
		}
		b.set(func() { b.size, b.fails = 1, errors.New("gone") })
		told := b.wait()
		b.set(func() { b.size = 2 })
		if again := b.wait(); told != 1000 || again != told {
			t.Errorf("told %d, then %d times", told, again)
		}
		tails.close()
		if err := tails.follow("a", "x", id, 0); !errors.Is(err, marchwarden.CodeUnavailable) {
			t.Errorf("after the end: %v", err)
		}
	})
}
