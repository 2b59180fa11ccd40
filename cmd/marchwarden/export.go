package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/biblio"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

type exportOptions struct {
	out, format, cite     string
	force                 bool
	sign, comment, newKey string
}

func newExport(a *app) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use: "export [flags] ID", Short: "write a run to a file: a bundle to check, a report, its sources",
		Args: argCount(0, 1, "one trace id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return stopped(cmd.Context(), "nothing was written", runExport(cmd, a, o, args))
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.out, "out", "o", "", "write to `FILE`; - is stdout")
	f.StringVar(&o.format, "format", "", "`FORMAT` of the file: "+strings.Join(bundle.FormatNames(), ", "))
	f.StringVar(&o.cite, "cite", "", "`STYLE` of the references: "+strings.Join(biblio.Styles(), ", ")+" (default ieee)")
	f.BoolVar(&o.force, "force", false, "replace a file that exists")
	f.StringVar(&o.sign, "sign", "", "sign the bundle with the private key in `KEYFILE`")
	f.StringVar(&o.comment, "comment", "", "`TEXT` that the signature covers")
	f.StringVar(&o.newKey, "new-key", "", "make a key to sign with: `FILE` and FILE.pub")
	complete(cmd, "format", bundle.FormatNames()...)
	complete(cmd, "cite", biblio.Styles()...)
	return cmd
}

func formatOf(o exportOptions) (bundle.Format, error) {
	if o.format == "" && (o.out == "" || o.out == "-") {
		return bundle.Formats()[0], nil
	}
	f, ok := bundle.FormatOf(o.format, o.out)
	hint := "use one of " + strings.Join(bundle.FormatNames(), ", ")
	switch {
	case ok:
		return f, nil
	case o.format == "":
		return f, invalid("--format", hint, fmt.Sprintf("is missing: the name %q does not tell it", o.out))
	}
	return f, invalid("--format", hint, fmt.Sprintf("there is no format %q", plaintext.Clip(o.format, 40)))
}

func exportOf(a *app, c *settings.Settings, from run.Store, past *run.Run) bundle.Export {
	return bundle.Export{From: from, Run: past, Home: c.Home(), Options: bundle.Options{Now: a.Now(), Version: programVersion()}, Note: a.note, Warn: a.warn, When: a.inZone, Print: network.Printer(c)}
}

func runExport(cmd *cobra.Command, a *app, o exportOptions, args []string) error {
	if o.newKey != "" {
		if len(args) > 0 || o != (exportOptions{newKey: o.newKey}) {
			return invalid("--new-key", "export with --sign afterwards", "makes a key and exports nothing, so it stands alone")
		}
		return makeKey(a, o.newKey)
	}
	if len(args) == 0 {
		return invalid("ID", "run 'marchwarden traces' to list the ids there are", "is missing")
	}
	if err := settings.NotFolder(o.out); err != nil { // whose name tells no format
		return err
	}
	format, err := formatOf(o)
	if err != nil {
		return err
	}
	var key *bundle.Key
	switch {
	case o.cite != "" && !slices.Contains(biblio.Styles(), o.cite):
		return invalid("--cite", "use one of "+strings.Join(biblio.Styles(), ", "), fmt.Sprintf("there is no style %q", plaintext.Clip(o.cite, 40)))
	case o.cite != "" && !slices.Contains([]string{"md", "html", "docx", "pdf"}, format.Name):
		return invalid("--cite", "", "is for reports: md, html, docx and pdf")
	case format.Name != "mwz" && (o.sign != "" || o.comment != ""):
		return invalid("--sign", "", "is for bundles: only --format mwz can be signed")
	case o.sign == "" && o.comment != "":
		return invalid("--comment", "", "is for --sign")
	case o.sign != "":
		private, err := bundle.ReadKeyFile("--sign", o.sign)
		if err != nil {
			return err
		}
		if info, err := os.Stat(o.sign); err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
			a.warn(fmt.Sprintf("others on this machine can read the key %s; chmod 600 makes it yours alone", o.sign))
		}
		key = &private
	}
	return a.onRun(func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error {
		past, err := rec.Store().Load(id)
		if err != nil {
			return err
		}
		e := exportOf(a, c, rec.Store(), past)
		e.Sign, e.Comment, e.Cite = key, o.comment, biblio.Style(o.cite)
		if _, _, err := e.From.Result(ctx, past); err != nil {
			return err
		}
		return exportTo(ctx, a, format, e, o)
	})(cmd, args)
}

// exportTo writes to where the flags say: a file at once or not at all.
func exportTo(ctx context.Context, a *app, format bundle.Format, e bundle.Export, o exportOptions) error {
	path := o.out
	if path == "" && format.Binary {
		path = "marchwarden-" + shortID(e.Run.ID) + format.Suffixes[0]
	}
	write := func(w io.Writer) error { return format.Write(ctx, e, w) }
	if path == "" || path == "-" {
		if format.Binary && a.outStyle().Width > 0 {
			return invalid("--out", "give a file, or pipe it into a program", "a terminal cannot show "+format.Name)
		}
		if format.Name == "json" || format.Name == "csl" {
			return write(a.forPrograms())
		}
		return write(a.stdout)
	}
	if err := checkOut(path); err != nil {
		return err
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) && !o.force {
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
	if format.Name == "mwz" {
		a.note("to check it anywhere: marchwarden verify %s", path)
	}
	return nil
}

func makeKey(a *app, path string) error {
	public, err := bundle.MakeKeyFiles("--new-key", path, rand.Reader)
	if err != nil {
		return err
	}
	a.note("wrote %s, which you keep to yourself, and %s for others", path, path+bundle.PublicSuffix)
	return a.print("%s\n", public.Fingerprint())
}

func newImport(a *app) *cobra.Command {
	var by []string
	cmd := &cobra.Command{
		Use: "import [flags] FILE.mwz", Short: "import a run that another person exported",
		Args: argCount(1, 1, "one bundle"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return stopped(cmd.Context(), "the run was not imported", a.run(func(ctx context.Context, c *settings.Settings, args []string) error {
				return runImport(ctx, a, c, by, args[0])
			})(cmd, args))
		},
	}
	cmd.Flags().StringArrayVar(&by, "by", nil, byUsage)
	return cmd
}

func runImport(ctx context.Context, a *app, c *settings.Settings, by []string, path string) error {
	keys, err := bundle.ReadPublicKeyFiles("--by", by)
	if err != nil {
		return err
	}
	b, file, err := bundle.OpenFile(path)
	if err != nil {
		return err
	}
	defer file.Close()
	silent := *a // what does not stand is in the error
	silent.stdout = io.Discard
	if err := newAudit(&silent).Bundle(ctx, b, keys); err != nil {
		return err
	}
	rec, err := a.OpenRecords(c)
	if err != nil {
		return err
	}
	defer rec.Close()
	// The evidence goes to the disk itself, as it is in the bundle: what only memory
	// could take, or what a secret was taken out of, would not be what the traces name.
	in, err := b.Import(ctx, run.Store{Traces: rec.Traces, Blobs: rec.Blobs.Folder})
	if err != nil {
		return err
	}
	id, what := in.Run.ID, "imported"
	if !in.Brought() {
		what = "it is here already:"
	}
	err = a.print("%s %s: %s (%s)\n", what, id, term.CleanLine(in.Run.Start.Request.Question), term.Plural(len(in.New)+len(in.Kept), "trace"))
	a.note("to see it: marchwarden export --format md %s", id)
	a.note("to check it: marchwarden verify %s; to run it again: marchwarden replay --rerun %s", id, id)
	return err
}
