package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

var resumeHelp = `Resume a run: after a crash, a reboot or Ctrl-C, or with more budget after it
has ended at a cap. What the run did before is taken from its record, and
nothing that was paid for is asked again. A call that was under way when the run
was cut off is made once more, and marked in the trace.

A run that was cut off continues with what is left of its limits. One that ended
at a cap needs more of what it ran out of: --budget, --max-iterations,
--max-sources or --timeout, each of which adds to what it had. A run that had
nothing left to do is shown as it is.

It keeps the researchers, folders and engines that it was begun with. A
database whose address has a password is given again: --db, or MARCHWARDEN_DB.

` + idHelp + ` 'marchwarden traces
--status interrupted' lists what can be resumed.` + exits("0 answered, gaps and plain refusals included", "1 failed: there is no result", "2", "130 interrupted; the partial result is printed")

const resumeExamples = `  marchwarden resume last
  marchwarden resume --budget 20000 0198c0de
  marchwarden resume --json 0198c0de | jq .answer`

func newResume(a *app) *cobra.Command {
	var o askOptions
	cmd := &cobra.Command{
		Use: "resume [flags] ID", Short: "resume a run that was cut off, stopped, or ran out of budget",
		Long: resumeHelp, Example: resumeExamples,
		Args: argCount(1, 1, "one trace id"),
		RunE: a.onRun(func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error {
			return runResume(ctx, a, c, o, rec, id)
		}),
	}
	f := cmd.Flags()
	f.Func("budget", fmt.Sprintf("add `N` tokens to what the run had, at least %d", marchwarden.MinTokenBudget), number(&o.cons.TokenBudget))
	f.Func("max-iterations", "add `N` iterations", number(&o.cons.MaxIterations))
	f.Func("max-sources", "add `N` documents", number(&o.cons.MaxSources))
	f.StringVar(&o.desk.Timeout, "timeout", "", "add this `TIME`, such as 90s")
	f.StringVar(&o.desk.DB, "db", "", "the database at `URL`, if the run had one with a password")
	o.showFlags(f)
	return cmd
}

func runResume(ctx context.Context, a *app, c *settings.Settings, o askOptions, rec *network.Records, id marchwarden.TraceID) error {
	err := checkOut(o.out)
	if err != nil {
		return err
	}
	var log *trace.Log
	if o.desk, log, err = o.desk.Resumed(c, rec, id); err != nil {
		return err
	}
	a.reportTorn(id, log)
	req := marchwarden.Request{Resume: id.String()}
	if o.cons != (marchwarden.Constraints{}) {
		req.Constraints = &o.cons
	}
	if err := byFlag(req.Validate()); err != nil {
		return err
	}
	tellResume(a, log)
	_, err = research(ctx, a, c, o, req)
	return err
}

func tellResume(a *app, log *trace.Log) {
	switch done := log.Complete(); {
	case done == nil:
		a.note("going on after step %d, where the run was cut off", len(log.Steps))
	case done.Interrupted:
		a.note("going on where the run was stopped")
	}
}

// nothingLeft says why a run did not go on.
func nothingLeft(req marchwarden.Request, time bool, res *marchwarden.Result) string {
	switch {
	case !res.CostMetadata.BudgetExhausted && (req.Constraints != nil || time):
		return "no cap has cut the run short: there was nothing left to do with more"
	case res.CostMetadata.BudgetExhausted:
		return "the run has ended at a cap; its gaps say which: to go on, add --budget N, --max-iterations N, --max-sources N or --timeout TIME"
	}
	return "the run has ended, and nothing was left to do"
}

// asMuchAgain are the flags that give a run as much again of what it ran out of, by
// the names that its trace has for the caps.
func asMuchAgain(exhausted []string, start *trace.Start) string {
	had := start.LimitsNow()
	var flags []string
	for _, what := range exhausted {
		switch budget.LimitOf(what) {
		case budget.Tokens:
			flags = append(flags, fmt.Sprintf("--budget %d", had.TokenBudget))
		case budget.Iterations:
			flags = append(flags, fmt.Sprintf("--max-iterations %d", min(had.MaxIterations, marchwarden.MaxIterations)))
		case budget.Sources:
			flags = append(flags, fmt.Sprintf("--max-sources %d", had.MaxSources))
		case budget.Wall:
			flags = append(flags, fmt.Sprintf("--timeout %s", max(time.Second, start.Wall.Round(time.Second))))
		}
	}
	if len(flags) == 0 {
		return fmt.Sprintf("--budget %d", had.TokenBudget)
	}
	slices.Sort(flags)
	return strings.Join(slices.Compact(flags), " ")
}

// stoppable lets the page stop a run that a terminal began, as Ctrl-C does. The run is a new
// one with an id of its own, or the one that resumes.
func stoppable(ctx context.Context, a *app, c *settings.Settings, resume string) (context.Context, func()) {
	id, err := marchwarden.ParseTraceID(resume)
	if err != nil {
		id = a.NewID()
		ctx = marchwarden.WithTraceID(ctx, id)
	}
	ctx, stop := context.WithCancelCause(ctx)
	go runs.HeedStop(ctx, c.RunsPath(), id, func() { stop(errInterrupted) })
	return ctx, func() { stop(nil) }
}
