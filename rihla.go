package marchwarden

// Rihla is one journey: one unit of research work that a principal investigator
// sent to one researcher, and what became of it.
type Rihla struct {
	Researcher string  `json:"researcher"`
	Question   string  `json:"question"`
	Reason     string  `json:"reason"`
	Outcome    string  `json:"outcome"`
	TraceID    TraceID `json:"trace_id,omitzero"`
}
