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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

type exportOptions struct {
	out, format string
	force       bool
}

func newExport(a *app) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use: "export [flags] ID", Short: "write a run to a file: a bundle to check, a report, its sources",
		Args: argCount(1, 1, "one trace id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return stopped(cmd.Context(), "nothing was written", runExport(cmd, a, o, args))
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.out, "out", "o", "", "write to `FILE`; - is stdout")
	f.StringVar(&o.format, "format", "", "`FORMAT` of the file: "+strings.Join(bundle.FormatNames(), ", "))
	f.BoolVar(&o.force, "force", false, "replace a file that exists")
	complete(cmd, "format", bundle.FormatNames()...)
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
	if err := settings.NotFolder(o.out); err != nil { // whose name tells no format
		return err
	}
	format, err := formatOf(o)
	if err != nil {
		return err
	}
	return a.onRun(func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error {
		past, err := rec.Store().Load(id)
		if err != nil {
			return err
		}
		e := exportOf(a, c, rec.Store(), past)
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
		if format.Name == "json" {
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

func newImport(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "import [flags] FILE.mwz", Short: "import a run that another person exported",
		Args: argCount(1, 1, "one bundle"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return stopped(cmd.Context(), "the run was not imported", a.run(func(ctx context.Context, c *settings.Settings, args []string) error {
				return runImport(ctx, a, c, args[0])
			})(cmd, args))
		},
	}
}

func runImport(ctx context.Context, a *app, c *settings.Settings, path string) error {
	b, file, err := bundle.OpenFile(path)
	if err != nil {
		return err
	}
	defer file.Close()
	silent := *a // what does not stand is in the error
	silent.stdout = io.Discard
	if err := newAudit(&silent).Bundle(ctx, b); err != nil {
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
