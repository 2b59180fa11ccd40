package run

import (
	"maps"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Board is what was folded so far. It shares nothing with the fold.
func (f *Fold) Board() *Board {
	k := f.own
	b := &Board{
		Question: k.Question, Researcher: k.Researcher, Began: k.began, Last: f.last, Ended: k.ended, Interrupted: k.ended && k.interrupted,
		Budget: k.Budget, Citations: k.Citations, More: f.more, Decisions: slices.Clone(f.decisions),
	}
	own := k.clone()
	own.Spans, own.Tokens, own.Budget = k.lasting(), k.known(), 0
	if len(f.journeys)+len(f.waiting) == 0 {
		own.Budget, own.Tokens = k.Budget, max(own.Tokens, k.reported)
	}
	b.Lanes = append(b.Lanes, own)
	b.Tokens = own.Tokens
	journeys, begun := map[marchwarden.TraceID]int{}, map[marchwarden.TraceID]bool{} // by run: a rihla may resume that of another
	for _, j := range f.journeys {
		journeys[j.id]++
	}
	before := map[marchwarden.TraceID]int{} // tokens that lanes above have told of a run
	top := 0
	for _, j := range slices.SortedFunc(slices.Values(f.journeys), func(a, b *journey) int { return a.Number - b.Number }) {
		s := shared{}
		if j.id.Valid() && journeys[j.id] > 1 {
			s = shared{run: true, before: begun[j.id]}
			begun[j.id] = true
		}
		l := f.laneOf(j, s, before)
		l.charge(len(j.parts) > 0 && !j.parts[0].model)
		b.Lanes = append(b.Lanes, l)
		b.Tokens = plus(b.Tokens, l.Tokens)
		top = max(top, j.Number)
	}
	for _, j := range f.waiting {
		top = plus(top, 1)
		l := f.laneOf(j, shared{}, before)
		l.Number = top
		b.Lanes = append(b.Lanes, l)
	}
	if k.ended && k.reported > b.Tokens { // what it did not report was its own
		b.Lanes[0].Tokens = plus(b.Lanes[0].Tokens, k.reported-b.Tokens)
	}
	b.Lanes[0].charge(f.begun && !k.model)
	b.Tokens = max(b.Tokens, k.reported)
	return b
}

// clone is a lane that shares nothing with this one.
func (l Lane) clone() Lane {
	l.Spans, l.Gaps, l.Discoveries, l.Paid = slices.Clone(l.Spans), slices.Clone(l.Gaps), slices.Clone(l.Discoveries), maps.Clone(l.Paid)
	l.Read = slices.Clone(l.Read)
	if l.Paid == nil {
		l.Paid = map[State]int{}
	}
	return l
}

// known is how many of its tokens steps tell of.
func (l Lane) known() (all int) {
	for _, n := range l.Paid {
		all = plus(all, n)
	}
	return all
}

// charge puts what no step tells of the tokens where a mind without a model spends them.
func (l *Lane) charge(plain bool) {
	if all := l.known(); plain && l.Tokens > all {
		l.Paid[Reading] = plus(l.Paid[Reading], l.Tokens-all)
	}
}

// shared says which part of its run is a journey's, where another resumed it.
type shared struct {
	run    bool
	before bool // an earlier journey has the beginning
}

// mine are the parts of its run that are a journey's own.
func (j *journey) mine(s shared) []*track {
	if len(j.parts) == 0 || j.parts[0].id.Valid() && j.id.Valid() && j.parts[0].id != j.id {
		return nil
	}
	if !s.run {
		return j.parts
	}
	var mine []*track
	for i, p := range j.parts {
		late := !j.back.IsZero() && !p.began.Before(j.back)
		early := s.before && (i == 0 || p.last.Before(j.sent))
		if !late && !early {
			mine = append(mine, p)
		}
	}
	return mine
}

// laneOf is the lane of a rihla: when it was sent and came back as the investigation
// tells it, and in between what its own run tells. before are the tokens of runs that
// lanes above have told of.
func (f *Fold) laneOf(j *journey, s shared, before map[marchwarden.TraceID]int) Lane {
	l := j.clone()
	l.Tokens, l.Doing = 0, ""
	end := j.back
	if f.own.ended && (end.IsZero() || end.After(f.own.last)) {
		end = f.own.last
	}
	parts := j.mine(s)
	if told := max(j.Tokens, l.add(parts)); s.run { // a resumed run reports for all of it
		l.Tokens = max(l.Tokens, told-before[j.id])
		before[j.id] = max(told, plus(before[j.id], l.Tokens))
	} else {
		l.Tokens = max(l.Tokens, told)
	}
	switch {
	case j.sent.IsZero() && j.unsent:
		l.State, l.Doing = Failed, "it was not sent"
	case j.sent.IsZero():
		l.State = Planned
	case !j.back.IsZero() && j.failed:
		l.State, l.Doing = Failed, j.Doing
	case !j.back.IsZero():
		l.State, l.Doing = Done, j.Doing
	case f.own.ended:
		l.State, l.Doing = Failed, "did not come back before the end"
	case len(parts) > 0:
		last := parts[len(parts)-1]
		l.State, l.Doing = last.State, last.Doing
	case j.id.Valid(): // a run of this program, which is about to begin
		l.State = Planned
	default:
		l.State = Searching
	}
	l.Spans = without(j.spans(parts, l.State, end), f.idle(parts))
	return l
}

// add sums up the parts; it returns the tokens that the run itself reported.
func (l *Lane) add(parts []*track) (reported int) {
	for _, p := range parts {
		l.Iteration = max(l.Iteration, p.Iteration)
		l.Searches, l.Documents, l.Budget = l.Searches+p.Searches, l.Documents+p.Documents, plus(l.Budget, p.Budget)
		l.Citations, l.Read = max(l.Citations, p.Citations), append(l.Read, p.Read...)
		for s, n := range p.Paid {
			l.Paid[s] = plus(l.Paid[s], n)
		}
		l.Tokens, reported = plus(l.Tokens, p.known()), max(reported, p.reported)
	}
	return reported
}

// spans are those of a journey: it is planned until its run begins; where that is not
// known, it searches from when it was sent, unless it failed and should have made a run
// of this program. What its run tells is cut to the time between: other machines have
// other clocks. Its last state lasts until its report is there. A zero end is none.
func (j *journey) spans(parts []*track, state State, end time.Time) []Span {
	var inner []Span
	for _, p := range parts {
		for _, s := range p.lasting() {
			if s, ok := cut(s, j.sent, end); ok {
				inner = append(inner, s)
			}
		}
	}
	first := Span{State: Planned, From: j.planned}
	switch {
	case len(inner) > 0:
		first.To = inner[0].From
		if last := &inner[len(inner)-1]; !last.To.IsZero() && last.To.Before(end) {
			last.To = end
		}
	case j.sent.IsZero() || state == Planned || state == Failed && j.told:
		first.To = end
	default:
		first.To = j.sent
		if s, ok := cut(Span{State: Searching, From: j.sent}, j.sent, end); ok {
			inner = append(inner, s)
		}
	}
	if first.To.IsZero() || first.To.After(first.From) {
		inner = append([]Span{first}, inner...)
	}
	return inOrder(inner)
}

// idle are the times in which a lane with these parts did nothing since no process worked on
// the investigation: each begins with what was last heard of either. A part that
// went on meanwhile did not stop.
func (f *Fold) idle(parts []*track) []Span {
	var out []Span
	for _, p := range f.pauses {
		for _, k := range parts {
			switch {
			case !k.last.After(p.To):
				p.From = latest(p.From, k.last)
			case k.began.Before(p.To):
				p.From = p.To
			}
		}
		if p.To.After(p.From) {
			out = append(out, p)
		}
	}
	return out
}

// without takes times out of spans. Both are in the order of time.
func without(spans, idle []Span) []Span {
	var out []Span
	for _, s := range spans {
		for _, p := range idle {
			if !p.To.After(s.From) {
				continue
			}
			if !s.To.IsZero() && !p.From.Before(s.To) {
				break
			}
			if p.From.After(s.From) {
				out = append(out, Span{s.State, s.From, p.From})
			}
			s.From = p.To
		}
		if s.To.IsZero() || s.To.After(s.From) {
			out = append(out, s)
		}
	}
	return out[:min(len(out), maxSpans+1)]
}

// cut is the part of a span between two times, if there is any.
func cut(s Span, from, to time.Time) (Span, bool) {
	s.From = latest(s.From, from)
	if !to.IsZero() && (s.To.IsZero() || s.To.After(to)) {
		s.To = to
	}
	return s, s.To.IsZero() || s.To.After(s.From)
}

// inOrder keeps spans from overlapping, and from lasting before the last.
func inOrder(spans []Span) []Span {
	out := spans[:0]
	for i, s := range spans {
		if n := len(out); n > 0 {
			s.From = latest(s.From, out[n-1].To)
		}
		if s.To.IsZero() && i < len(spans)-1 {
			s.To = latest(s.From, spans[i+1].From)
		}
		if s.To.IsZero() || s.To.After(s.From) {
			out = append(out, s)
		}
	}
	return out[:min(len(out), maxSpans+1)]
}
