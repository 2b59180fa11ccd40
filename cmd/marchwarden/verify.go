package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/audit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

var verifyHelp = `Check a result against the stored bytes: every excerpt at its place in the
stored text, every claim and marker against the citations, every citation
against what the recorded run fetched, and every stored piece of that run
against its hash. Of an investigation the runs of its researchers are checked
too, as far as they are recorded here.

How the claims were judged is shown, and they are judged again, without a
language model: one that its excerpts contradict or say nothing of does not
stand. What the judge merely cannot confirm is no failure.

With --online the web servers and registries are asked, too, whether what the
citations point to is there: pages answered or gone, DOIs and arXiv ids
registered or absent, papers retracted. What could not be checked, because
servers are down, is unchecked: it is shown and is no failure. Only locators of
the web and of papers are sent.

The argument is a trace ID, a file with a result as JSON, a bundle that
'marchwarden export' wrote, or - for either on stdin. A bundle is checked alone:
every byte of it, its signature, that its runs give the same results again, and
then its citations. That needs no home, no settings and, without --online, no
network.

` + idHelp + exits("0 everything stands; with --online, locators may be unchecked", "1 something does not stand, or cannot be read; it is named", "2", "130")

const byUsage = "the bundle must be signed with the key whose public half is in `KEY.pub`; one of them if given several times"

type verifyOptions struct {
	live   bool
	online bool
	db     string
	by     []string
}

func newVerify(a *app) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use: "verify ID | FILE.json | FILE.mwz | -", Short: "check every citation against the stored bytes", Long: verifyHelp,
		Example: "  marchwarden verify last\n  marchwarden verify result.json\n  marchwarden verify --online last\n  marchwarden verify --by colleague.pub answer.mwz\n  marchwarden ask --json \"…\" | marchwarden verify -",
		Args:    argCount(1, 1, "one trace id or file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return stopped(cmd.Context(), unfinishedCheck, runVerify(cmd.Context(), a, o, args[0]))
		},
	}
	cmd.Flags().BoolVar(&o.live, "live", false, "also run the queries behind citations of a database again, and compare the rows")
	cmd.Flags().BoolVar(&o.online, "online", false, "also ask whether the cited pages and papers are still there, and whether papers were retracted")
	cmd.Flags().StringVar(&o.db, "db", "", "the database at `URL` for --live (default MARCHWARDEN_DB)")
	cmd.Flags().StringArrayVar(&o.by, "by", nil, byUsage)
	return cmd
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

func runVerify(ctx context.Context, a *app, o verifyOptions, arg string) error {
	if bundle.Named(arg) {
		return verifyBundle(ctx, a, o, arg, nil)
	}
	var piped []byte
	if arg == "-" {
		var err error
		piped, err = a.readStdin(ctx, audit.MaxResultBytes, "stdin")
		if errors.Is(err, marchwarden.CodeInvalid) {
			return invalid("FILE", "give the path of the file", fmt.Sprintf("stdin holds more than %d bytes", audit.MaxResultBytes))
		}
		if err != nil {
			return err
		}
		if bundle.Begins(piped) {
			return verifyBundle(ctx, a, o, arg, piped)
		}
	}
	if len(o.by) > 0 {
		return invalid("--by", "", "is for bundles")
	}
	if o.db != "" && !o.live {
		return invalid("--db", "", "is for --live")
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
	check, records := newAudit(a, o, c), audit.Records{Load: rec.Traces.Load, Blobs: rec.Blobs}
	if fromFile != nil {
		return check.Result(ctx, records, fromFile.TraceID, fromFile) // it may have no run here
	}
	id, err := run.FindID(rec.Traces, arg)
	if err != nil {
		return err
	}
	return check.Result(ctx, records, id, nil)
}

// newAudit makes the checks that the options ask for. Where they need no settings otherwise, c
// is nil and they are read when they are needed.
func newAudit(a *app, o verifyOptions, c *settings.Settings) *audit.Audit {
	cfg := audit.Config{
		Print:   func(line string) error { _, err := fmt.Fprintln(a.stdout, line); return err },
		Note:    a.note,
		Warn:    a.warn,
		Version: programVersion(),
		Rerun: func(ctx context.Context, log *trace.Log, blobs blob.Store) (want, got []byte, err error) {
			again, err := network.Again(ctx, log, blobs, network.BuiltinVectors)
			return again.Want, again.Got, err
		},
	}
	if o.live {
		cfg.Database = func(ctx context.Context) (*database.DB, error) {
			return a.OpenDatabase(ctx, c, network.Options{Choice: marchwarden.Choice{DB: o.db}})
		}
	}
	if o.online {
		cfg.Registry = func() (_ *audit.Registry, _ func() error, err error) {
			if c == nil {
				if c, err = a.loadConfig(); err != nil {
					return nil, nil, err
				}
			}
			return a.OpenRegistry(c)
		}
	}
	return audit.New(cfg)
}

// verifyBundle is verify for a bundle: the file at path, or what was piped in. It needs
// no configuration and no home, writes nothing, and uses the network only if it is told to.
func verifyBundle(ctx context.Context, a *app, o verifyOptions, path string, piped []byte) error {
	if o.live || o.db != "" {
		return invalid("--live", "import it first: marchwarden import FILE.mwz", "is not for bundles")
	}
	keys, err := bundle.ReadPublicKeyFiles("--by", o.by)
	if err != nil {
		return err
	}
	var b *bundle.Bundle
	if piped == nil {
		var file io.Closer
		if b, file, err = bundle.OpenFile(path); err == nil {
			defer file.Close()
		}
	} else if b, err = bundle.Open(bytes.NewReader(piped), int64(len(piped))); err != nil {
		err = fmt.Errorf("stdin is not a bundle that stands: %w", err)
	}
	if err != nil {
		return err
	}
	return newAudit(a, o, nil).Bundle(ctx, b, keys)
}
