package run

// This part is a run as lanes on one time axis: the investigator, or the only researcher,
// and below it a lane a rihla, each with what it was at and when. It has no clock, and how
// a Board looks is the affair of those who show it. A trace may be damaged, or made up by
// another program: whatever is in it, a Board is bounded, its times do not go backwards
// and its texts are single lines. They are still text from outside.

import (
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// State is what a lane is at, or where a whole run stands.
type State string

// The states of a lane, in the order of a run.
const (
	Planned   State = "planned"   // decided on, and not begun; of a whole run, only a plan was asked for
	Planning  State = "planning"  // deciding what to look for, or what to do about a report
	Searching State = "searching" // for what is known no closer, too: a stranger's whole journey
	Reading   State = "reading"
	Writing   State = "writing"
	Checking  State = "checking" // evidence, reports or the answer
	Waiting   State = "waiting"  // an investigator, for its rihlas; no span has it
	Done      State = "done"     // no span has it
	Failed    State = "failed"   // no span has it
)

// The further states of a whole run.
const (
	Complete    State = "complete"    // it has its answer
	Interrupted State = "interrupted" // its caller stopped it, or a crash cut it off
	Running     State = "running"     // a process is at work on it
	Damaged     State = "damaged"     // its trace cannot be read, or no run was begun in it
)

// works reports whether a state takes time of its own, and so can be that of a span.
func (s State) works() bool {
	switch s {
	case Planned, Planning, Searching, Reading, Writing, Checking:
		return true
	}
	return false
}

// Span is a time in which a lane was in one state.
type Span struct {
	State State
	From  time.Time
	To    time.Time // zero while it lasts
}

// Lane is one run on the time axis.
type Lane struct {
	// Number is 0 for the investigator, or the only researcher; rihlas count from one.
	// One that waits to be sent has the number that comes next.
	Number     int
	Researcher string
	Question   string
	Reason     string
	Parent     int // number of the rihla that led to it; 0 for none
	TraceID    marchwarden.TraceID
	State      State
	Doing      string    // what it is at, or why it failed; one line
	Sent       time.Time // when a rihla was sent last; zero while it waits for its turn
	// Spans are in the order of time and do not overlap. Between them a lane waits, or
	// its run was cut off.
	Spans []Span
	// Iteration is the round that it is in. Tokens are those that are known so far: a
	// mind without a model tells at the end. Budget is what it may use of them; 0 is
	// unknown.
	Iteration, Tokens, Budget, Searches, Documents, Citations int
	// Paid are the tokens by what they were spent on. What is in none of them of
	// Tokens, no step tells.
	Paid        map[State]int
	Gaps        []marchwarden.Gap
	Discoveries []marchwarden.DiscoveryEvent
}

// Board is a run as far as it is known.
type Board struct {
	TraceID              marchwarden.TraceID
	Question, Researcher string
	Began                time.Time
	Last                 time.Time // when the newest step was written, or the newest event came
	Ended                bool      // it has its result
	// Interrupted says that the caller stopped it, or that it was cut off.
	Interrupted               bool
	Tokens, Budget, Citations int
	Confidence                marchwarden.Unit // of an answer; 0 before
	// Lanes are the own one first, then the rihlas by number, then those of the plan
	// that wait for their turn.
	Lanes []Lane
	// More counts rihlas for which there was no lane left.
	More      int
	Decisions []marchwarden.Decision // what was done about what rihlas reported
}

// Bounds of a Board. Honest runs stay far below them.
const (
	maxLanes = 1000
	maxSpans = 4000 // of one lane
	maxItems = 1000 // of a list
	maxLine  = 300  // characters
	maxParts = 200  // times that a run went on
)

// Cut says of a run that has not ended that no process resumes it: what lasts ends with
// the newest step, and what is not done has failed.
func (b *Board) Cut() {
	if b.Ended {
		return
	}
	b.Interrupted = true
	for i := range b.Lanes {
		l := &b.Lanes[i]
		if n := len(l.Spans); n > 0 && l.Spans[n-1].To.IsZero() {
			if l.Spans[n-1].To = b.Last; !b.Last.After(l.Spans[n-1].From) {
				l.Spans = l.Spans[:n-1]
			}
		}
		if l.State != Done && l.State != Failed {
			l.State, l.Doing = Failed, "cut off"
		}
	}
}

// Gaps are what is missing, each once: of a run that ended as its result says, and until
// then as the lanes report it.
func (b *Board) Gaps() []marchwarden.Gap {
	type key struct {
		marchwarden.GapCategory
		topic string
	}
	var out []marchwarden.Gap
	seen := map[key]bool{}
	for i, l := range b.Lanes {
		if i > 0 && b.Ended {
			break
		}
		for _, g := range l.Gaps {
			if k := (key{g.Category, g.Topic}); !seen[k] {
				seen[k] = true
				out = append(out, g)
			}
		}
	}
	return out
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// plus adds what is not negative; what does not fit is the largest number.
func plus(a, b int) int {
	if b = max(0, b); a > maxInt-b {
		return maxInt
	}
	return a + b
}

const maxInt = int(^uint(0) >> 1)

// Stage is what one state took in all lanes together.
type Stage struct {
	State  State // "" for tokens of which nothing tells what they were spent on
	Tokens int
	Time   time.Duration // lanes work side by side, so this is more than went by
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
			st.Time = time.Duration(plus(int(st.Time), int(b.to(s).Sub(s.From))))
		}
	}
	of("").Tokens = plus(of("").Tokens, max(0, b.Tokens-told))
	return slices.DeleteFunc(stages, func(s Stage) bool { return s.Tokens == 0 && s.Time == 0 })
}

func (b *Board) to(s Span) time.Time {
	if s.To.IsZero() {
		return latest(b.Last, s.From)
	}
	return s.To
}
