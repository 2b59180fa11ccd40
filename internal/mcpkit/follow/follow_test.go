package follow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/follow"
)

// book is a record whose size a test sets.
type book struct {
	size  int64
	ended bool
	err   error
	told  []string
	fails error
}

func (b *book) tails() *follow.Tails[string] {
	return follow.New[string](
		func(context.Context, marchwarden.TraceID) (int64, bool, error) { return b.size, b.ended, b.err },
		func(_ context.Context, name string) error { b.told = append(b.told, name); return b.fails })
}

var id marchwarden.TraceID

// Whoever follows is told of every growth and of the end, and of nothing after it.
func TestGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{err: marchwarden.Errorf(marchwarden.CodeNotFound, "not yet")}
		tails := b.tails()
		defer tails.Close()
		if err := tails.Follow("a", "x", id, 0); err != nil {
			t.Fatal(err)
		}
		for want, step := range []func(){func() {}, func() { b.size, b.err = 10, nil }, func() { b.size = 20 }, func() { b.ended = true }, func() { b.size = 30 }} {
			step()
			time.Sleep(time.Second)
			if want = min(want, 3); len(b.told) != want {
				t.Errorf("told %d times, want %d", len(b.told), want)
			}
		}
	})
}

// One who leaves hears no more, and takes nothing from others.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		tails := b.tails()
		defer tails.Close()
		for _, who := range []string{"a", "a", "b"} {
			if err := tails.Follow(who, "x", id, 0); err != nil {
				t.Fatal(err)
			}
		}
		heard := func(want bool) {
			t.Helper()
			before := len(b.told)
			b.size++
			time.Sleep(time.Second)
			if got := len(b.told) > before; got != want {
				t.Errorf("heard: %v", got)
			}
		}
		tails.Leave("stranger", "x")
		tails.Leave("b", "x")
		tails.Leave("b", "x")
		tails.Leave("a", "x")
		heard(true)
		tails.Leave("a", "x")
		heard(false)
		tails.Leave("a", "nothing")
	})
}

// There is an end to what is followed, and what cannot be read or told is not.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		tails := b.tails()
		for i := range 1000 {
			if err := tails.Follow("a", fmt.Sprint(i), id, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := tails.Follow("a", "one more", id, 0); !errors.Is(err, marchwarden.CodeUnavailable) {
			t.Errorf("one more: %v", err)
		}
		if err := tails.Follow("b", "7", id, 0); err != nil {
			t.Errorf("one that is followed: %v", err)
		}
		b.size, b.fails = 1, errors.New("gone")
		time.Sleep(time.Second)
		told := len(b.told)
		b.size = 2
		time.Sleep(time.Second)
		if told != 1000 || len(b.told) != told {
			t.Errorf("told %d, then %d times", told, len(b.told))
		}
		tails.Close()
		if err := tails.Follow("a", "x", id, 0); !errors.Is(err, marchwarden.CodeUnavailable) {
			t.Errorf("after the end: %v", err)
		}
	})
}
