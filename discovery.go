package marchwarden

// DiscoveryEvent is something met on the way that another research could
// follow. It is reported, not acted on, and grounded in a source.
type DiscoveryEvent struct {
	Type DiscoveryType `json:"type"`
	// SuggestedResearcher names the kind of researcher to ask, such as "arxiv".
	SuggestedResearcher string `json:"suggested_researcher,omitempty"`
	Query               string `json:"query"`
	Reason              string `json:"reason"`
	SourceLocator       string `json:"source_locator,omitempty"`
}

// DiscoveryType is the kind of a discovery.
type DiscoveryType string

// The kinds of discovery.
const (
	RelatedResearch       DiscoveryType = "related_research"
	NewSource             DiscoveryType = "new_source"
	ContradictionDetected DiscoveryType = "contradiction"
)

// Known reports whether a type is one of the contract's.
func (t DiscoveryType) Known() bool { return known(t) }

// OpenQuestion is a question that the research raised and did not answer.
type OpenQuestion struct {
	Question      string   `json:"question"`
	Context       string   `json:"context"`
	Priority      Priority `json:"priority"`
	SourceLocator string   `json:"source_locator,omitempty"`
}

// Priority orders open questions.
type Priority string

// The priorities.
const (
	High   Priority = "high"
	Medium Priority = "medium"
	Low    Priority = "low"
)

// Known reports whether a priority is one of the contract's.
func (p Priority) Known() bool { return known(p) }
