package researcher_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/resumetest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// complete makes a run that nothing disturbs.
func complete(t *testing.T, w *world, model bool, c marchwarden.Constraints) (*bench, *marchwarden.Result) {
	t.Helper()
	b := newBench(t, resumetest.Memory(t), w, model)
	res, err := b.answer(t.Context(), request(c))
	if err != nil {
		t.Fatal(err)
	}
	b.whole(t, res)
	return b, res
}

// A run that is cut off after any line, or in it, goes on to the same result; what
// was done is not done again, and what was under way is done once more and marked.
func TestCutAtEveryLine(t *testing.T) {
	each(t, func(t *testing.T, model bool) {
		b, want := complete(t, garden(), model, marchwarden.Constraints{})
		if len(want.Citations) < 2 || model && len(want.Gaps) == 0 {
			t.Fatalf("too little happens in this world: %+v", want)
		}
		lines := len(b.Log(t).Steps)
		for k := 1; k <= lines; k += effort(3, 1, 1) {
			c := b.cut(t, resumetest.Memory(t), k, k%3*20)
			done, open := effects(c.Log(t))
			c.forget()
			res, err := c.resume(t.Context(), nil)
			if err != nil {
				t.Fatalf("cut after %d of %d: %v", k, lines, err)
			}
			if got := resumetest.Encode(t, res); !bytes.Equal(got, resumetest.Encode(t, want)) {
				t.Fatalf("cut after %d of %d gives another result\n%s\n%s", k, lines, got, resumetest.Encode(t, want))
			}
			c.whole(t, res)
			c.accounts(t, k, done, open)
		}
		t.Logf("%d lines", lines)
	})
}

// accounts holds what a run that went on has asked of the world against its record.
func (b *bench) accounts(t resumetest.T, k int, done, open map[string]bool) {
	t.Helper()
	asked := b.forget()
	for key, n := range asked {
		if done[key] || n != 1 {
			t.Fatalf("cut after %d: %s was asked %d times, although it was done: %v", k, key, n, done[key])
		}
	}
	retried := map[string]bool{}
	for _, s := range b.Log(t).Steps {
		if r, ok := s.(trace.Recorded); ok && r.Record().Retried {
			retried[keyOf(s)] = true
		}
	}
	for key := range open {
		if !retried[key] || asked[key] != 1 {
			t.Fatalf("cut after %d: %s was under way, and asked %d times after that, marked: %v", k, key, asked[key], retried[key])
		}
	}
	if len(retried) != len(open) {
		t.Fatalf("cut after %d: %v are marked as retried, %v were under way", k, retried, open)
	}
}

// A run that is cut off again and again goes on every time.
func TestCutAgainAndAgain(t *testing.T) {
	each(t, func(t *testing.T, model bool) {
		b, want := complete(t, garden(), model, marchwarden.Constraints{})
		for by := 1; by <= 7; by += effort(6, 2, 1) {
			c := b.cut(t, resumetest.Memory(t), 1, 0)
			for cuts := 1; ; cuts++ {
				before := len(c.Log(t).Steps)
				res, err := c.resume(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				c.whole(t, res)
				// By at least two effects a time, or what is under way is given up.
				after := before + 4 + by
				if steps := len(c.Log(t).Steps); after >= steps {
					if got := resumetest.Encode(t, res); !bytes.Equal(got, resumetest.Encode(t, want)) && !bytes.Contains(got, []byte("not tried again")) {
						t.Errorf("after %d cuts there is another result\n%s\n%s", cuts, resumetest.Encode(t, res), resumetest.Encode(t, want))
					}
					break
				}
				c = c.cut(t, resumetest.Memory(t), after, 0)
			}
		}
	})
}

// What cut the run off twice is not tried a third time.
func TestWhatCutsARunOffIsGivenUp(t *testing.T) {
	each(t, func(t *testing.T, model bool) {
		b, _ := complete(t, garden(), model, marchwarden.Constraints{})
		n, tried := 0, 0
		for k, s := range b.Log(t).Steps {
			begins, ok := s.(trace.Beginning)
			if !ok {
				continue
			}
			if n++; n%effort(5, 1, 1) != 0 {
				continue
			}
			tried++
			c := b.cut(t, resumetest.Memory(t), k+1, 0)
			key := keyOf(begins)
			if _, err := c.resume(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			at := 0
			for i, s := range c.Log(t).Steps {
				if s, ok := s.(trace.Beginning); ok && i > k && keyOf(s) == key {
					at = i + 1
				}
			}
			if at == 0 {
				t.Fatalf("%s was not tried again", key)
			}
			c = c.cut(t, resumetest.Memory(t), at, 0)
			c.forget()
			res, err := c.resume(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if asked := c.forget(); asked[key] != 0 {
				t.Errorf("%s was tried a third time", key)
			}
			c.whole(t, res)
			if !bytes.Contains(resumetest.Encode(t, res), []byte("not tried again")) {
				t.Errorf("no gap says that %s was given up: %s", key, resumetest.Encode(t, res))
			}
			if !slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.HasPrefix(w, "given up: ") }) { // others may have been under way each time, too
				t.Errorf("no warning says that %s was given up: %q", key, res.Warnings)
			}
		}
		if t.Logf("%d of %d effects", tried, n); tried == 0 {
			t.Error("nothing was given up")
		}
	})
}

// A run that its caller stopped while any effect was under way gives a partial
// result, and goes on to one that has at least its evidence.
func TestInterruptedAtEveryEffect(t *testing.T) {
	each(t, func(t *testing.T, model bool) {
		_, want := complete(t, garden(), model, marchwarden.Constraints{})
		same, runs := 0, 0
		for n := 1; ; n += effort(2, 1, 1) {
			b := newBench(t, resumetest.Memory(t), garden(), model)
			ctx, cancel := context.WithCancel(t.Context())
			b.hook = func(i int, _ string) {
				if i == n {
					cancel()
				}
			}
			part, err := b.answer(ctx, request(marchwarden.Constraints{}))
			stopped := ctx.Err() != nil
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			if !stopped {
				break
			}
			runs++
			b.whole(t, part)
			if !b.Log(t).Complete().Interrupted {
				t.Fatalf("stopped at effect %d: not said", n)
			}
			done, _ := effects(b.Log(t))
			var cut []string
			for _, s := range b.Log(t).Steps {
				if m, ok := s.(*trace.ModelComplete); ok && m.Prompt == "step" {
					continue // a plan is asked for anew, in the words of the next iteration
				}
				if r, ok := s.(trace.Recorded); ok && r.Record().Error == marchwarden.CodeCanceled && !done[keyOf(s)] {
					cut = append(cut, keyOf(s))
				}
			}
			b.forget()
			res, err := b.resume(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			b.whole(t, res)
			asked := b.forget()
			for key := range asked {
				if done[key] {
					t.Errorf("stopped at effect %d: %s was done and is done again", n, key)
				}
			}
			for _, key := range cut {
				if asked[key] != 1 {
					t.Errorf("stopped at effect %d: %s was cut short and then asked %d times", n, key, asked[key])
				}
			}
			for _, c := range part.Citations {
				if !wasRead(b.Log(t), c.ContentHash) {
					t.Errorf("stopped at effect %d: %s is lost", n, c.Locator)
				}
			}
			if res.Answer == want.Answer {
				same++
			} else {
				t.Logf("stopped at effect %d:\n%s\n%s", n, res.Answer, want.Answer)
			}
			if b.Log(t).Complete().Interrupted || len(res.Citations) < len(part.Citations) {
				t.Errorf("stopped at effect %d: %d citations became %d", n, len(part.Citations), len(res.Citations))
			}
		}
		t.Logf("%d of %d have the answer of an undisturbed run", same, runs)
	})
}

func wasRead(log *trace.Log, hash string) bool {
	for _, s := range log.Steps {
		if f, ok := s.(*trace.FetchComplete); ok && f.ContentHash.String() == hash {
			return true
		}
	}
	return false
}

// A run that ended at a cap continues with more of it; without more, and after a
// complete run, there is nothing to do and nothing is written.
func TestMoreOfWhatRanOut(t *testing.T) {
	const zebras = " Where do zebras eat maize, and how do poles like frost?"
	tests := []struct {
		name  string
		model bool
		had   marchwarden.Constraints
		more  marchwarden.Constraints
		wall  bool
		reads bool // more documents are read
	}{
		{"sources", true, marchwarden.Constraints{MaxSources: ptr(2)}, marchwarden.Constraints{MaxSources: ptr(4)}, false, true},
		{"iterations", true, marchwarden.Constraints{MaxIterations: ptr(1)}, marchwarden.Constraints{MaxIterations: ptr(3)}, false, true},
		{"tokens", true, marchwarden.Constraints{TokenBudget: ptr(2500)}, marchwarden.Constraints{TokenBudget: ptr(30000)}, false, false},
		{"time", true, marchwarden.Constraints{}, marchwarden.Constraints{}, true, true},
		{"sources", false, marchwarden.Constraints{MaxSources: ptr(1)}, marchwarden.Constraints{MaxSources: ptr(4)}, false, true},
		{"iterations", false, marchwarden.Constraints{MaxIterations: ptr(1)}, marchwarden.Constraints{MaxIterations: ptr(3)}, false, false},
		{"time", false, marchwarden.Constraints{}, marchwarden.Constraints{}, true, false},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s, model %v", tt.name, tt.model), func(t *testing.T) {
			w := garden()
			b := newBench(t, resumetest.Memory(t), w, tt.model)
			if tt.wall {
				w.step, b.lab.Deadline = time.Second, 6*time.Second
			}
			req := request(tt.had)
			req.Question += zebras
			first, err := b.answer(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			b.whole(t, first)
			if !first.CostMetadata.BudgetExhausted {
				t.Fatalf("the run did not end at its cap: %+v", first.CostMetadata)
			}
			b.idle(t, first)
			done, _ := effects(b.Log(t))
			if tt.wall {
				b.lab.More = time.Hour
			}
			res, err := b.resume(t.Context(), &tt.more)
			if err != nil {
				t.Fatal(err)
			}
			b.whole(t, res)
			asked := b.forget()
			for key := range asked {
				if done[key] {
					t.Errorf("%s was paid for twice", key)
				}
			}
			if was, is := first.CostMetadata.SourcesRead, res.CostMetadata.SourcesRead; len(asked) == 0 || tt.reads && is <= was {
				t.Errorf("it had read %d documents, and with more %d: %v", was, is, asked)
			}
		})
	}
	each(t, func(t *testing.T, model bool) {
		b, res := complete(t, garden(), model, marchwarden.Constraints{MaxSources: ptr(20), MaxIterations: ptr(20), TokenBudget: ptr(200000)})
		if res.CostMetadata.BudgetExhausted {
			t.Fatalf("the run ended at a cap: %+v", res)
		}
		b.idle(t, res)
	})
}

// idle holds that a run has nothing left to do.
func (b *bench) idle(t *testing.T, want *marchwarden.Result) {
	t.Helper()
	before := b.Raw(t)
	b.forget()
	res, err := b.resume(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(resumetest.Encode(t, res), resumetest.Encode(t, want)) {
		t.Errorf("another result: %s", resumetest.Encode(t, res))
	}
	if asked := b.forget(); len(asked) > 0 || !bytes.Equal(before, b.Raw(t)) {
		t.Errorf("it had nothing to do, and asked %v", asked)
	}
}
