package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

var driftHelp = `Fetch the cited sources of a result again and say what became of them.

Each source is unchanged, changed, unreachable (gone, refused by robots.txt or
the server, or not answered) or unchecked (rows of a database, and what an
external researcher read). Each cited passage is present, wherever on its page;
altered, with what differs; missing; or unknown. Each claim of the answer is
kept, weakened, lost or unknown by that.

Only addresses that the run fetched are asked for, with the same care for
robots.txt, pace and private addresses, and with a condition (ETag,
Last-Modified) where the server gave one within the last 30 days. Local files
are compared with the file of now: name the folder with --library if it is not
in the library. The record stays as it is; the outcome of each check is added to
drift/<trace_id>.jsonl in the home folder.

` + idHelp + `

Interrupted, it prints what it has found out by then; that part of a check is
not added to the file. 'marchwarden watch' checks and asks again on a schedule.` + exits("0 everything cited still stands", "1", "2", "3 a passage is altered or missing, or a source is gone",
	"4 nothing is lost, and some source could not be checked", "130")

// The exit codes of drift beside those of every command.
const (
	exitDrifted    = 3
	exitIncomplete = 4
)

type driftOptions struct {
	network.SourceOptions
	json    bool
	quiet   bool
	out     string
	context int
}

// The bounds and defaults of the flags.
const (
	minPatience, maxPatience = time.Second, 10 * time.Minute
	usualContext, maxContext = 12, 200 // words
)

// progressEvery is how often people hear that a check is still going on.
const progressEvery = 5 * time.Second

func newDrift(a *app) *cobra.Command {
	var o driftOptions
	cmd := &cobra.Command{
		Use: "drift [flags] ID", Short: "fetch the cited sources again: unchanged, changed or gone", Long: driftHelp,
		Example: "  marchwarden drift last\n  marchwarden drift --json 0198c0de | jq '.claims[] | select(.state == \"lost\")'",
		Args:    argCount(1, 1, "one trace id"),
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
	f.StringVarP(&o.out, "out", "o", "", "also write the report to `FILE`: JSON if it ends in .json, else text")
	f.IntVar(&o.context, "context", usualContext, "show `N` unchanged words around each change")
	f.DurationVar(&o.Timeout, "timeout", network.SourcePatience, "longest `TIME` for one page")
	f.StringArrayVar(&o.Library, "library", nil, "a `FOLDER` with cited files, beside those of the library; may be repeated")
	return cmd
}

func (o driftOptions) check() error {
	switch {
	case o.context < 0 || o.context > maxContext:
		return invalid("--context", "", fmt.Sprintf("must be between 0 and %d, not %d", maxContext, o.context))
	case o.Timeout < minPatience || o.Timeout > maxPatience:
		return invalid("--timeout", "", fmt.Sprintf("must be a time between %s and %s, not %s", minPatience, maxPatience, o.Timeout))
	}
	return checkOut(o.out)
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
	end := func() {}
	if !o.quiet {
		o.Told, end = drift.Progress(progressEvery, func(done int) { a.note("still checking: %s done", term.Plural(done, "source")) })
	}
	rep, err := rec.CheckSources(ctx, &a.Host, c, id, o.SourceOptions)
	end()
	if err == nil || marchwarden.CodeOf(err) == marchwarden.CodeCanceled && len(rep.Sources) > 0 {
		err = errors.Join(err, showDrift(a, rep, o))
	}
	return driftCode(rep), err
}

func showDrift(a *app, rep drift.Report, o driftOptions) error {
	if o.out != "" {
		err := writeOut(o.out, func(w io.Writer) error {
			if strings.HasSuffix(o.out, ".json") {
				return printJSON(w, rep)
			}
			_, err := io.WriteString(w, rep.Text(a.inZone(rep.CheckedAt), term.Style{}, o.context))
			return err
		})
		if err != nil {
			return err
		}
	}
	if o.json {
		return printJSON(a.forPrograms(), rep)
	}
	return a.print("%s", rep.Text(a.inZone(rep.CheckedAt), a.outStyle(), o.context))
}
