package bundle

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/biblio"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// Format is a form in which a run can leave.
type Format struct {
	Name     string
	About    string   // what it is for
	Type     string   // its media type
	Suffixes []string // of files in it; the first is given to a file without a name
	Binary   bool     // for programs only

	// Write writes a run in the format.
	Write func(context.Context, Export, io.Writer) error
}

// Export is a run to be written, and what hears of it. Options.Now, Note, Warn and When are required.
type Export struct {
	From run.Store
	Run  *run.Run
	Home string // where the checks of its sources are kept
	Options

	// Print prints a page of HTML to PDF by a browser; nil where there is none.
	Print func(ctx context.Context, html string) ([]byte, error)

	Note func(format string, args ...any)
	Warn func(message string)
	When func(time.Time) string // a time, in words
}

// Formats are the formats. A file name is of the first whose suffix it has.
func Formats() []Format {
	return []Format{
		{"mwz", "a bundle that anybody can check, offline", "application/zip", []string{Suffix}, true, exportBundle},
		{"md", "a report in Markdown", "text/markdown; charset=utf-8", []string{".md", ".markdown"}, false, reportIn(report.Markdown)},
		{"html", "a report as one page", "text/html; charset=utf-8", []string{".html", ".htm"}, false, reportIn(report.HTML)},
		{"pdf", "a report to print", "application/pdf", []string{".pdf"}, true, exportPDF},
		{"json", "the result as JSON", "application/json", []string{".json"}, false, exportJSON},
		{"bibtex", "the sources as BibTeX", "text/plain; charset=utf-8", []string{".bib", ".bibtex"}, false, exportBibTeX},
	}
}

// FormatNames are the names of the formats.
func FormatNames() []string {
	var names []string
	for _, f := range Formats() {
		names = append(names, f.Name)
	}
	return names
}

// FormatOf is the format with a name or, if that is "", the one that a file's name tells;
// ok is false if there is none.
func FormatOf(name, file string) (f Format, ok bool) {
	for _, f := range Formats() {
		if name == f.Name {
			return f, true
		}
		for _, suffix := range f.Suffixes {
			if name == "" && strings.HasSuffix(strings.ToLower(file), suffix) {
				return f, true
			}
		}
	}
	return Format{}, false
}

// checked is the last check of the cited sources. One that cannot be read costs no export.
func (e Export) checked() (drift.Report, bool) {
	last, ok, err := drift.Last(e.Home, e.Run.ID)
	if err != nil {
		e.Warn(err.Error())
	}
	return last, ok && err == nil
}

// exportJSON writes the result as 'ask --json' does, with when its sources were checked.
func exportJSON(ctx context.Context, e Export, w io.Writer) error {
	_, res, err := e.From.Result(ctx, e.Run)
	if err != nil {
		return err
	}
	if last, ok := e.checked(); ok {
		res.CheckedAt = &last.CheckedAt
	}
	data, err := durable.EncodeJSON(res, "  ")
	if err == nil {
		_, err = w.Write(data)
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print JSON")
}

// exportBundle writes a bundle, after saying what others will see in it.
func exportBundle(ctx context.Context, e Export, w io.Writer) error {
	docs, err := e.From.Documents(ctx, e.Run)
	if err != nil {
		return err
	}
	e.Note("the bundle holds %s", inside(docs))
	for _, ref := range e.Run.Refs() { // before the first byte is written, which may go down a pipe
		if _, err := e.From.Blobs.Stat(ctx, ref); err != nil {
			return err
		}
	}
	return Write(ctx, w, e.From, e.Run, e.Options)
}

// reportIn exports a report on a run. Nothing is written if the run has no result
// yet. What is damaged in the record is warned of: the report says it, too.
func reportIn(write func(io.Writer, *report.Report) error) func(context.Context, Export, io.Writer) error {
	return func(ctx context.Context, e Export, w io.Writer) error {
		r, err := report.Gather(ctx, e.From, e.Run)
		if err != nil {
			return err
		}
		if last, ok := e.checked(); ok {
			r.Result.CheckedAt, r.Checked = &last.CheckedAt, last.Summary(e.When(last.CheckedAt))
		}
		for _, problem := range r.Problems {
			e.Warn("the record is damaged: " + problem)
		}
		for i, src := range r.Sources {
			if src.Problem != "" {
				e.Warn(fmt.Sprintf("citation [%d] does not stand: %s", i+1, src.Problem))
			}
		}
		return marchwarden.Wrap(write(w, r), marchwarden.CodeUnavailable, "write the report")
	}
}

// exportPDF has a browser print the page of a report.
func exportPDF(ctx context.Context, e Export, w io.Writer) error {
	if e.Print == nil {
		return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "a PDF is printed by Chromium or Chrome, and none can be used on this machine", Hint: "export html, and print that from any browser"}
	}
	return reportIn(func(w io.Writer, r *report.Report) error {
		var page strings.Builder
		if err := report.HTML(&page, r); err != nil {
			return err
		}
		pdf, err := e.Print(ctx, page.String())
		if err == nil {
			_, err = w.Write(pdf)
		}
		return err
	})(ctx, e, w)
}

func exportBibTeX(ctx context.Context, e Export, w io.Writer) error {
	return reportIn(func(w io.Writer, r *report.Report) error {
		if len(r.Result.Citations) == 0 {
			e.Warn("the result cites nothing, so the list of sources is empty")
		}
		return biblio.BibTeX(w, r.Entries())
	})(ctx, e, w)
}
