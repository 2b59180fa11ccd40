package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/pdf"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

type gcOptions struct {
	keepDays int
	dryRun   bool
	json     bool
	runs     []string
}

func newGc(a *app) *cobra.Command {
	var o gcOptions
	cmd := &cobra.Command{
		Use: "gc", Short: "remove what no run needs, and old runs", Args: noArgs,
		RunE: a.run(func(ctx context.Context, c *settings.Settings, _ []string) error { return runGc(ctx, a, c, o) }),
	}
	countFlag(cmd.Flags(), &o.keepDays, "keep-days", 0, 1, 36500, "remove runs that were last written more than `N` days ago")
	cmd.Flags().StringArrayVar(&o.runs, "run", nil, "remove the run with this `ID`, and what it asked of researchers; may be repeated")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "say what would go, and remove nothing")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// gcReport is the form of 'gc --json'. Fields are only ever added.
type gcReport struct {
	Plan    *record.Plan      `json:"plan"`
	Removed *record.Collected `json:"removed,omitempty"` // not of a dry run
}

func runGc(ctx context.Context, a *app, c *settings.Settings, o gcOptions) error {
	collect := record.CollectOptions{Now: a.Now(), Older: time.Duration(o.keepDays) * 24 * time.Hour}
	if len(o.runs) > 0 && o.keepDays > 0 {
		return invalid("--run", "", "removes just the runs that it names; leave out --keep-days")
	}
	rec, err := a.OpenKept(c)
	if marchwarden.CodeOf(err) == marchwarden.CodeNotFound && len(o.runs) == 0 {
		a.note("%s", err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	defer rec.Close()
	for _, arg := range o.runs {
		id, err := run.FindID(rec.Traces, arg)
		if err != nil {
			return err
		}
		collect.Runs = append(collect.Runs, id)
	}
	plan, err := rec.Home(c).PlanCollection(ctx, collect)
	if err == nil && !o.json {
		err = printPlan(a, plan, o)
	}
	r := gcReport{Plan: plan}
	if err == nil && !o.dryRun {
		var gone record.Collected
		gone, err = plan.Run(ctx)
		err = errors.Join(err, pdf.Forget(c.CachePath(), a.Now().AddDate(0, 0, -30)))
		if r.Removed = &gone; !o.json {
			err = errors.Join(err, a.print("removed: %s with %s, %s, %s in all\n", term.Plural(gone.Families, "run"), term.Plural(gone.Traces, "trace"),
				term.Plural(gone.Blobs, "stored piece"), term.Bytes(gone.Bytes)))
		}
	}
	if o.json && plan != nil {
		err = errors.Join(err, printJSON(a.forPrograms(), r))
	}
	if err != nil && ctx.Err() != nil {
		return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: "not all was removed", Err: errInterrupted}
	}
	return err
}

func printPlan(a *app, p *record.Plan, o gcOptions) error {
	rows := make([][]string, len(p.Families))
	for i, f := range p.Families {
		state := run.Complete
		switch {
		case f.Unreadable:
			state = run.Damaged
		case !f.Finished:
			state = run.Interrupted
		}
		rows[i] = []string{f.IDs[0].String(), a.inZone(f.Last), term.Count(len(f.IDs)), string(state), f.Question}
	}
	if len(rows) > 0 {
		if err := a.outStyle().Table(a.stdout, []string{"removes", "last written", "traces", "status", "question"}, rows); err != nil {
			return err
		}
	}
	for i, why := range []string{"they are going on, or may be part of what does: %s", "a trace cannot be read: %s; see 'marchwarden check'", "watched questions are compared with them: %s"} {
		if n := []int{p.Running, p.Sealed, p.Watched}[i]; n > 0 {
			a.note("kept because "+why, term.Plural(n, "run"))
		}
	}
	if p.Spared > 0 {
		a.note("kept because they were used in the last hour, or since a run that is going on began: %s", term.Plural(p.Spared, "stored piece"))
	}
	will := "goes"
	if o.dryRun {
		will = "would go"
	}
	return a.print("%s: %s and %s; %s of %s stay\n", will, term.Plural(len(p.Families), "run"), term.Plural(p.Blobs, "stored piece"), term.Bytes(p.After), term.Bytes(p.Before))
}
