package run

import (
	"slices"
	"time"
)

// Stage is what one state took in all lanes together.
type Stage struct {
	State    State // "" for tokens of which nothing tells what they were spent on
	Tokens   int
	Time     time.Duration // lanes work side by side, so this is more than went by
	Critical time.Duration // of that, what the end waited for
}

// Part is a span, or what of it the end waited for, and whose it is.
type Part struct {
	Lane int // its number
	Span Span
}

// Stages are what went where, in the order of a run, without those that took nothing.
func (b *Board) Stages() []Stage {
	stages := []Stage{{State: Planned}, {State: Planning}, {State: Searching}, {State: Reading}, {State: Writing}, {State: Checking}, {State: ""}}
	of := func(s State) *Stage {
		i := slices.IndexFunc(stages, func(st Stage) bool { return st.State == s })
		if i < 0 {
			i = len(stages) - 1
		}
		return &stages[i]
	}
	told := 0
	for _, l := range b.Lanes {
		for s, n := range l.Paid {
			st := of(s)
			st.Tokens, told = plus(st.Tokens, n), plus(told, n)
		}
		for _, s := range l.Spans {
			st := of(s.State)
			st.Time = longer(st.Time, b.to(s).Sub(s.From))
		}
	}
	of("").Tokens = plus(of("").Tokens, max(0, b.Tokens-told))
	for _, p := range b.Critical() {
		st := of(p.Span.State)
		st.Critical = longer(st.Critical, p.Span.To.Sub(p.Span.From))
	}
	return slices.DeleteFunc(stages, func(s Stage) bool { return s.Tokens == 0 && s.Time == 0 })
}

// longer adds what is not negative; what does not fit is the longest time.
func longer(a, b time.Duration) time.Duration {
	return time.Duration(plus(int(a), int(b)))
}

// to is the end of a span, which is the newest step for one that lasts.
func (b *Board) to(s Span) time.Time {
	if s.To.IsZero() {
		return latest(b.Last, s.From)
	}
	return s.To
}

// Critical is the chain of spans that the end waited for, the first one first. It goes
// back from the end: through a lane's spans as long as one follows another; from the
// beginning of a rihla to what the investigator was at when it sent it; and from an
// investigator who waited to the rihla that came back last before that. What a rihla
// waited for its turn is not in it: others had the turn. Parts do not overlap, and none
// lasts; of a run that goes on it is the chain to the newest step.
func (b *Board) Critical() []Part {
	all, of := b.work()
	parts := []Part{}
	at, lane := b.Last, 0
	if own := of[0]; b.Ended && len(own) > 0 { // others may have gone on
		at = own[len(own)-1].Span.To
	}
	for {
		p, ok := covering(of[lane], at)
		if !ok {
			p, ok = covering(of[0], at)
		}
		if !ok {
			p, ok = endedBy(all, at)
		}
		if !ok {
			break
		}
		if p.Span.To.After(at) {
			p.Span.To = at
		}
		parts = append(parts, p)
		at, lane = p.Span.From, p.Lane // which is earlier every time
	}
	slices.Reverse(parts)
	return parts
}

// work are the spans of all lanes in the order of their ends, and those of each lane, from
// when rihlas were sent.
func (b *Board) work() (all []Part, of map[int][]Part) {
	of = map[int][]Part{}
	for _, l := range b.Lanes {
		if l.Number > 0 && l.Sent.IsZero() {
			continue // nothing waited for it
		}
		for _, s := range l.Spans {
			s.To = b.to(s)
			if s.State == Planned {
				s.From = latest(s.From, l.Sent)
			}
			if s.To.After(s.From) {
				of[l.Number] = append(of[l.Number], Part{l.Number, s})
			}
		}
		slices.SortStableFunc(of[l.Number], byEnd)
		all = append(all, of[l.Number]...)
	}
	slices.SortStableFunc(all, byEnd)
	return all, of
}

func byEnd(a, b Part) int { return a.Span.To.Compare(b.Span.To) }

// covering is the part, of those of one lane, that was under way until a time.
func covering(lane []Part, at time.Time) (Part, bool) {
	i, _ := slices.BinarySearchFunc(lane, at, func(p Part, at time.Time) int { return p.Span.To.Compare(at) })
	if i < len(lane) && lane[i].Span.From.Before(at) {
		return lane[i], true
	}
	return Part{}, false
}

// endedBy is the part that ended last before a time, or at it.
func endedBy(all []Part, at time.Time) (Part, bool) {
	i, _ := slices.BinarySearchFunc(all, at, func(p Part, at time.Time) int {
		if p.Span.To.After(at) {
			return 1
		}
		return -1
	})
	if i == 0 {
		return Part{}, false
	}
	return all[i-1], true
}
