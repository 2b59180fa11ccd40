package run

import (
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// track is one run, or the part of it until it goes on again, as its steps tell it.
type track struct {
	Lane  // as far as its own steps tell it; Spans are over
	id    marchwarden.TraceID
	began time.Time
	since time.Time // when its state began
	mark  time.Time // when it last did something of its own
	last  time.Time // its newest step

	searching, reading int          // under way
	out                map[int]bool // rihlas whose report was not looked at yet, and whether it is here
	here               int          // how many of them are
	came               time.Time    // when the first came of those that seem to be waited for

	model              bool // it has one
	ended, interrupted bool
	reported           int // tokens, as its end says
}

// maxRead is of how many documents the names are kept.
const maxRead = 100

func newTrack() *track { return &track{Lane: Lane{Paid: map[State]int{}}, out: map[int]bool{}} }

var prompts = map[string]State{
	"clarify": Planning, "investigate": Planning, "step": Planning, "write": Writing, "repair": Writing, "judge": Checking,
}

// asks is what a call with a prompt is for, or what the run is at.
func (k *track) asks(prompt string) State {
	if s, ok := prompts[prompt]; ok {
		return s
	}
	if k.State.works() {
		return k.State
	}
	return Planning
}

// at is the time of a step, which is never before that of an earlier one.
func (k *track) at(t time.Time) time.Time {
	k.last = latest(k.last, t)
	if k.began.IsZero() {
		k.began = t
	}
	return k.last
}

func (k *track) enter(s State, at time.Time) {
	if s == k.State {
		return
	}
	k.close(at)
	k.State, k.since = s, latest(at, k.since)
}

func (k *track) close(at time.Time) {
	if k.State.works() && at.After(k.since) {
		k.Spans = appendSpan(k.Spans, Span{k.State, k.since, at})
	}
	k.since = latest(at, k.since)
}

// appendSpan adds a span or extends one alike. Where there are too many, the last stands for all that follow.
func appendSpan(spans []Span, s Span) []Span {
	if n := len(spans); n > 0 {
		last := &spans[n-1]
		if last.State == s.State && last.To.Equal(s.From) || n == maxSpans {
			last.State, last.To = s.State, s.To
			return spans
		}
	}
	return append(spans, s)
}

// lasting are its spans with the one that is not over.
func (k *track) lasting() []Span {
	spans := slices.Clone(k.Spans)
	if k.State.works() {
		spans = appendSpan(spans, Span{State: k.State, From: k.since})
	}
	return spans
}

// worked says what the time since the last own step was spent on.
func (k *track) worked(s State) {
	if k.mark.IsZero() { // there was none
		k.mark = k.last
	}
	k.enter(s, k.mark)
}

// settle waits while there are rihlas to wait for, and looks at a report that is here.
func (k *track) settle(at time.Time) {
	switch {
	case k.here > 0:
		k.enter(Checking, at)
	case len(k.out) > 0:
		k.enter(Waiting, at)
		k.came = time.Time{}
	}
}

func (k *track) sent(number int) {
	k.gone(number)
	if len(k.out) < maxLanes {
		k.out[number] = false
	}
}

func (k *track) back(number int, at time.Time) {
	if here, out := k.out[number]; out && !here {
		k.out[number] = true
		if k.here++; k.here == 1 {
			k.came = at
		}
	}
}

func (k *track) gone(number int) {
	if k.out[number] {
		k.here--
	}
	delete(k.out, number)
}

func (k *track) step(s trace.Step) {
	h := s.Header()
	at := k.at(h.Timestamp)
	switch s := s.(type) {
	case *trace.RihlaComplete:
		k.back(s.Number, at)
		return
	case *trace.RihlaUnderWay, *trace.Checkpoint, *trace.Clarified, *trace.Unknown:
		return // nothing that the run itself was at
	case *trace.Start:
		k.start(s)
	case *trace.Resume:
		k.close(k.mark) // the time in between is not its
		k.State, k.since, k.ended, k.searching, k.reading = Planning, latest(at, k.since), false, 0, 0
		k.here = 0
		clear(k.out) // what was under way is sent again
		if s.Extension != nil {
			k.Budget = plus(k.Budget, s.Extension.Tokens)
		}
	case *trace.Model, *trace.ModelComplete, *trace.Embed, *trace.EmbedComplete:
		k.asked(s, at)
		k.mark = at
		return
	case *trace.SearchComplete, *trace.FetchComplete, *trace.Search, *trace.Fetch, *trace.Iteration, *trace.Message:
		k.gathered(s, at)
	case *trace.Plan, *trace.Rihla, *trace.Arrival, *trace.Evidence, *trace.Decision:
		k.investigated(s, at)
	default:
		k.concluded(s, at)
	}
	k.mark = at
	switch s.(type) {
	case *trace.Start, *trace.Iteration, *trace.SearchComplete, *trace.FetchComplete:
	default:
		k.Doing = plaintext.Line(h.Decision, maxLine)
	}
}

func (k *track) start(s *trace.Start) {
	k.id, k.model = s.TraceID, s.Model != ""
	k.Budget = plus(0, s.Limits.TokenBudget)
	from := s.Timestamp
	if !s.StartedAt.IsZero() && s.StartedAt.Before(from) && k.State == "" {
		from, k.began = s.StartedAt, s.StartedAt
	}
	k.enter(Planning, from)
}

func (k *track) asked(s trace.Step, at time.Time) {
	switch s := s.(type) {
	case *trace.Model:
		if s := k.asks(s.Prompt); k.State == Waiting { // it only seemed to
			k.worked(s)
		} else {
			k.enter(s, at)
		}
		k.Doing = plaintext.Line(s.Decision, maxLine)
	case *trace.ModelComplete:
		k.pay(k.asks(s.Prompt), plus(max(0, s.TokensIn), s.TokensOut))
		k.settle(at)
	case *trace.EmbedComplete:
		k.pay(k.asks(""), s.TokensIn)
	}
}

func (k *track) pay(s State, tokens int) {
	if tokens > 0 {
		k.Paid[s] = plus(k.Paid[s], tokens)
	}
}

// gathered takes the steps of searching and reading, which may go on side by side: then it reads.
func (k *track) gathered(s trace.Step, at time.Time) {
	switch s := s.(type) {
	case *trace.Iteration:
		k.Iteration = max(k.Iteration, s.Iteration)
	case *trace.Search:
		k.searching++
	case *trace.SearchComplete:
		k.searching, k.Searches = max(0, k.searching-1), k.Searches+1
	case *trace.Fetch:
		k.reading++
	case *trace.FetchComplete:
		k.reading = max(0, k.reading-1)
		if s.ContentHash.Valid() {
			if k.Documents++; len(k.Read) < maxRead {
				k.Read = append(k.Read, plaintext.Line(s.URL, maxLine))
			}
		}
	}
	switch {
	case k.reading > 0:
		k.enter(Reading, at)
	case k.searching > 0:
		k.enter(Searching, at)
	default:
		k.enter(Planning, at)
	}
}

func (k *track) investigated(s trace.Step, at time.Time) {
	switch s := s.(type) {
	case *trace.Plan:
		k.enter(Planning, at)
	case *trace.Rihla:
		k.worked(Planning)
		k.sent(s.Number)
	case *trace.Arrival:
		if k.gone(s.Number); s.Number == 0 { // none comes any more
			k.here = 0
			clear(k.out)
		}
		if k.State == Waiting { // until there was something to look at
			if k.came.IsZero() {
				k.came = at
			}
			k.enter(Checking, k.came)
		}
	default:
		k.worked(Checking)
	}
	k.settle(at)
}

func (k *track) concluded(s trace.Step, at time.Time) {
	switch s := s.(type) {
	case *trace.SynthesisStart:
		if k.State == Waiting {
			k.worked(Checking)
		}
		k.enter(Writing, at)
	case *trace.SynthesisError:
		k.enter(Writing, at)
	case *trace.SynthesisComplete, *trace.BudgetExhausted:
		k.enter(Checking, at)
	case *trace.Verify:
		k.enter(Checking, at)
		k.Citations = max(0, s.Citations)
	case *trace.Complete:
		k.enter(Done, at)
		k.ended, k.interrupted = true, s.Interrupted
		k.reported, k.Citations = max(0, s.TokensUsed), max(0, s.Citations)
	}
}
