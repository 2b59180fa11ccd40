package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/biblio"
)

// reportFormats are the formats that exportReport writes, in the order of the help.
var reportFormats = []string{"md", "html", "bibtex", "ris", "csl"}

// reportWriter writes a report in a format, or is nil if there is no such format.
func reportWriter(format string) func(io.Writer, *report.Report) error {
	entries := func(write func(io.Writer, []biblio.Entry) error) func(io.Writer, *report.Report) error {
		return func(w io.Writer, r *report.Report) error { return write(w, r.Entries()) }
	}
	switch format {
	case "md":
		return report.Markdown
	case "html":
		return report.HTML
	case "bibtex":
		return entries(biblio.BibTeX)
	case "ris":
		return entries(biblio.RIS)
	case "csl":
		return entries(biblio.CSL)
	}
	return nil
}

// exportReport writes a report on a run, or the list of its sources, to w. Nothing
// is written if the run has no result yet, which is CodeUnsupported with a hint on
// how to go on, or if there is no such format, which is CodeInvalid. What is damaged
// in the record is warned of: the report says it, too.
func (a *app) exportReport(ctx context.Context, format string, e export, w io.Writer) error {
	write := reportWriter(format)
	if write == nil {
		return invalid("--format", "use one of "+strings.Join(reportFormats, ", "), fmt.Sprintf("%q is no format of a report", format))
	}
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
	if len(r.Result.Citations) == 0 && format != "md" && format != "html" {
		a.warn("the result cites nothing, so the list of sources is empty")
	}
	return marchwarden.Wrap(write(w, r), marchwarden.CodeUnavailable, "write the %s report", format)
}
