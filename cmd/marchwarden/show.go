package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

type showOptions struct{ json, verbose bool }

func newShow(a *app) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use: "show [flags] ID", Short: "show an answer with the evidence behind each sentence",
		Args: argCount(1, 1, "one trace id"),
		RunE: a.onRun(func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error {
			return runShow(ctx, a, c, o, rec, id)
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print the result as JSON, as 'ask --json' does")
	cmd.Flags().BoolVar(&o.verbose, "verbose", false, "show hashes, spans and how each text was got, too")
	return cmd
}

func runShow(ctx context.Context, a *app, c *settings.Settings, o showOptions, rec *network.Records, id marchwarden.TraceID) error {
	if busy, err := rec.Traces.Busy(id); err != nil {
		return err
	} else if busy {
		return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: fmt.Sprintf("run %s is going on", id), Hint: "to watch it: marchwarden ui"}
	}
	store := rec.Store()
	past, err := store.Load(id)
	if err != nil {
		return err
	}
	if past.Log.Latest() == nil {
		return &marchwarden.Error{Code: marchwarden.CodeUnsupported, Message: fmt.Sprintf("run %s was cut off, and has no answer", id), Hint: "resume it: marchwarden resume " + shortID(id)}
	}
	r, err := report.Gather(ctx, store, past)
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(a.forPrograms(), r.Result)
	}
	if last, ok, err := drift.Last(c.Home(), id); err != nil {
		a.warn(err.Error())
	} else if ok {
		r.Checked = last.Summary(a.inZone(last.CheckedAt))
	}
	what := report.ReadingOptions{Verbose: o.verbose}
	_, searched := spentOf(store, r.Result, past.Start)
	what.Searched = strings.Join(searched, ", ")
	what.Cost = report.Price(r.Result.CostMetadata.CostUSD)
	switch end := past.Log.Complete(); {
	case end == nil:
		what.Notices = append(what.Notices, "the run went on after this result, and was cut off; to resume it: marchwarden resume "+shortID(id))
	case end.Interrupted:
		what.Notices = append(what.Notices, "the run was stopped, and the result is partial; to resume it: marchwarden resume "+shortID(id))
	}
	return report.Reading(a.stdout, a.outStyle(), r, what)
}
