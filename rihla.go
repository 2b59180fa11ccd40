package marchwarden

// Rihla is one journey: one unit of research work that a principal investigator
// sent to one researcher, and what became of it. Rihlas are numbered from one in
// the order of a result's list.
type Rihla struct {
	Researcher string  `json:"researcher"`
	Question   string  `json:"question"`
	Reason     string  `json:"reason"`
	Outcome    string  `json:"outcome"`
	TraceID    TraceID `json:"trace_id,omitzero"`

	// Parent is the number of the rihla whose report led to this one; 0 for those
	// of the plan.
	Parent      int     `json:"parent,omitempty"`
	Citations   int     `json:"citations,omitempty"` // of its report that stood the check
	TokensUsed  int     `json:"tokens_used,omitempty"`
	WallTimeSec float64 `json:"wall_time_sec,omitempty"`
}

// Decision is what an investigator did about one thing that a rihla reported.
type Decision struct {
	// About is what kind of report it was: a gap's category, a discovery's type,
	// or "open_question".
	About string `json:"about"`
	Topic string `json:"topic"`
	// From is the number of the rihla that reported it.
	From   int    `json:"from"`
	Action Action `json:"action"`
	Reason string `json:"reason"`
	// Rihla is the number of the rihla that it led to; 0 for none.
	Rihla int `json:"rihla,omitempty"`
}

// Action is what was done about a report.
type Action string

// The actions.
const (
	Dispatched Action = "dispatched" // a further rihla was sent
	Accepted   Action = "accepted"   // taken as it is
	Flagged    Action = "flagged"    // for a person to look at
	Withheld   Action = "withheld"   // following it would have told private things to others
	Capped     Action = "capped"     // a limit of the investigation left no room for it
)
