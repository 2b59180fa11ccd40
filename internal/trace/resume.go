package trace

import (
	"cmp"
	"reflect"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
)

// Resume says that a run goes on: after it was cut off, or past its end.
type Resume struct {
	Head
	Version string `json:"version"` // of the program that goes on
	// Mind, MindVersion, Planner, Logic and Gate are those that go on, if they are others than
	// those that began.
	Mind        string `json:"mind,omitempty"`
	MindVersion string `json:"mind_version,omitempty"`
	Planner     string `json:"planner,omitempty"`
	Logic       string `json:"logic,omitempty"`
	Gate        string `json:"gate,omitempty"`
	// Found is what is searched from here on, if it is not what it was.
	Found *Found `json:"found,omitempty"`
	// Worked is how long the run had worked before; the time in between is not its.
	Worked time.Duration `json:"worked_ns"`
	// Extension is what the run gets with which to go past its end; nil for one that
	// was cut off before it and gets no more than it had.
	Extension *Extension `json:"extension,omitempty"`
	// Wall is the time that a run gets which was cut off: what is added, or what its caller
	// now waits longer than it had left. It changes nothing but how long it may take, so that nothing that
	// was paid for is thought over.
	Wall time.Duration `json:"wall_ns,omitempty"`
}

// Found describes what a run searches, as it was found.
type Found struct {
	Library     []string          `json:"library,omitempty"`
	Fingerprint string            `json:"library_fingerprint,omitempty"`
	Gaps        []marchwarden.Gap `json:"gaps,omitempty"`
}

// Extension is what a run that had ended gets when it is resumed.
type Extension struct {
	// Spent is what the run had used when it ended, the writing of its answer
	// included.
	Spent    int     `json:"spent"`
	SpentUSD float64 `json:"spent_usd,omitempty"`
	// What is added to its limits; all may be zero for a run that its caller stopped.
	Tokens     int           `json:"tokens,omitempty"`
	Iterations int           `json:"iterations,omitempty"`
	Sources    int           `json:"sources,omitempty"`
	CostUSD    float64       `json:"cost_usd,omitempty"`
	Wall       time.Duration `json:"wall_ns,omitempty"`
}

// LimitsNow are the limits of the run with all that was added to them.
func (s *Start) LimitsNow() marchwarden.Limits {
	limits := s.Limits
	for _, e := range s.Extended {
		limits = limits.Plus(e.Limits())
	}
	return limits
}

// Price writes the prices down of the model, "" for none, and of the reasoners
// without a model, which cost nothing. A cap of money cannot be kept where one is unknown: CodeInvalid.
func (s *Start) Price(own ledger.Prices, model string) error {
	known, missing := own.Of(model, "extractive/")
	s.Prices = known
	return ledger.Known(s.Limits, missing)
}

// Lengthening is time that a run got when it had worked for a while.
type Lengthening struct{ After, By time.Duration }

// Counted is how much of the time that the run has worked counts against its limits.
// What it was given underway counts from then on only: a moment before that is judged
// as it was.
func (s *Start) Counted(worked time.Duration) time.Duration {
	counted := worked
	for _, l := range s.Lengthened {
		if worked >= l.After {
			counted -= l.By
		}
	}
	return counted
}

// Remains is what is left of a limit to the time of the run, with all that was added,
// when it has worked for so long; it is negative if the run is past that.
func (s *Start) Remains(limit, worked time.Duration) time.Duration {
	for _, e := range s.Extended {
		limit += e.Wall
	}
	return limit - s.Counted(worked)
}

// Limits are what an extension adds to the limits of a run.
func (e Extension) Limits() marchwarden.Limits {
	return marchwarden.Limits{TokenBudget: e.Tokens, MaxIterations: e.Iterations, MaxSources: e.Sources, MaxCostUSD: e.CostUSD}
}

// Resumed tells the start what a resume step says, whether it was read or is about
// to be written: the run is now one that had this from the start.
func (s *Start) Resumed(r *Resume) {
	s.Worked = r.Worked
	if r.Extension != nil {
		s.Extended = append(s.Extended[:len(s.Extended):len(s.Extended)], *r.Extension)
	}
	if r.Wall != 0 {
		s.Lengthened = append(s.Lengthened[:len(s.Lengthened):len(s.Lengthened)], Lengthening{After: r.Worked, By: r.Wall})
	}
	if r.Mind != "" {
		s.Mind, s.MindVersion = r.Mind, r.MindVersion
	}
	if f := r.Found; f != nil {
		s.Library, s.Fingerprint, s.Gaps = f.Library, f.Fingerprint, f.Gaps
	}
	s.Gate = cmp.Or(r.Gate, s.Gate)
	if s.Investigation != nil {
		inv := *s.Investigation
		inv.Planner, inv.Logic = cmp.Or(r.Planner, inv.Planner), cmp.Or(r.Logic, inv.Logic)
		s.Investigation = &inv
	}
}

// Worked is how long the run has worked: the time from its start, or from where it
// went on last, to its last step. A clock that was set back counts for nothing.
func (l *Log) Worked() time.Duration {
	start, err := l.Start()
	if err != nil {
		return 0
	}
	before, from := time.Duration(0), start.StartedAt
	for _, s := range l.Steps {
		if r, ok := s.(*Resume); ok {
			before, from = r.Worked, r.Timestamp
		}
	}
	return before + max(0, l.Steps[len(l.Steps)-1].Header().Timestamp.Sub(from))
}

// Content is a step without its number, time and checksum, in a form that two steps
// share exactly if they say the same.
func Content(s Step) (string, error) {
	h := s.Header()
	kept := *h
	h.Step, h.Timestamp = 0, time.Time{}
	if a, known := actions[reflect.TypeOf(s)]; known {
		h.Action = a
	}
	line, err := durable.EncodeJSON(s, "")
	*h = kept
	return string(line), err
}

// Pointers are what the words of the caller lead to.
type Pointers struct {
	// Given are the addresses in the caller's words, which may be read unsearched.
	Given []string `json:"given,omitempty"`
	// Talk is the conversation that the run continues; nil for one that stands alone.
	Talk *Talk `json:"talk,omitempty"`
}

// Talk is a conversation, as far as those may know it whom the run asks.
type Talk struct {
	// Turns are the runs that went before, the first one first. A rihla has none: it is
	// told the whole question.
	Turns []Turn `json:"turns,omitempty"`
	// Kept is how many documents those runs have stored that can be read again, Searched
	// what they searched for the same question, and Answered that they found an answer to
	// it with no fewer iterations.
	Kept     int      `json:"kept,omitempty"`
	Searched []string `json:"searched,omitempty"`
	Answered bool     `json:"answered,omitempty"`
	// Asked is the question as it was typed, where that of the request is completed.
	Asked string `json:"asked,omitempty"`
}

// Turn is one run of a conversation. One whose findings are private and may not be told
// has nothing but what its caller typed.
type Turn struct {
	TraceID  marchwarden.TraceID `json:"trace_id"`
	Asked    string              `json:"asked"`              // as it was typed
	Question string              `json:"question,omitempty"` // as it was understood
	Short    string              `json:"short,omitempty"`    // the answer in a few words
	Answer   string              `json:"answer,omitempty"`   // its beginning
}
