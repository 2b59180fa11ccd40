package run

import (
	"cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// worker is one run as its own steps tell it.
type worker struct {
	Lane
	searching, reading int // under way
}

// prompts are what calls of a model are for; during any other a run is at what it was at before.
var prompts = map[string]State{
	"clarify": Planning, "investigate": Planning, "step": Planning, "write": Writing, "repair": Writing, "judge": Checking,
}

func (w *worker) step(s trace.Step) {
	switch s := s.(type) {
	case *trace.RihlaComplete:
		return // it comes while the investigator is at something else
	case *trace.Start:
		w.Researcher, w.Question = plaintext.Line(s.Researcher, maxLine), plaintext.Line(s.Request.Question, marchwarden.MaxQuestionChars)
		w.State = Planning
	case *trace.Resume:
		w.State, w.searching, w.reading = Planning, 0, 0
	case *trace.Arrival:
		w.State = Checking // it waited until then
	default:
		w.enter(s)
	}
	switch s.(type) {
	case *trace.Start, *trace.Iteration, *trace.SearchComplete, *trace.FetchComplete, *trace.ModelComplete, *trace.EmbedComplete,
		*trace.RihlaUnderWay, *trace.Checkpoint, *trace.Clarified, *trace.Unknown:
	default:
		w.Doing = plaintext.Line(s.Header().Decision, maxLine)
	}
}

// enter is what the run is at from a step on.
func (w *worker) enter(s trace.Step) {
	switch s := s.(type) {
	case *trace.Model:
		w.State = cmp.Or(prompts[s.Prompt], w.State)
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
