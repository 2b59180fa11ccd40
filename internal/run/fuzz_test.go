package run

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
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

// FuzzBoard makes boards of any steps in any order: they are bounded, and what is made of them
// does not fail.
func FuzzBoard(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 1, 19, 0, 2, 0, 1, 20, 0, 2, 1, 1, 20, 0, 3, 0, 1, 4, 1, 3, 0, 1, 5, 1, 4, 0, 1, 22, 0, 9, 0, 1, 18, 0, 9, 0, 1})
	f.Add([]byte{20, 0, 255, 127, 255, 22, 0, 0, 255, 255, 0, 1, 255, 255, 127})
	f.Fuzz(func(t *testing.T, data []byte) {
		var steps []trace.Step
		w, most := world{map[marchwarden.TraceID][]trace.Step{}, map[trace.Step]*marchwarden.Result{}}, 1
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
				most++
			case *trace.Plan:
				most += len(s.Rihlas)
			}
			if id := anID(int(data[1] >> 1 & 3)); data[1]&1 == 0 {
				steps = append(steps, s)
			} else {
				w.runs[id] = append(w.runs[id], s)
			}
			if data[1]&16 == 0 {
				w.results[s] = &marchwarden.Result{Gaps: make([]marchwarden.Gap, 3)}
			}
			data = data[5:]
		}
		sound(t, w.board(steps...), most)
	})
}

// sound holds a board to what every board keeps.
func sound(t *testing.T, b *Board, most int) {
	t.Helper()
	if len(b.Lanes) > most || len(b.Lanes) > maxLanes+1 {
		t.Fatalf("%d lanes, and %d at most", len(b.Lanes), most)
	}
	for i, l := range b.Lanes {
		if i > 0 && l.Number <= b.Lanes[i-1].Number && l.Number != math.MaxInt {
			t.Fatalf("%+v after %+v", l, b.Lanes[i-1])
		}
		if l.Documents < 0 || l.Citations < 0 || len(l.Read) > maxRead {
			t.Fatalf("%+v", l)
		}
	}
	if b.Tokens < 0 || b.Budget < 0 {
		t.Fatalf("%+v", b)
	}
	b.cut()
	for _, l := range b.Lanes {
		if !b.Ended && l.State != Done && l.State != Failed {
			t.Fatalf("%+v is not over", l)
		}
	}
}
