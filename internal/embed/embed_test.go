package embed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// counting embeds a text as its length and remembers what it was asked.
type counting struct{ asked [][]string }

func (c *counting) ID() string { return "counting/1" }

func (c *counting) Embed(ctx context.Context, texts []string) ([]Vector, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.asked = append(c.asked, texts)
	var out []Vector
	for _, t := range texts {
		out = append(out, Vector{float32(len(t)), 1})
	}
	return out, nil
}

// broken is a store that fails, and gives too little.
type broken struct{ puts int }

func (*broken) Get(string, []string) ([]Vector, error) { return nil, errors.New("out of order") }

func (b *broken) Put(string, []string, []Vector) error {
	b.puts++
	return errors.New("out of order")
}

type short struct{ broken }

func (*short) Get(string, []string) ([]Vector, error) { return []Vector{{9}}, nil }

func TestDot(t *testing.T) {
	for _, c := range []struct {
		v, w Vector
		want float64
	}{
		{nil, nil, 0},
		{Vector{1, 2, 3}, Vector{4, 5, 6}, 32},
		{Vector{1, 2, 3, 4, 5}, Vector{1, 1, 1, 1, 1}, 15},
		{Vector{0.6, 0.8}, Vector{0.6, 0.8}, 1},
		{Vector{1, 2}, Vector{1, 2, 3}, 0},
	} {
		if got := c.v.Dot(c.w); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%v·%v = %g, want %g", c.v, c.w, got, c.want)
		}
	}
}

func TestCachedAsksOnce(t *testing.T) {
	e := &counting{}
	c := Cached(e, NewMemory(1<<20))
	for range 2 {
		got, err := c.Embed(t.Context(), []string{"a", "bb", "a"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]Vector{{1, 1}, {2, 1}, {1, 1}}, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	if _, err := c.Embed(t.Context(), []string{"ccc", "bb"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"a", "bb"}, {"ccc"}}, e.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if c.ID() != "counting/1" {
		t.Errorf("ID is %q", c.ID())
	}
}

func TestCachedWithoutAStoreThatWorks(t *testing.T) {
	for _, s := range []Store{&broken{}, &short{}, NewMemory(0)} {
		got, err := Cached(&counting{}, s).Embed(t.Context(), []string{"a", "bb"})
		if diff := cmp.Diff([]Vector{{1, 1}, {2, 1}}, got); err != nil || diff != "" {
			t.Errorf("%T: %v (-want +got):\n%s", s, err, diff)
		}
	}
}

func TestCachedPassesErrorsOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := Cached(&counting{}, NewMemory(1<<20))
	for _, texts := range [][]string{nil, {"a"}} {
		if _, err := c.Embed(ctx, texts); !errors.Is(err, context.Canceled) {
			t.Errorf("%d texts: %v", len(texts), err)
		}
	}
}

func TestMemoryForgetsWhenItIsFull(t *testing.T) {
	m := NewMemory(3 * 8)
	get := func(model string, texts ...string) string {
		vs, err := m.Get(model, texts)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(vs)
	}
	if err := m.Put("m", []string{"a", "b", "c"}, []Vector{{1, 0}, {2, 0}, {3, 0}}); err != nil || get("m", "a", "b", "c") != "[[1 0] [2 0] [3 0]]" {
		t.Errorf("held: %s, %v", get("m", "a", "b", "c"), err)
	}
	if err := m.Put("m", []string{"d", "e"}, []Vector{{4, 0}, {5, 5, 5, 5, 5, 5, 5}}); err != nil || get("m", "a", "b", "c") != "[[] [] []]" || get("m", "e") != "[[]]" {
		t.Errorf("held: %s, %v", get("m", "a", "b", "c", "d", "e"), err)
	}
	if got := get("other", "a"); got != "[[]]" {
		t.Errorf("another model has %s", got)
	}
}

func TestMemoryBetweenMany(t *testing.T) {
	kept := NewMemory(4 * 8)
	done := make(chan error)
	for i := range 8 {
		go func() {
			_, err := Cached(&counting{}, kept).Embed(context.Background(), []string{fmt.Sprint(i), "x", fmt.Sprint(i + 1)})
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
