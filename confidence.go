package marchwarden

// ConfidenceFactors are what the confidence was computed from.
type ConfidenceFactors struct {
	// NumCorroboratingSources counts independent origins, not pages.
	NumCorroboratingSources int       `json:"num_corroborating_sources"`
	SourceAuthority         Authority `json:"source_authority"`
	ContradictionDetected   bool      `json:"contradiction_detected"`
	// QuerySpecificityMatch is how much of what was asked the evidence speaks to.
	QuerySpecificityMatch Unit `json:"query_specificity_match"`
	BudgetExhausted       bool `json:"budget_exhausted"`
	// Recency is omitted when no cited source carries a date.
	Recency Recency `json:"recency,omitempty"`
}

// Authority is the standing of the cited sources taken together.
type Authority string

// The authorities.
const (
	HighAuthority   Authority = "high"
	MediumAuthority Authority = "medium"
	LowAuthority    Authority = "low"
)

// Recency is the age of the newest dated source cited; "" is unknown.
type Recency string

// The recencies.
const (
	Current Recency = "current" // under one year
	Recent  Recency = "recent"  // one to three years
	Dated   Recency = "dated"   // over three years
)
