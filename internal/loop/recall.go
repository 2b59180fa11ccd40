package loop

import (
	"context"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	outcome "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// conversation is the name of what was stored before, as an engine.
const conversation = "conversation"

// recall completes the question from the conversation that it follows, and reads what that has stored before anything is
// searched. Whether that answers another question than before, the reasoner decides by its next plan.
func (r *run) recall(ctx context.Context) error {
	t := r.start.Talk
	if t == nil {
		return nil
	}
	if len(t.Turns) > 0 {
		if err := r.understand(ctx); err != nil {
			return err
		}
	}
	if t.Kept == 0 {
		return nil
	}
	ctx = replay.Shield(ctx)
	most := r.start.Limits.MaxSources
	if len(t.Searched) == 0 { // another question: half is for what is new
		most = (most + 1) / 2
	}
	q := search.Query{Text: r.start.Request.Question, Limit: min(most, t.Kept), Filter: r.filter}
	hits, err := replay.Engine(r.j, conversation, r.cfg.Kept).Search(ctx, q)
	if replay.Fatal(err) {
		return err
	}
	if err != nil {
		r.addGap(marchwarden.GapFor("what the conversation has stored", err), err)
	}
	if len(hits) == 0 {
		return nil
	}
	for _, query := range t.Searched {
		r.state.Searches = append(r.state.Searches, reason.Searched{Query: query, Reason: "searched for the same question before"})
	}
	r.state.Searches = append(r.state.Searches, reason.Searched{Reason: "stored by the conversation", Hits: hits})
	reads := make([]reason.Read, len(hits))
	for i, h := range hits {
		reads[i] = reason.Read{Locator: h.Locator, Reason: "stored by the conversation"}
	}
	offered, err := r.offered(reads)
	if err != nil {
		return err
	}
	failed, err := r.readOffered(ctx, offered)
	r.planned = err == nil && failed == 0 && t.Answered // nothing is left to look for
	return err
}

func (r *run) understand(ctx context.Context) error {
	thinking, done := replay.Limited(ctx, time.Duration(planShare*float64(r.start.Wall)))
	defer done()
	understood, err := outcome.Understand(replay.Shield(thinking), r.start, r.model)
	if replay.Fatal(err) {
		return err
	}
	if err != nil {
		r.failed("completing the question", err)
	}
	r.start, r.state.Request = understood, understood.Request
	step := &trace.Message{Head: head("understood as: %s", r.start.Request.Question)}
	r.live(marchwarden.StagePlan, 0, 0, step.Decision)
	return r.j.Note(step)
}
