package researcher_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/resumetest"
)

var nouns = []string{"peas", "beans", "soil", "Gregor Mendel", "Brno", "garden", "maize", "sun", "water", "poles", "abbey", "Moravia", "shade", "friar", "frost", "Olomouc"}

func anyWorld(t *rapid.T) *world {
	noun := rapid.SampledFrom(nouns)
	docs := map[string]string{}
	w := newWorld(docs)
	for i := range rapid.IntRange(2, 12).Draw(t, "documents") {
		at := fmt.Sprintf("https://d%d.example/", i)
		var text strings.Builder
		for range rapid.IntRange(1, 25).Draw(t, "sentences") {
			fmt.Fprintf(&text, "The %s and the %s like the %s of %s. ", noun.Draw(t, "a"), noun.Draw(t, "b"), noun.Draw(t, "c"), noun.Draw(t, "d"))
		}
		docs[at] = strings.TrimSpace(text.String())
		w.denied[at] = rapid.IntRange(0, 5).Draw(t, "denied") == 0
	}
	if rapid.IntRange(0, 3).Draw(t, "down") == 0 {
		w.down = noun.Draw(t, "word")
	}
	return w
}

func anyLimits(t *rapid.T, always bool) *marchwarden.Constraints {
	var c marchwarden.Constraints
	if always || rapid.Bool().Draw(t, "tokens") {
		c.TokenBudget = ptr(rapid.IntRange(1000, 9000).Draw(t, "budget"))
	}
	if always || rapid.Bool().Draw(t, "iterations") {
		c.MaxIterations = ptr(rapid.IntRange(1, 4).Draw(t, "most iterations"))
	}
	if always || rapid.Bool().Draw(t, "sources") {
		c.MaxSources = ptr(rapid.IntRange(1, 5).Draw(t, "most sources"))
	}
	return &c
}

// Whatever is done to a run, in whatever order, and however it is cut off, stopped
// and given more: what was paid for is not paid for again, the budget of all parts
// holds, and the record gives the same bytes again.
func TestAnySequenceOfCutsStopsAndAdditions(t *testing.T) {
	resumetest.Checks(t, effort(15, 250, 2500))
	top := resumetest.Memory(t)
	var cases, ops atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		cases.Add(1)
		dir := func() string { return filepath.Join(top, fmt.Sprint(ops.Add(1))) }
		b := newBench(t, dir(), anyWorld(t), rapid.Bool().Draw(t, "model"))
		defer func() { b.Traces.Close() }()
		q := fmt.Sprintf("What do the %s and the %s like, and who is %s?", nouns[rapid.IntRange(0, 5).Draw(t, "x")], nouns[rapid.IntRange(6, 10).Draw(t, "y")], nouns[rapid.IntRange(11, 15).Draw(t, "z")])
		req := marchwarden.Request{Question: q, Constraints: anyLimits(t, true)}
		for i := range rapid.IntRange(2, 6).Draw(t, "operations") {
			if i > 0 && rapid.Bool().Draw(t, "cut") {
				steps := len(b.Log(t).Steps)
				was := b
				b = b.cut(t, dir(), rapid.IntRange(1, steps).Draw(t, "after"), rapid.IntRange(0, 60).Draw(t, "torn"))
				was.Traces.Close()
			}
			b.goOn(t, i, req)
		}
	})
	t.Logf("%d cases", cases.Load())
}

// goOn begins a run or resumes it, and holds it to all that it must keep.
func (b *bench) goOn(t *rapid.T, i int, req marchwarden.Request) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var done map[string]bool
	if i > 0 {
		done, _ = effects(b.Log(t))
		req = marchwarden.Request{Resume: resumetest.ID}
		if rapid.Bool().Draw(t, "more") {
			req.Constraints = anyLimits(t, false)
			if *req.Constraints == (marchwarden.Constraints{}) {
				req.Constraints = nil
			}
		}
	}
	b.forget()
	if stop := rapid.IntRange(0, 20).Draw(t, "stopped at"); stop > 0 {
		b.hook = func(n int, _ string) {
			if n == stop {
				cancel()
			}
		}
	}
	res, err := b.answer(ctx, req)
	if err != nil {
		t.Fatalf("%v\n%s", err, b.Raw(t))
	}
	b.whole(t, res)
	for key, n := range b.forget() {
		if done[key] || n > 2 { // once more if it was stopped and goes on in the same call
			t.Fatalf("%s was asked %d times, although it was done: %v", key, n, done[key])
		}
	}
}
