package marchwarden

import "context"

// Researcher answers research requests. A local loop, an MCP client, a cluster
// worker and a principal investigator all are one, so where research runs is a
// wiring choice.
type Researcher interface {
	// Research answers req. It returns a valid, normalised Result whenever there
	// is anything to report: a failed source is a gap, not an error, and a
	// cancelled context ends the work with a partial result. It returns an error
	// only when there is no result: a request that breaks the contract
	// (CodeInvalid) or a record that cannot be written. A Result and an error are
	// never both nil and never both set.
	//
	// Progress goes to sink, which may be nil, from any goroutine and one event at
	// a time; a sink must not block. Events are a courtesy: nothing depends on
	// their arrival. Research is safe for concurrent use.
	Research(ctx context.Context, req Request, sink Sink) (*Result, error)
}

// Sink receives progress.
type Sink func(Event)

// Event is progress of a running research, for people who wait. Nothing has to
// keep it; what must be kept is in the trace.
type Event struct {
	Stage     Stage   `json:"stage"`
	Message   string  `json:"message"` // a short sentence, free of control characters
	Iteration int     `json:"iteration,omitempty"`
	TraceID   TraceID `json:"trace_id,omitzero"`
	// Done and Total count within the stage, when the total is known.
	Done  int `json:"done,omitempty"`
	Total int `json:"total,omitempty"`
	// Rihla numbers the journey of an investigation that the event belongs to,
	// from one, and Researcher says who is on it; both are zero for the
	// investigator's own work and for a single researcher's.
	Rihla      int    `json:"rihla,omitempty"`
	Researcher string `json:"researcher,omitempty"`
	// Draft is the text of the sentences that a model has written so far, "" where an
	// event tells of something else. They are whole but not checked, and in no record;
	// paragraphs are apart by a blank line, and of a long draft it is the end.
	Draft string `json:"draft,omitempty"`
}

// Stage is where in the flow an event happened.
type Stage string

// The stages, in the order of a run.
const (
	StageIndex      Stage = "index"
	StagePlan       Stage = "plan"
	StageSearch     Stage = "search"
	StageFetch      Stage = "fetch"
	StageSynthesize Stage = "synthesize"
	StageCheck      Stage = "check"
	StageDone       Stage = "done"
)
