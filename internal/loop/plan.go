package loop

import (
	"context"
	"fmt"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// checkpoint looks at the clock and the caller. It reports true when gathering
// has to stop, and remembers why.
func (r *run) checkpoint(ctx context.Context, stage string) (bool, error) {
	at := fmt.Sprintf("%s %d", stage, r.state.Iteration+1)
	m, err := replay.Checkpoint(ctx, r.j, at, r.clock)
	if err != nil {
		return false, err
	}
	if m.Interrupted {
		r.interrupted = true
		r.meter.Exhaust("patience of the caller, who stopped the run")
		return true, nil
	}
	return r.meter.Elapsed(m.Elapsed) != nil, nil
}

// plan asks the reasoner for the next searches and opens the next iteration. A
// plan without searches ends the gathering: because it is complete, because the
// reasoner failed, or because the iterations are used up.
func (r *run) plan(ctx context.Context) (reason.Plan, error) {
	r.state.Iteration++
	plan, err := r.cfg.Reasoner.Plan(ctx, r.state)
	if fatal(err) {
		return reason.Plan{}, err
	}
	if err != nil {
		r.gaps = append(r.gaps, marchwarden.GapFor("planning iteration "+fmt.Sprint(r.state.Iteration), err))
		return reason.Plan{}, r.note(&trace.Message{Head: head("planning failed: %v", err), Iteration: r.state.Iteration})
	}
	queries := queriesOf(plan)
	if len(queries) > 0 {
		if _, err := r.meter.Iterate(); err != nil {
			r.leftover = append(r.leftover, queries...)
			return reason.Plan{}, r.note(&trace.Message{Head: head("no iteration is left for: %s", strings.Join(queries, "; ")), Queries: queries})
		}
		if err := r.note(&trace.Iteration{Head: head("iteration %d of at most %d", r.state.Iteration, r.start.Limits.MaxIterations), Iteration: r.state.Iteration}); err != nil {
			return reason.Plan{}, err
		}
	}
	r.live(marchwarden.StagePlan, 0, 0, plan.Decision)
	return plan, r.note(&trace.Message{Head: head("%s", plan.Decision), Iteration: r.state.Iteration, Queries: queries})
}

func queriesOf(p reason.Plan) []string {
	queries := make([]string, len(p.Searches))
	for i, s := range p.Searches {
		queries[i] = s.Query
	}
	return queries
}

func (r *run) note(s trace.Step) error { return r.j.Note(s) }

func head(format string, args ...any) trace.Head {
	return trace.Head{Decision: fmt.Sprintf(format, args...)}
}
