package run

import (
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// worker is one run as its own steps tell it. The time between two steps was spent on what
// the run was at.
type worker struct {
	Lane
	board              *Board // whose stages it adds to
	last               time.Time
	searching, reading int // under way
}

var prompts = map[string]State{
	"clarify": Planning, "investigate": Planning, "step": Planning, "write": Writing, "repair": Writing, "judge": Checking,
}

// asks is what a call with a prompt is for, or what the run is at.
func (w *worker) asks(prompt string) State {
	if s, ok := prompts[prompt]; ok {
		return s
	}
	if w.board.stage(w.State) != nil && w.State != "" {
		return w.State
	}
	return Planning
}

func (w *worker) step(s trace.Step) {
	h := s.Header()
	at := latest(w.last, h.Timestamp)
	switch s := s.(type) {
	case *trace.RihlaComplete:
		return // it comes while the investigator is at something else
	case *trace.Start:
		w.Researcher, w.Question = plaintext.Line(s.Researcher, maxLine), plaintext.Line(s.Request.Question, marchwarden.MaxQuestionChars)
		w.State = Planning
	case *trace.Resume:
		w.State, w.searching, w.reading = Planning, 0, 0 // the time in between is not its
	case *trace.Arrival:
		w.State = Checking // it waited until then
	default:
		if st := w.board.stage(w.State); st != nil && w.State != "" {
			st.Time += at.Sub(w.last)
		}
		w.enter(s)
	}
	w.last = at
	switch s.(type) {
	case *trace.Start, *trace.Iteration, *trace.SearchComplete, *trace.FetchComplete, *trace.ModelComplete, *trace.Embed, *trace.EmbedComplete,
		*trace.RihlaUnderWay, *trace.Checkpoint, *trace.Clarified, *trace.Unknown:
	default:
		w.Doing = plaintext.Line(h.Decision, maxLine)
	}
}

// enter is what the run is at from a step on.
func (w *worker) enter(s trace.Step) {
	switch s := s.(type) {
	case *trace.Model:
		w.State = w.asks(s.Prompt)
	case *trace.ModelComplete:
		w.pay(w.asks(s.Prompt), s.TokensIn, s.TokensOut)
	case *trace.EmbedComplete:
		w.pay(w.asks(""), s.TokensIn)
	case *trace.Iteration, *trace.Message, *trace.Search, *trace.SearchComplete, *trace.Fetch, *trace.FetchComplete:
		w.gather(s)
	case *trace.Plan:
		w.State = Planning
	case *trace.Rihla:
		w.State = Waiting
	case *trace.SynthesisStart, *trace.SynthesisError:
		w.State = Writing
	case *trace.Evidence, *trace.Decision, *trace.SynthesisComplete, *trace.BudgetExhausted:
		w.State = Checking
	case *trace.Verify:
		w.State, w.Citations = Checking, max(0, s.Citations)
	case *trace.Complete:
		w.State, w.Citations = Done, max(0, s.Citations)
	}
}

func (w *worker) pay(s State, tokens ...int) {
	for _, n := range tokens {
		w.board.stage(s).Tokens += max(0, n)
	}
}

// gather takes the steps of searching and reading, which may go on side by side: then it reads.
func (w *worker) gather(s trace.Step) {
	switch s := s.(type) {
	case *trace.Search:
		w.searching++
	case *trace.SearchComplete:
		w.searching = max(0, w.searching-1)
	case *trace.Fetch:
		w.reading++
	case *trace.FetchComplete:
		w.reading = max(0, w.reading-1)
		if s.ContentHash.Valid() {
			if w.Documents++; len(w.Read) < maxRead {
				w.Read = append(w.Read, plaintext.Line(s.URL, maxLine))
			}
		}
	}
	switch {
	case w.reading > 0:
		w.State = Reading
	case w.searching > 0:
		w.State = Searching
	default:
		w.State = Planning
	}
}
