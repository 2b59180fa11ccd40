package loop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	outcome "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// checkpoint looks at the clock and the caller, and reports true when gathering has to stop.
func (r *run) checkpoint(stage string) (bool, error) {
	iteration := r.state.Iteration
	if r.pending == nil { // or it is planned, and has its number
		iteration++
	}
	m, err := r.look(fmt.Sprintf("%s %d", stage, iteration))
	return err == nil && (m.Interrupted || r.meter.Elapsed(r.start.Counted(m.Elapsed)) != nil), err
}

// look reads the clock and the caller's patience at a named point, and remembers if the caller has stopped the run.
func (r *run) look(at string) (replay.Moment, error) {
	m, err := replay.Checkpoint(r.caller, r.j, at, r.clock)
	if err == nil && m.Interrupted {
		r.state.Interrupted = true
		r.meter.Exhaust("patience of the caller, who stopped the run")
	}
	return m, err
}

// cut finds out whether the caller or a clock ended what was under way.
func (r *run) cut(at, what string) error {
	m, err := r.look(at)
	if err == nil && !m.Interrupted {
		r.meter.Exhaust(budget.TimeFor(what))
	}
	return err
}

// planShare is the part of the time to gather that one plan may take: a model that fails again and again must leave time
// to search and to read without it.
const planShare = 0.5

// plan asks the reasoner what to do next and opens the next iteration. A plan with nothing to do ends the gathering: it is
// complete, the reasoner failed, or the iterations are used up.
func (r *run) plan(ctx context.Context) (reason.Plan, error) {
	ctx, done := replay.Limited(ctx, time.Duration(planShare*float64(r.start.Wall))) // which only the model's calls see
	defer done()
	var plan reason.Plan
	var err error
	if r.pending != nil { // made, and paid for, before the run went on
		plan, r.pending = *r.pending, nil
	} else {
		r.state.Iteration++
		plan, err = r.cfg.Reasoner.Plan(replay.Shield(ctx), r.state)
	}
	if replay.Fatal(err) {
		return reason.Plan{}, err
	}
	if err != nil { // a plan may be there all the same
		if marchwarden.CodeOf(err) == marchwarden.CodeCanceled {
			if err := r.cut(fmt.Sprintf("planning cut %d", r.state.Iteration), "planning"); err != nil {
				return reason.Plan{}, err
			}
		}
		r.failed("planning iteration "+fmt.Sprint(r.state.Iteration), err)
		r.meter.Hold(r.writing(r.meter.Limits().TokenBudget))
		if err := r.j.Note(&trace.Message{Head: head("planning failed: %v", err), Iteration: r.state.Iteration}); err != nil || r.state.Interrupted {
			return reason.Plan{}, err
		}
	}
	if !r.gave {
		r.gave = true
		plan.Reads = append(givenReads(r.state.Given), plan.Reads...)
	}
	queries := queriesOf(plan)
	if len(queries)+len(plan.Reads) > 0 {
		if _, err := r.meter.Iterate(); err != nil {
			return reason.Plan{}, r.postpone(plan)
		}
		if err := r.j.Note(&trace.Iteration{Head: head("iteration %d of at most %d", r.state.Iteration, r.state.Limits.MaxIterations), Iteration: r.state.Iteration}); err != nil {
			return reason.Plan{}, err
		}
	}
	r.live(marchwarden.StagePlan, 0, 0, plan.Decision)
	return plan, r.j.Note(&trace.Message{Head: head("%s", plan.Decision), Iteration: r.state.Iteration, Queries: queries})
}

// postpone keeps a plan for which no iteration is left, in case the run goes on, and says what it would have done.
func (r *run) postpone(plan reason.Plan) error {
	r.pending = &plan
	queries := queriesOf(plan)
	for _, q := range queries {
		r.leave(q)
	}
	for _, rd := range plan.Reads {
		if r.state.Offered(rd.Locator) {
			r.leave(r.name(rd.Locator))
		}
	}
	return r.j.Note(&trace.Message{Head: head("no iteration is left for %d searches and %d documents", len(queries), len(plan.Reads)), Queries: queries})
}

// givenReads reads what the caller named, whatever the mind thinks of it.
func givenReads(given []string) []reason.Read {
	const most = 5
	var reads []reason.Read
	for _, locator := range given[:min(most, len(given))] {
		reads = append(reads, reason.Read{Locator: locator, Reason: "the question names it"})
	}
	return reads
}

func queriesOf(p reason.Plan) []string {
	queries := make([]string, len(p.Searches))
	for i, s := range p.Searches {
		queries[i] = s.Query
	}
	return queries
}

func head(format string, args ...any) trace.Head {
	return trace.Head{Decision: fmt.Sprintf(format, args...)}
}

// extend goes past an end of the gathering, if the run did: what was cut short there may be done now, with what was
// added to its limits. It reports false at the last end.
func (r *run) extend() bool {
	if r.past == len(r.start.Extended) {
		return false
	}
	e := r.start.Extended[r.past]
	r.past++
	r.j.Past(r.past)
	r.meter.Extend(e.Limits(), e.Wall, e.Spent, budget.Dollars(e.SpentUSD))
	limits := r.meter.Limits()
	r.state.Limits, r.state.Past, r.fault = limits, r.past, ""
	r.meter.Hold(r.writing(limits.TokenBudget - r.meter.Usage().Tokens))

	r.state.Interrupted = false
	r.leftover = nil
	r.gaps = slices.DeleteFunc(r.gaps, func(g missed) bool { return g.cut })
	cut := func(err error) bool { return marchwarden.CodeOf(err) == marchwarden.CodeCanceled }
	r.state.Searches = slices.DeleteFunc(r.state.Searches, func(s reason.Searched) bool { return cut(s.Err) })
	maps.DeleteFunc(r.state.Failed, func(locator string, err error) bool {
		if cut(err) {
			delete(r.state.Asked, locator)
		}
		return cut(err)
	})
	return true
}

// catchUp does what was cut short before the run went on, in the iteration in which that was planned.
func (r *run) catchUp(ctx context.Context) error {
	plan := r.undone
	if r.past == 0 || len(plan.Searches)+len(plan.Reads) == 0 {
		return nil
	}
	stop, err := r.checkpoint("going on")
	if err != nil || stop {
		return err
	}
	r.undone = reason.Plan{}
	if err := r.j.Note(&trace.Message{Head: head("do what was left when the run ended before"), Iteration: r.state.Iteration, Queries: queriesOf(plan)}); err != nil {
		return err
	}
	return r.gather(replay.Shield(ctx), plan)
}

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
