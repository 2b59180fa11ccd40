package main

import (
	"context"
	"io"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web"
)

var _ web.Tests = (*bureau)(nil)

// Rerun executes a run again on its record.
func (b *bureau) Rerun(ctx context.Context, id marchwarden.TraceID) (same bool, words string, err error) {
	log, err := b.records.Traces.Load(id)
	if err != nil {
		return false, "", err
	}
	vs, err := b.a.OpenVectors(b.c)
	if err != nil {
		return false, "", err
	}
	defer vs.Close() // it was only read from, or costs nothing but time
	again, err := rerunOf(ctx, log, b.records.Blobs, vs.Of)
	if err != nil || again.Same() {
		return err == nil, "", err
	}
	return false, difference(again.Want, again.Got), nil
}

// Drift fetches the sources of a run again and keeps what came of it.
func (b *bureau) Drift(ctx context.Context, id marchwarden.TraceID, told func()) (drift.Report, error) {
	o := driftOptions{quiet: true, context: usualContext, timeout: usualPatience, library: b.base.Library, told: func(drift.Source) { told() }}
	rep, err := b.a.checkDrift(ctx, b.c, o, b.records.Store(), id)
	if err != nil {
		return rep, err
	}
	return rep, drift.Keep(b.c.Home(), rep)
}

// Drifted is what the last check found.
func (b *bureau) Drifted(id marchwarden.TraceID) (drift.Report, string, bool) {
	last, ok, err := drift.Last(b.c.Home(), id)
	if err != nil {
		b.log.Warn("a check of sources cannot be read", "error", err)
	}
	if !ok || err != nil {
		return drift.Report{}, "", false
	}
	return last, b.a.driftSummary(last), true
}

// formatsAbout says what each form is for, and its media type.
var formatsAbout = map[string]struct{ about, kind string }{
	"mwz":    {"a bundle that anybody can check, offline", "application/zip"},
	"md":     {"a report in Markdown", "text/markdown; charset=utf-8"},
	"html":   {"a report as one page", "text/html; charset=utf-8"},
	"csl":    {"the sources as CSL-JSON", "application/json"},
	"json":   {"the result as JSON", "application/json"},
	"bibtex": {"the sources as BibTeX", "text/plain; charset=utf-8"},
	"ris":    {"the sources as RIS", "text/plain; charset=utf-8"},
	"warc":   {"the fetched pages as a web archive", "application/gzip"},
}

// Formats are the forms in which a run can leave.
func (b *bureau) Formats() []web.Format {
	var out []web.Format
	for _, f := range exportFormats {
		about := formatsAbout[f.name]
		out = append(out, web.Format{Name: f.name, About: about.about, Suffix: f.suffixes[0], Type: about.kind})
	}
	return out
}

// Export writes a run in one of them.
func (b *bureau) Export(ctx context.Context, id marchwarden.TraceID, format string, w io.Writer) error {
	f, err := formatOf(exportOptions{format: format})
	if err != nil {
		return err
	}
	e := export{home: b.c.Home(), from: b.records.Store()}
	if e.run, err = e.from.Load(id); err != nil {
		return err
	}
	return f.write(b.a, ctx, e, w)
}
