package run_test

import (
	"encoding/binary"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// makers make a step of each kind with a number in it.
var makers = []func(n int) trace.Step{
	func(n int) trace.Step { s := begin(1 + n&3); s.Limits.TokenBudget = n; return s },
	func(n int) trace.Step {
		s := begin(1)
		s.Investigation = &trace.Investigation{PlanOnly: n&1 == 0}
		return s
	},
	func(n int) trace.Step { return &trace.Iteration{Iteration: n} },
	func(int) trace.Step { return &trace.Message{} },
	func(int) trace.Step { return &trace.Search{} },
	func(int) trace.Step { return &trace.SearchComplete{} },
	func(int) trace.Step { return &trace.Fetch{} },
	func(int) trace.Step { return &trace.FetchComplete{ContentHash: blob.Of(nil)} },
	func(n int) trace.Step { return &trace.Model{Prompt: []string{"step", "write", "x"}[n&1]} },
	func(n int) trace.Step { return &trace.ModelComplete{Prompt: "judge", TokensIn: n, TokensOut: n} },
	func(int) trace.Step { return &trace.Embed{} },
	func(n int) trace.Step { return &trace.EmbedComplete{TokensIn: n} },
	func(int) trace.Step { return &trace.Checkpoint{} },
	func(int) trace.Step { return &trace.BudgetExhausted{} },
	func(int) trace.Step { return &trace.SynthesisStart{} },
	func(int) trace.Step { return &trace.SynthesisComplete{} },
	func(int) trace.Step { return &trace.SynthesisError{} },
	func(n int) trace.Step { return &trace.Verify{Citations: n} },
	func(n int) trace.Step {
		return &trace.Complete{TokensUsed: n, Citations: n, Confidence: marchwarden.Unit(n)}
	},
	func(n int) trace.Step {
		return &trace.Plan{Rihlas: []trace.Sending{{Researcher: "a", Question: string(rune('a' + n&3))}, {Researcher: "b"}}}
	},
	func(n int) trace.Step {
		return &trace.Rihla{Number: n, Researcher: "a", Question: string(rune('a' + n&3)), Parent: n, TraceID: anID(n & 3)}
	},
	func(n int) trace.Step { return &trace.RihlaUnderWay{Number: n, TraceID: anID(n & 3)} },
	func(n int) trace.Step { return &trace.RihlaComplete{Number: n, TokensUsed: n, Citations: n} },
	func(n int) trace.Step { return &trace.Arrival{Number: n} },
	func(n int) trace.Step {
		return &trace.Decision{What: marchwarden.Decision{From: n, Topic: string(rune('a' + n&7))}}
	},
	func(int) trace.Step { return &trace.Evidence{} },
	func(n int) trace.Step { return &trace.Resume{Extension: &trace.Extension{Tokens: n}} },
	func(int) trace.Step { return &trace.Unknown{} },
}

// FuzzFold feeds any steps in any order: a board is bounded, its spans are in order, and
// what is made of it does not fail.
func FuzzFold(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 1, 19, 0, 2, 0, 1, 20, 0, 2, 1, 1, 20, 0, 3, 0, 1, 4, 1, 3, 0, 1, 5, 1, 4, 0, 1, 22, 0, 9, 0, 1, 18, 0, 9, 0, 1})
	f.Add([]byte{20, 0, 255, 127, 255, 22, 0, 0, 255, 255, 0, 1, 255, 255, 127})
	f.Fuzz(func(t *testing.T, data []byte) {
		fold, lanesMost := run.NewFold(), 1
		for i := 0; len(data) >= 5 && i < 2000; i++ {
			n := int(int16(binary.BigEndian.Uint16(data[2:])))
			if data[4]&1 == 1 {
				n = int(data[3] & 7)
			}
			if data[4] == 254 {
				n *= 1 << 47
			}
			s := makers[int(data[0])%len(makers)](n)
			s.Header().Timestamp = zero.Add(time.Duration(int8(data[2])) * time.Second * time.Duration(1+i/16))
			switch s := s.(type) {
			case *trace.Rihla:
				lanesMost++
			case *trace.Plan:
				lanesMost += len(s.Rihlas)
			}
			switch {
			case data[1]&1 == 0:
				fold.Step(s)
			case data[1]&16 == 0:
				fold.RihlaStep(int(data[1]>>1&7), s)
			default:
				fold.Report(n, &marchwarden.Result{Gaps: make([]marchwarden.Gap, 3)})
			}
			if i%16 == 0 {
				sound(t, fold.Board(), lanesMost)
			}
			data = data[5:]
		}
		sound(t, fold.Board(), lanesMost)
	})
}

// sound holds a board to what every board keeps.
func sound(t *testing.T, b *run.Board, most int) {
	t.Helper()
	if len(b.Lanes) > most {
		t.Fatalf("%d lanes, and %d at most", len(b.Lanes), most)
	}
	inOrder := func() {
		for i, l := range b.Lanes {
			if i > 0 && l.Number <= b.Lanes[i-1].Number && l.Number != int(^uint(0)>>1) || l.Tokens < 0 || l.Budget < 0 || l.Citations < 0 {
				t.Fatalf("%+v after %+v", l, b.Lanes[max(0, i-1)])
			}
			for k, s := range l.Spans {
				last := k == len(l.Spans)-1
				if s.To.IsZero() && !last || !s.To.IsZero() && !s.To.After(s.From) || k > 0 && s.From.Before(l.Spans[k-1].To) {
					t.Fatalf("lane %d: %+v", i, l.Spans)
				}
				switch s.State {
				case run.Planned, run.Planning, run.Searching, run.Reading, run.Writing, run.Checking:
				default:
					t.Fatalf("lane %d: %+v", i, s)
				}
			}
		}
		for _, s := range b.Stages() {
			if s.Tokens < 0 || s.Time < 0 {
				t.Fatalf("%+v", s)
			}
		}
	}
	inOrder()
	b.Cut()
	inOrder()
	for _, l := range b.Lanes {
		if n := len(l.Spans); n > 0 && !b.Ended && l.Spans[n-1].To.IsZero() {
			t.Fatalf("%+v lasts", l)
		}
	}
}
