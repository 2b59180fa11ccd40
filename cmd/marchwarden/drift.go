package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// The exit codes of drift beside those of every command.
const (
	exitDrifted    = 3
	exitIncomplete = 4
)

type driftOptions struct {
	network.SourceOptions
	json  bool
	quiet bool
}

// The bounds of --timeout.
const minPatience, maxPatience = time.Second, 10 * time.Minute

func newDrift(a *app) *cobra.Command {
	var o driftOptions
	cmd := &cobra.Command{
		Use: "drift [flags] ID", Short: "fetch the cited sources again: unchanged, changed or gone",
		Args: argCount(1, 1, "one trace id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return stopped(cmd.Context(), unfinishedCheck, a.onRun(func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error {
				code, err := runDrift(ctx, a, c, o, rec, id)
				if err == nil && code != exitOK {
					err = verdict(code)
				}
				return err
			})(cmd, args))
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	f.DurationVar(&o.Timeout, "timeout", network.SourcePatience, "longest `TIME` for one page")
	f.StringArrayVar(&o.Library, "library", nil, "a `FOLDER` with cited files, beside those of the library; may be repeated")
	return cmd
}

func (o driftOptions) check() error {
	if o.Timeout < minPatience || o.Timeout > maxPatience {
		return invalid("--timeout", "", fmt.Sprintf("must be a time between %s and %s, not %s", minPatience, maxPatience, o.Timeout))
	}
	return nil
}

func driftCode(rep drift.Report) int {
	switch {
	case rep.Drifted():
		return exitDrifted
	case rep.Incomplete():
		return exitIncomplete
	}
	return exitOK
}

// runDrift makes a check and shows it, also one that was stopped as far as it came, and gives the
// exit code of what it found.
func runDrift(ctx context.Context, a *app, c *settings.Settings, o driftOptions, rec *network.Records, id marchwarden.TraceID) (int, error) {
	if !o.quiet {
		o.Told = func(s drift.Source) { a.note("checked %s", term.CleanLine(s.Locator)) }
	}
	rep, err := rec.CheckSources(ctx, &a.Host, c, id, o.SourceOptions)
	if err == nil || marchwarden.CodeOf(err) == marchwarden.CodeCanceled && len(rep.Sources) > 0 {
		if o.json {
			return driftCode(rep), errors.Join(err, printJSON(a.forPrograms(), rep))
		}
		err = errors.Join(err, a.print("%s", rep.Text(a.inZone(rep.CheckedAt), a.outStyle())))
	}
	return driftCode(rep), err
}
