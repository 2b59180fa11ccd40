package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

func newResume(a *app) *cobra.Command {
	var o askOptions
	cmd := &cobra.Command{
		Use: "resume [flags] ID", Short: "resume a run that was cut off, stopped, or ran out of budget",
		Args: argCount(1, 1, "one trace id"),
		RunE: a.onRun(func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error {
			return runResume(ctx, a, c, o, rec, id)
		}),
	}
	f := cmd.Flags()
	f.Func("budget", fmt.Sprintf("add `N` tokens to what the run had, at least %d", marchwarden.MinTokenBudget), number(&o.cons.TokenBudget))
	f.Func("max-iterations", "add `N` iterations", number(&o.cons.MaxIterations))
	f.Func("max-sources", "add `N` documents", number(&o.cons.MaxSources))
	f.Func("max-cost", "add `USD` to what its models may cost", dollars(&o.cons.MaxCostUSD))
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
