package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/audit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
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
	if bundle.Named(arg) {
		return verifyBundle(ctx, a, arg, nil)
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
			return verifyBundle(ctx, a, arg, piped)
		}
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
	return audit.New(audit.Config{
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
	})
}

// verifyBundle is verify for a bundle: the file at path, or what was piped in. It needs
// no configuration, no home and no network, and writes nothing.
func verifyBundle(ctx context.Context, a *app, path string, piped []byte) error {
	var b *bundle.Bundle
	var err error
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
	return newAudit(a).Bundle(ctx, b)
}
