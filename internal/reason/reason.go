// Package reason decides what to look at next and writes claims that cite
// passages by id. It owns the Reasoner interface and its values. A reasoner
// reaches nothing outside the process by itself: the loop runs the searches and
// fetches it asks for, and the grounding gate cuts the excerpts.
package reason

import (
	"context"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// State is what is known at a point of a run. The loop owns it and changes it
// between calls only; a reasoner reads it and charges the meter.
type State struct {
	Request   marchwarden.Request
	Limits    marchwarden.Limits
	Now       time.Time // when the run started; the only clock a reasoner has
	Iteration int       // from 1
	Searches  []Searched
	Evidence  *evidence.Set
	Failed    map[string]error // locators that could not be read, and why
	Meter     *budget.Meter
}

// Searched is a search that was run and what it gave.
type Searched struct {
	Query     string
	Reason    string
	Iteration int
	Hits      []search.Hit
	Err       error // nil unless the engine failed
}

// Plan is what to search in one iteration. A plan without searches ends the
// gathering.
type Plan struct {
	Searches []Search
	Decision string // a sentence for people: why these, or why stop
	// Complete reports, of a plan without searches, whether nothing is left to
	// look for (true) or the reasoner has merely no further idea (false).
	Complete bool
}

// Search is one query to run.
type Search struct {
	Query  string
	Reason string
}

// Read is one hit chosen for reading.
type Read struct {
	Locator string
	Reason  string
}

// Draft is what the reasoner wants to say. Nothing in it is trusted: the gate
// drops passage ids that do not exist and sentences without support.
type Draft struct {
	Claims         []Claim
	Refusal        string // why there is no answer; set when Claims is empty
	Gaps           []marchwarden.Gap
	Discoveries    []marchwarden.DiscoveryEvent
	OpenQuestions  []marchwarden.OpenQuestion
	Contradictions []marchwarden.Contradiction
	// Match is how much of what was asked the chosen evidence speaks to, 0 to 1;
	// it becomes query_specificity_match.
	Match float64
}

// Claim is one sentence of the answer and the passages it rests on.
type Claim struct {
	Text      string // one sentence, Markdown, without markers
	Passages  []evidence.ID
	Spans     []marchwarden.Span // where in each passage's document the support stands; nil = the whole passage
	Paragraph bool               // begins a new paragraph
	Support   marchwarden.Support
}

// Reasoner is the mind of a researcher. Implementations are deterministic given
// the state and the model calls they make, so that a run can be replayed.
type Reasoner interface {
	// ID names the mind and its version, such as "extractive/1"; it becomes
	// cost_metadata.model_id.
	ID() string
	// Plan says what to search in this iteration, or that gathering is over.
	Plan(ctx context.Context, s *State) (Plan, error)
	// Choose picks which of the hits to read, best first. The loop cuts the list
	// at the sources that are left and never reads a locator twice.
	Choose(ctx context.Context, s *State, hits []search.Hit) ([]Read, error)
	// Write answers from the evidence. It spends tokens through the state's
	// meter and must leave the budget whole when it cannot.
	Write(ctx context.Context, s *State) (Draft, error)
}
