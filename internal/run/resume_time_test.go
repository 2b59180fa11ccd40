package run_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

func theRun(t *testing.T) marchwarden.TraceID {
	t.Helper()
	id, err := marchwarden.ParseTraceID(runID)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// worked makes a desk, in a bubble, with one run of the researcher web on it that wrote
// these steps and worked for so long.
func worked(t *testing.T, start *trace.Start, long time.Duration, steps ...trace.Step) *run.Lab {
	t.Helper()
	traces, err := trace.OpenDir(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { traces.Close() })
	start.Format, start.TraceID, start.Mind, start.Version, start.StartedAt = trace.Format, theRun(t), "m/1", "1", time.Now()
	start.Researcher, start.Request = "web", marchwarden.Request{Question: "What is it?"}
	w, err := traces.Create(start.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range append([]trace.Step{start}, steps...) {
		if i == len(steps) {
			time.Sleep(long)
		}
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &run.Lab{Traces: traces, Blobs: blob.NewMem(), Version: "1", Now: time.Now, PartOf: start.PartOf}
}

// atACap is the end of a run that ran out of something.
func atACap(t *testing.T, blobs blob.Store) *trace.Complete {
	t.Helper()
	res := &marchwarden.Result{Answer: "Nothing was found.", TraceID: theRun(t), CostMetadata: marchwarden.CostMetadata{TokensUsed: 700, BudgetExhausted: true, ModelID: "m/1"}}
	res.Normalize()
	encoded, err := marchwarden.EncodeResult(res)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := blobs.Put(t.Context(), encoded)
	if err != nil {
		t.Fatal(err)
	}
	return &trace.Complete{Result: ref, TokensUsed: 700}
}

// goesOn is a run of the desk after it has begun to go on.
func goesOn(t *testing.T, ctx context.Context, d *run.Lab, name string, more *marchwarden.Constraints) *run.Resumed {
	t.Helper()
	on, _, err := d.GoOn(ctx, name, marchwarden.Request{Resume: runID, Constraints: more}, nil)
	if err != nil || on == nil {
		t.Fatalf("it does not go on: %v", err)
	}
	if _, err := on.Begin(run.Ready{Mind: "m/1"}); err != nil {
		t.Fatal(err)
	}
	return on
}

// What is added to the time of a run is what it may work from now on, however long it
// had worked; without that, it has as long as its caller waits.
func TestTheTimeThatIsLeft(t *testing.T) {
	const none = time.Duration(0)
	for name, tt := range map[string]struct {
		wall, worked   time.Duration
		ended          bool
		more, patience time.Duration
		want           time.Duration
	}{
		"ended at its wall":                  {time.Hour, time.Hour, true, 10 * time.Minute, none, 10 * time.Minute},
		"ended long past its wall":           {time.Hour, 90 * time.Minute, true, 10 * time.Minute, none, 10 * time.Minute},
		"cut off past its wall":              {time.Hour, 90 * time.Minute, false, 10 * time.Minute, none, 10 * time.Minute},
		"ended before its wall":              {time.Hour, 20 * time.Minute, true, 10 * time.Minute, none, 50 * time.Minute},
		"no wall":                            {0, 90 * time.Minute, true, 10 * time.Minute, none, 0},
		"a caller who waits":                 {time.Hour, 90 * time.Minute, false, none, 3 * time.Hour, 3 * time.Hour},
		"a caller who waits, with time left": {time.Hour, 20 * time.Minute, false, none, 3 * time.Hour, 3 * time.Hour},
		"a caller who will not wait":         {time.Hour, 20 * time.Minute, false, none, 5 * time.Minute, 40 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				blobs := blob.NewMem()
				last := trace.Step(&trace.Message{})
				if tt.ended {
					last = atACap(t, blobs)
				}
				start := &trace.Start{Wall: tt.wall, Limits: marchwarden.Limits{TokenBudget: 5000}}
				d := worked(t, start, tt.worked, last)
				d.Blobs, d.More = blobs, tt.more
				time.Sleep(24 * time.Hour)
				ctx := t.Context()
				if tt.patience > 0 {
					var done context.CancelFunc
					ctx, done = context.WithTimeout(ctx, tt.patience)
					defer done()
				}
				on := goesOn(t, ctx, d, "web", nil)
				defer on.Close()
				if got := replay.Left(on.Start, on.Start.Wall); got < tt.want-time.Second || got > tt.want+time.Second {
					t.Errorf("it has %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// A caller who waits anew after a rihla was cut off once more is waited for again, also
// one who asks for the same more again, which is not given twice: what the rihla had got
// before is used up.
func TestEveryCallersPatienceCounts(t *testing.T) {
	for _, tokens := range []int{0, 2000} {
		t.Run(fmt.Sprintf("%d more tokens", tokens), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := worked(t, &trace.Start{Wall: time.Minute, PartOf: true, Limits: marchwarden.Limits{TokenBudget: 5000}}, 2*time.Minute, &trace.Message{})
				for range 3 {
					ctx, done := context.WithTimeout(t.Context(), 10*time.Minute)
					on := goesOn(t, ctx, d, "web", more(tokens))
					if got := replay.Left(on.Start, on.Start.Wall); got < 9*time.Minute || got > 11*time.Minute {
						t.Errorf("it has %v of the 10 minutes that its caller waits", got)
					}
					if got := on.Start.LimitsNow().TokenBudget; got != 5000+tokens {
						t.Errorf("it has %d tokens", got)
					}
					time.Sleep(9 * time.Minute)
					if err := on.Note(&trace.Message{Head: trace.Head{Decision: time.Now().String()}}); err != nil {
						t.Fatal(err)
					}
					if err := on.Close(); err != nil { // killed
						t.Fatal(err)
					}
					done()
				}
			})
		})
	}
}

// Whoever asks again for the same more, in tokens and time, after the run was cut off has
// it already: the time is not given twice either.
func TestTheSameTimeIsNotGivenTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := worked(t, &trace.Start{Wall: time.Hour, Limits: marchwarden.Limits{TokenBudget: 5000}}, time.Hour, &trace.Message{})
		d.More = 10 * time.Minute
		for range 3 {
			on := goesOn(t, t.Context(), d, "web", more(2000))
			if got := replay.Left(on.Start, on.Start.Wall); got < 9*time.Minute || got > 11*time.Minute {
				t.Errorf("it has %v of the 10 minutes", got)
			}
			if err := on.Close(); err != nil { // killed
				t.Fatal(err)
			}
		}
	})
}

// What was paid in a part that was cut off is counted when the run goes on with more,
// and a rihla that went on, and reports for both of its parts, once.
func TestWhatWasPaidBeforeACutCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := theRun(t)
		other, err := marchwarden.ParseTraceID(strings.Replace(runID, "7000", "7001", 1))
		if err != nil {
			t.Fatal(err)
		}
		d := worked(t, &trace.Start{Limits: marchwarden.Limits{TokenBudget: 5000}}, time.Minute,
			&trace.ModelComplete{TokensIn: 100, TokensOut: 50}, &trace.RihlaComplete{Number: 1, Researcher: "files", TraceID: one, TokensUsed: 400},
			&trace.ModelComplete{TokensIn: 10, TokensOut: 5}, &trace.EmbedComplete{TokensIn: 6}, &trace.RihlaComplete{Number: 2, Researcher: "files", TraceID: other, TokensUsed: 300},
			&trace.RihlaComplete{Number: 3, Researcher: "files", TraceID: one, TokensUsed: 900}, &trace.RihlaComplete{Number: 4, Researcher: "stranger", TokensUsed: 20}, &trace.RihlaComplete{Number: 5, Researcher: "stranger", TokensUsed: 20})
		on := goesOn(t, t.Context(), d, "web", more(2000))
		defer on.Close()
		if e := on.Start.Extended; len(e) != 1 || e[0].Spent != 171+900+300+40 || e[0].Tokens != 2000 {
			t.Errorf("%+v", e)
		}
	})
}

// Whose run it is, and whether it is part of an investigation, decides who may go on
// with it.
func TestRunsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, part := range []bool{false, true} {
			d := worked(t, &trace.Start{PartOf: part}, time.Minute, &trace.Message{})
			for _, name := range []string{"web", "files", ""} {
				for _, partOf := range []bool{false, true} {
					d.PartOf = partOf
					on, _, err := d.GoOn(t.Context(), name, marchwarden.Request{Resume: runID}, nil)
					if mine := name == "web" && part == partOf; mine != (err == nil) || !mine && (!errors.Is(err, marchwarden.CodeInvalid) || !strings.Contains(err.Error(), "none of the researcher")) {
						t.Errorf("a rihla: %v, asked of %q as a rihla: %v: %v", part, name, partOf, err)
					}
					if on != nil {
						on.Close()
					}
				}
			}
		}
	})
}

// A rihla whose process is about to end is waited for; a run that is its own is not,
// and nobody waits longer than the caller.
func TestARihlaThatWindsUpIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			part           bool
			ends, patience time.Duration
			least, most    time.Duration
			goes           bool
		}{
			{true, 12 * time.Second, time.Hour, 11 * time.Second, 14 * time.Second, true},
			{true, time.Hour, 2 * time.Hour, 30 * time.Second, 40 * time.Second, false},
			{true, time.Hour, 5 * time.Second, 5 * time.Second, 9 * time.Second, false},
			{false, 12 * time.Second, time.Hour, 0, 5 * time.Second, false},
		} {
			d := worked(t, &trace.Start{PartOf: tt.part}, time.Minute, &trace.Message{})
			w, _, err := d.Traces.Append(theRun(t))
			if err != nil {
				t.Fatal(err)
			}
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				time.Sleep(tt.ends)
				_ = w.Close()
			}()
			ctx, done := context.WithTimeout(t.Context(), tt.patience)
			began := time.Now()
			on, _, err := d.GoOn(ctx, "web", marchwarden.Request{Resume: runID}, nil)
			done()
			if took := time.Since(began); (err == nil) != tt.goes || took < tt.least || took > tt.most {
				t.Errorf("%+v: %v after %v", tt, err, took)
			}
			if !tt.goes && !errors.Is(err, trace.ErrGoing) {
				t.Errorf("%+v: %v", tt, err)
			}
			if on != nil {
				on.Close()
			}
			<-closed
		}
	})
}
