package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/biblio"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

const exportHelp = `Write a recorded run to a file for others: as a bundle that they can check, as a
report that they can read, or as a list of its sources.

  mwz     a bundle: the result, the traces and everything that was read, in one
          file that 'marchwarden verify' checks anywhere, offline (the default)
  md      a report in Markdown
  html    a report as one page, with the excerpts in their source text
  json    the result, as 'ask --json' prints it
  bibtex, ris, csl
          the sources, for a program that keeps references
  warc    the pages that were fetched, for web archives

Without --format the ending of the file tells. Bundles and archives get a name
of their own without --out; the other formats go to stdout.

A bundle holds everything that was read, your own files too. --sign signs it;
who has the public key can tell with 'marchwarden verify --by' that it is yours.
--new-key makes a pair of keys: FILE, which you keep, and FILE.pub for others.

` + idHelp + `

` + exitStatus

type exportOptions struct {
	out, format           string
	force                 bool
	sign, comment, newKey string
}

func newExport(a *app) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use: "export [flags] ID", Short: "write a run to a file: a bundle to check, a report, its sources", Long: exportHelp,
		Example: "  marchwarden export last\n  marchwarden export last -o answer.html\n  marchwarden export --format bibtex last >> sources.bib\n" +
			"  marchwarden export --new-key ~/.marchwarden/key\n  marchwarden export --sign ~/.marchwarden/key last -o answer.mwz",
		Args: argCount(0, 1, "one trace id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := notBlank(cmd); err != nil {
				return err
			}
			return stopped(cmd.Context(), "nothing was written", a.runExport(cmd.Context(), o, args))
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.out, "out", "o", "", "write to `FILE`; - is stdout")
	f.StringVar(&o.format, "format", "", "`FORMAT` of the file: "+strings.Join(formatNames(), ", "))
	f.BoolVar(&o.force, "force", false, "replace a file that exists")
	f.StringVar(&o.sign, "sign", "", "sign the bundle with the private key in `KEYFILE`")
	f.StringVar(&o.comment, "comment", "", "`TEXT` that the signature covers")
	f.StringVar(&o.newKey, "new-key", "", "make a key to sign with: `FILE` and FILE.pub")
	complete(cmd, "format", formatNames()...)
	return cmd
}

// exportFormat is a form in which a run can leave.
type exportFormat struct {
	name     string
	suffixes []string // of files in it; the first is given to a file without a name
	binary   bool     // for programs only
	write    func(a *app, ctx context.Context, e export, w io.Writer) error
}

// export is what is to be written.
type export struct {
	home string
	from run.Store
	run  *run.Run
	key  *bundle.Key
	o    exportOptions
}

// exportFormats are the formats. A file name is of the first whose suffix it has.
var exportFormats = []exportFormat{
	{"mwz", []string{bundle.Suffix}, true, (*app).exportBundle},
	{"md", []string{".md", ".markdown"}, false, reportIn(report.Markdown)},
	{"html", []string{".html", ".htm"}, false, reportIn(report.HTML)},
	{"csl", []string{".csl.json", ".csl"}, false, listIn(biblio.CSL)},
	{"json", []string{".json"}, false, (*app).exportJSON},
	{"bibtex", []string{".bib", ".bibtex"}, false, listIn(biblio.BibTeX)},
	{"ris", []string{".ris"}, false, listIn(biblio.RIS)},
	{"warc", []string{".warc.gz"}, true, (*app).exportWARC},
}

func formatNames() []string {
	var names []string
	for _, f := range exportFormats {
		names = append(names, f.name)
	}
	return names
}

// formatOf is the format that the flags ask for.
func formatOf(o exportOptions) (exportFormat, error) {
	if o.format == "" && (o.out == "" || o.out == "-") {
		return exportFormats[0], nil
	}
	for _, f := range exportFormats {
		if o.format == f.name {
			return f, nil
		}
		for _, suffix := range f.suffixes {
			if o.format == "" && strings.HasSuffix(strings.ToLower(o.out), suffix) {
				return f, nil
			}
		}
	}
	hint := "use one of " + strings.Join(formatNames(), ", ")
	if o.format == "" {
		return exportFormat{}, invalid("--format", hint, fmt.Sprintf("is missing: the name %q does not tell it", o.out))
	}
	return exportFormat{}, invalid("--format", hint, fmt.Sprintf("there is no format %q", plaintext.Clip(o.format, 40)))
}

func (a *app) runExport(ctx context.Context, o exportOptions, args []string) error {
	if o.newKey != "" {
		if len(args) > 0 || o != (exportOptions{newKey: o.newKey}) {
			return invalid("--new-key", "export with --sign afterwards", "makes a key and exports nothing, so it stands alone")
		}
		return a.makeKey(o.newKey)
	}
	if len(args) == 0 {
		return invalid("ID", "run 'marchwarden traces' to list the ids there are", "is missing")
	}
	if err := notFolder(o.out); err != nil { // whose name tells no format
		return err
	}
	format, err := formatOf(o)
	if err != nil {
		return err
	}
	e := export{o: o}
	switch {
	case format.name != "mwz" && (o.sign != "" || o.comment != ""):
		return invalid("--sign", "", "is for bundles: only --format mwz can be signed")
	case o.sign == "" && o.comment != "":
		return invalid("--comment", "", "is for --sign")
	case o.sign != "":
		key, err := a.readKey(o.sign)
		if err != nil {
			return err
		}
		e.key = &key
	}
	c, rec, id, err := a.openTrace(args[0])
	if err != nil {
		return err
	}
	defer rec.Close()
	e.home, e.from = c.Home(), rec.Store()
	if e.run, err = e.from.Load(id); err != nil {
		return err
	}
	if _, _, err := e.from.Result(ctx, e.run); err != nil && format.name != "warc" { // pages can be there without
		return err
	}
	return a.exportTo(ctx, format, e)
}

// exportTo writes to where the flags say: a file at once or not at all.
func (a *app) exportTo(ctx context.Context, format exportFormat, e export) error {
	path := e.o.out
	if path == "" && format.binary {
		path = "marchwarden-" + shortID(e.run.ID) + format.suffixes[0]
	}
	write := func(w io.Writer) error { return format.write(a, ctx, e, w) }
	if path == "" || path == "-" {
		if format.binary && a.outStyle().Width > 0 {
			return invalid("--out", "give a file, or pipe it into a program", "a terminal cannot show "+format.name)
		}
		if format.name == "json" || format.name == "csl" {
			return write(a.forPrograms())
		}
		return write(a.stdout)
	}
	if err := checkOut(path); err != nil {
		return err
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) && !e.o.force {
		return invalid("--out", "give another name, or --force to replace it", fmt.Sprintf("%q exists", path))
	}
	if err := writeOut(path, write); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "look at %s", path)
	}
	a.note("wrote %s (%s)", path, term.Bytes(info.Size()))
	if format.name == "mwz" {
		a.note("to check it anywhere: marchwarden verify %s", path)
	}
	return nil
}

// exportJSON writes the result as 'ask --json' prints it, marked with when its sources
// were last checked.
func (a *app) exportJSON(ctx context.Context, e export, w io.Writer) error {
	_, res, err := e.from.Result(ctx, e.run)
	if err != nil {
		return err
	}
	if last, ok := a.lastCheck(e); ok {
		res.CheckedAt = &last.CheckedAt
	}
	return printJSON(w, res)
}

// lastCheck is the last check of the cited sources, if there was one. A report of it
// that cannot be read costs no export.
func (a *app) lastCheck(e export) (drift.Report, bool) {
	last, ok, err := drift.Last(e.home, e.run.ID)
	if err != nil {
		a.warn(err.Error())
	}
	return last, ok && err == nil
}

// largeBundle is what takes long enough to be announced, in bytes.
const largeBundle = 100 << 20

// exportBundle writes a bundle, after saying what others will see in it.
func (a *app) exportBundle(ctx context.Context, e export, w io.Writer) error {
	docs, err := e.from.Documents(ctx, e.run)
	if err != nil {
		return err
	}
	a.note("the bundle holds %s", inside(docs))
	size := int64(0)
	for _, ref := range e.run.Refs() {
		info, err := e.from.Blobs.Stat(ctx, ref)
		if err != nil {
			return err
		}
		size += info.Size
	}
	if size > largeBundle {
		a.note("packing %s", term.Bytes(size))
	}
	return bundle.Write(ctx, w, e.from, e.run, bundle.Options{Now: a.Now(), Version: programVersion(), Sign: e.key, Comment: e.o.comment})
}

// inside counts documents by where they are from, in words.
func inside(docs []run.Document) string {
	kinds := []struct{ one, many string }{
		{"web page", "web pages"}, {"paper", "papers"}, {"of your own files", "of your own files"}, {"answer of a database", "answers of a database"},
		{"document of the embedded library", "documents of the embedded library"}, {"document of other researchers", "documents of other researchers"},
	}
	counts := make([]int, len(kinds))
	seen := map[blob.Ref]bool{}
	for _, d := range docs {
		ref := d.Text
		if !ref.Valid() {
			ref = d.Raw
		}
		if seen[ref] { // an investigator has got hold of what a rihla had read
			continue
		}
		seen[ref] = true
		kind := len(kinds) - 1
		switch d.Source {
		case "web":
			kind = 0
		case "arxiv":
			kind = 1
		case "file":
			kind = 2
			if strings.HasPrefix(d.Locator, "embedded:") {
				kind = 4
			}
		case "database":
			kind = 3
		}
		counts[kind]++
	}
	var parts []string
	for i, n := range counts {
		switch {
		case n == 1:
			parts = append(parts, "1 "+kinds[i].one)
		case n > 1:
			parts = append(parts, term.Count(n)+" "+kinds[i].many)
		}
	}
	if len(parts) == 0 {
		return "no document: none was read"
	}
	return strings.Join(parts, ", ")
}
