package marchwarden

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
