package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/audit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

func newVerify(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "verify ID | FILE.json | FILE.mwz | -", Short: "check every citation against the stored bytes",
		Args: argCount(1, 1, "one trace id or file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return stopped(cmd.Context(), unfinishedCheck, runVerify(cmd.Context(), a, args[0]))
		},
	}
}

// stopping is work that says in plain words that the user ended it; message is what that leaves.
func stopping(message string, do work) work {
	return func(ctx context.Context, c *settings.Settings, args []string) error {
		return stopped(ctx, message, do(ctx, c, args))
	}
}

// stopped is the error of a command, in plain words if it says no more than that the
// user ended it; message is what that leaves.
func stopped(ctx context.Context, message string, err error) error {
	ended := marchwarden.CodeOf(err) == marchwarden.CodeCanceled || errors.Is(err, context.Canceled)
	if !ended || errors.Is(err, errInterrupted) || !errors.Is(context.Cause(ctx), errInterrupted) {
		return err
	}
	return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: message, Err: errInterrupted}
}

const unfinishedCheck = "the check is not complete"

func runVerify(ctx context.Context, a *app, arg string) error {
	if bundle.Named(arg) { // it needs no configuration, no home and no network, and nothing is written
		b, file, err := bundle.OpenFile(arg)
		if err != nil {
			return err
		}
		defer file.Close()
		return newAudit(a).Bundle(ctx, b)
	}
	var piped []byte
	var err error
	if arg == "-" {
		piped, err = a.readStdin(ctx, audit.MaxResultBytes, "stdin")
	}
	if errors.Is(err, marchwarden.CodeInvalid) {
		return invalid("FILE", "give the path of the file", fmt.Sprintf("stdin holds more than %d bytes", audit.MaxResultBytes))
	}
	if err != nil {
		return err
	}
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	fromFile, err := audit.ResultFile(arg, piped)
	if err != nil {
		return err
	}
	rec, err := a.OpenKept(c)
	if err != nil {
		return err
	}
	defer rec.Close()
	check, records := newAudit(a), audit.Records{Load: rec.Traces.Load, Blobs: rec.Blobs}
	if fromFile != nil {
		return check.Result(ctx, records, fromFile.TraceID, fromFile) // it may have no run here
	}
	id, err := run.FindID(rec.Traces, arg)
	if err != nil {
		return err
	}
	return check.Result(ctx, records, id, nil)
}

func newAudit(a *app) *audit.Audit {
	return &audit.Audit{
		Print: func(line string) error {
			if width := a.outStyle().Width; strings.HasPrefix(line, "✓") { // what stands says enough on one line
				line = term.Fit(line, width)
			}
			_, err := fmt.Fprintln(a.stdout, line)
			return err
		},
		Warn:    a.warn,
		Version: programVersion(),
		Rerun: func(ctx context.Context, log *trace.Log, blobs blob.Store) (want, got []byte, err error) {
			again, err := network.Again(ctx, log, blobs, network.BuiltinVectors)
			return again.Want, again.Got, err
		},
	}
}

// The exit codes of drift beside those of every command.
const (
	exitDrifted    = 3
	exitIncomplete = 4
)

func newDrift(a *app) *cobra.Command {
	var o network.SourceOptions
	var quiet bool
	cmd := a.verb("drift [flags] ID", "fetch the cited sources again: unchanged, changed or gone", oneRun, stopping(unfinishedCheck,
		a.onRun(func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error {
			if !quiet {
				o.Told = func(s drift.Source) { a.note("checked %s", term.CleanLine(s.Locator)) }
			}
			rep, err := rec.CheckSources(ctx, &a.Host, c, id, o)
			if err == nil || marchwarden.CodeOf(err) == marchwarden.CodeCanceled && len(rep.Sources) > 0 { // one that was stopped, as far as it came
				if a.json {
					err = errors.Join(err, printJSON(a.forPrograms(), rep))
				} else {
					err = errors.Join(err, a.print("%s", rep.Text(a.inZone(rep.CheckedAt), a.outStyle())))
				}
			}
			switch {
			case err != nil:
				return err
			case rep.Drifted():
				return verdict(exitDrifted)
			case rep.Incomplete():
				return verdict(exitIncomplete)
			}
			return nil
		})))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		const least, most = time.Second, 10 * time.Minute
		if o.Timeout < least || o.Timeout > most {
			return invalid("--timeout", "", fmt.Sprintf("must be a time between %s and %s, not %s", least, most, o.Timeout))
		}
		return nil
	}
	f := cmd.Flags()
	f.BoolVar(&a.json, "json", false, "print the report as JSON")
	f.BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	f.DurationVar(&o.Timeout, "timeout", network.SourcePatience, "longest `TIME` for one page")
	f.StringArrayVar(&o.Library, "library", nil, "a `FOLDER` with cited files, beside those of the library; may be repeated")
	return cmd
}

type exportOptions struct {
	out, format string
	force       bool
}

func newExport(a *app) *cobra.Command {
	var o exportOptions
	export := func(ctx context.Context, c *settings.Settings, args []string) error {
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
		})(ctx, c, args)
	}
	cmd := a.verb("export [flags] ID", "write a run to a file: a bundle to check, a report, its sources", oneRun, stopping("nothing was written", export))
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
	if strings.HasSuffix(strings.ToLower(o.format+o.out), "docx") {
		hint += "; Word opens html, and Pandoc makes docx of md"
	}
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
	if err := settings.CheckOut(path); err != nil {
		return err
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) && !o.force {
		return invalid("--out", "give another name, or --force to replace it", fmt.Sprintf("%q exists", path))
	}
	if err := settings.WriteOut(path, write); err != nil {
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
	bring := func(ctx context.Context, c *settings.Settings, args []string) error {
		path := args[0]
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
	return a.verb("import [flags] FILE.mwz", "import a run that another person exported", argCount(1, 1, "one bundle"), stopping("the run was not imported", bring))
}
