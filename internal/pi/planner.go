package pi

import (
	"context"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// Planner is the part of an investigator's mind that decides whom to ask what. It
// proposes; the investigator caps, refuses what is private or was asked before,
// and records. Implementations are deterministic given what they are told and the
// model calls they make.
type Planner interface {
	// ID names the planner and its version, such as "derive/1".
	ID() string
	// Plan proposes the first rihlas, the most important first. It sees the
	// question and the members, nothing that was found. A plan may come with an
	// error: what failed, and how to go on all the same.
	Plan(ctx context.Context, b *Brief) ([]Sending, error)
	// Follow proposes rihlas that a report leads to, such as the next hop of a
	// chain, beside what the follow-up policy does about its gaps, discoveries and
	// open questions. No proposal is the usual one.
	Follow(ctx context.Context, b *Brief, r Report) ([]Sending, error)
}

// Brief is what a planner knows. The investigator owns it; a planner changes
// nothing in it.
type Brief struct {
	Request marchwarden.Request
	Limits  marchwarden.Limits
	Now     time.Time
	Members []dispatch.Member
	// Untold names members whose Scope no model may be shown: it says what is in
	// sources of the user's own, such as the columns of tables, and what a plan asks
	// goes out to everybody.
	Untold []string
	// Most is how many rihlas there may still be.
	Most int
	// Asked are the rihlas so far, in order.
	Asked []Sending
	// Model is metered; nil for a planner without one, and once there are things
	// that the model must not be shown. Scale and Nonce are as in
	// reason.State.
	Model llm.Model
	Meter *budget.Meter
	Scale func() float64
	Nonce string
}

// Sending is one rihla that is proposed.
type Sending struct {
	Researcher string // a member's name
	Question   string // 1 to 500 characters, whole: the researcher knows nothing else
	Reason     string // a few words for people
}

// Report is what came back from a rihla, as far as it stood the check.
type Report struct {
	Number    int
	Sent      Sending
	Citations []marchwarden.Citation
	Gaps      []marchwarden.Gap
}
