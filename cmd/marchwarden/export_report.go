package main

import (
	"context"
	"fmt"
	"io"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/biblio"
)

// reportIn exports a report on a run. Nothing is written if the run has no result
// yet. What is damaged in the record is warned of: the report says it, too.
func reportIn(write func(io.Writer, *report.Report) error) func(*app, context.Context, export, io.Writer) error {
	return func(a *app, ctx context.Context, e export, w io.Writer) error {
		r, err := report.Gather(ctx, e.from, e.run)
		if err != nil {
			return err
		}
		if last, ok := a.lastCheck(e); ok {
			r.Result.CheckedAt, r.Checked = &last.CheckedAt, a.driftSummary(last)
		}
		for _, problem := range r.Problems {
			a.warn("the record is damaged: " + problem)
		}
		for i, src := range r.Sources {
			if src.Problem != "" {
				a.warn(fmt.Sprintf("citation [%d] does not stand: %s", i+1, src.Problem))
			}
		}
		return marchwarden.Wrap(write(w, r), marchwarden.CodeUnavailable, "write the report")
	}
}

// listIn exports the list of a run's sources.
func listIn(write func(io.Writer, []biblio.Entry) error) func(*app, context.Context, export, io.Writer) error {
	return func(a *app, ctx context.Context, e export, w io.Writer) error {
		return reportIn(func(w io.Writer, r *report.Report) error {
			if len(r.Result.Citations) == 0 {
				a.warn("the result cites nothing, so the list of sources is empty")
			}
			return write(w, r.Entries())
		})(a, ctx, e, w)
	}
}
