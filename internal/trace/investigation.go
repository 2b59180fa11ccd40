package trace

import (
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// Investigation is the part of a start that only an investigator has.
type Investigation struct {
	Members  []dispatch.Member `json:"members"` // as the investigation found them
	Planner  string            `json:"planner"`
	Logic    string            `json:"logic,omitempty"` // how the investigator works; "" for the first
	Parallel int               `json:"parallel"`
	// MaxRihlas and MaxDepth cap how many journeys there are, and how many lead
	// to one another.
	MaxRihlas int `json:"max_rihlas"`
	MaxDepth  int `json:"max_depth"`
	// AllowEgress names the members whose findings may be told to others.
	AllowEgress []string `json:"allow_egress,omitempty"`
	// PlanOnly ends the run with its plan.
	PlanOnly bool `json:"plan_only,omitempty"`
	// ModelSeesPrivate says that the model was named by the user, and not merely
	// found: it may be shown what came from private sources.
	ModelSeesPrivate bool `json:"model_sees_private,omitempty"`
	// Clarify says, of a run of an earlier version, that the model might ask the user questions before it planned.
	Clarify bool `json:"clarify,omitempty"`
}

// Clarified is what the user of an earlier version answered to the questions of a model, "" to one that was passed over.
type Clarified struct {
	Head
	Effect
	Questions []string `json:"questions"`
	Answers   []string `json:"answers,omitempty"`
	// After is when the answers were there, and Took how long the user needed: no time of the run's.
	After       time.Duration `json:"after_ns"`
	Took        time.Duration `json:"took_ns"`
	Interrupted bool          `json:"interrupted,omitempty"`
}

// Plan is what an investigator begins with.
type Plan struct {
	Head
	Rihlas []Sending `json:"rihlas"`
}

// Sending is one journey that was decided on.
type Sending struct {
	Researcher string `json:"researcher"` // a member's name
	Question   string `json:"question"`   // whole: the researcher knows nothing else
	Reason     string `json:"reason"`     // a few words for people
}

// Rihla sends a researcher on a journey.
type Rihla struct {
	Head
	Begun
	Number     int    `json:"number"`
	Researcher string `json:"researcher"`
	Question   string `json:"question"`
	Reason     string `json:"reason"`
	Parent     int    `json:"parent,omitempty"`
	// TraceID is of the run that a researcher of this program is told to make of it: a process that
	// resumes the investigation can resume that run, too.
	TraceID marchwarden.TraceID `json:"trace_id,omitzero"`
}

// RihlaUnderWay names the run that a researcher began for a journey, if it is another
// than it was told to make.
type RihlaUnderWay struct {
	Head
	Number  int                 `json:"number"`
	TraceID marchwarden.TraceID `json:"trace_id"`
}

// RihlaComplete is a researcher's report, or why there is none.
type RihlaComplete struct {
	Head
	Effect
	Number     int                 `json:"number"`
	Researcher string              `json:"researcher"`
	TraceID    marchwarden.TraceID `json:"trace_id,omitzero"` // of the researcher's own run
	Citations  int                 `json:"citations"`
	Gaps       int                 `json:"gaps"`
	TokensUsed int                 `json:"tokens_used"`
	CostUSD    float64             `json:"cost_usd,omitempty"` // of one of this program, as far as it is known
}

// Arrival says which report was looked at next. The order in which reports come
// in is an effect like any other, so that a rerun meets them in the same one.
type Arrival struct {
	Head
	Effect
	Number      int  `json:"number"`
	Interrupted bool `json:"interrupted,omitempty"`
}

// Decision is what was done about one thing that a rihla reported.
type Decision struct {
	Head
	What marchwarden.Decision `json:"what"`
}

// Evidence is a cited document as the investigator got hold of it.
type Evidence struct {
	Head
	Effect
	Member      string   `json:"member"`
	Locator     string   `json:"locator"`
	ContentHash blob.Ref `json:"content_hash"` // of the stored text; "" when there is none
	How         string   `json:"how"`          // stored, refetched or reported
}

// EmbedComplete is the sentence vectors that a service gave, which earlier versions asked.
type EmbedComplete struct {
	Head
	Effect
	Model    string `json:"model"`
	TokensIn int    `json:"tokens_in"` // that were charged
}
