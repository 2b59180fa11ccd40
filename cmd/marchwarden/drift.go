package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
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

With --watch and --times the exit status is that of the worst check.
Interrupted, it prints what it has found out by then; that part of a check is
not added to the file.` + exits("0 everything cited still stands", "1", "2", "3 a passage is altered or missing, or a source is gone",
	"4 nothing is lost, and some source could not be checked", "130")

// The exit codes of drift beside those of every command.
const (
	exitDrifted    = 3
	exitIncomplete = 4
)

type driftOptions struct {
	json    bool
	quiet   bool
	out     string
	watch   time.Duration
	times   int
	context int
	timeout time.Duration
	library []string
	told    func(drift.Source) // hears of each source that was looked at; nil: unused
}

// The bounds and defaults of the flags.
const (
	minWatch, maxWatch       = time.Minute, 366 * 24 * time.Hour
	minPatience, maxPatience = time.Second, 10 * time.Minute
	usualPatience            = 30 * time.Second // for one page, as everywhere
	usualContext, maxContext = 12, 200          // words
)

// progressEvery is how often people hear that a check is still going on.
const progressEvery = 5 * time.Second

func newDrift(a *app) *cobra.Command {
	var o driftOptions
	cmd := &cobra.Command{
		Use: "drift [flags] ID", Short: "fetch the cited sources again: unchanged, changed or gone", Long: driftHelp,
		Example: "  marchwarden drift last\n  marchwarden drift --json 0198c0de | jq '.claims[] | select(.state == \"lost\")'\n  marchwarden drift --watch 24h last",
		Args:    argCount(1, 1, "one trace id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return stopped(cmd.Context(), unfinishedCheck, a.onRun(func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error {
				code, err := runDrift(ctx, a, c, o, rec.Store(), id)
				if err == nil && code != exitOK {
					err = verdict(code)
				}
				return err
			})(cmd, args))
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print the report as JSON; with --watch, one line a check")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	f.StringVarP(&o.out, "out", "o", "", "also write the report to `FILE`: JSON if it ends in .json, else text")
	f.DurationVar(&o.watch, "watch", 0, "check again every `TIME`, such as 24h, until interrupted")
	f.Lookup("watch").DefValue = "" // there is none
	f.IntVar(&o.times, "times", 0, "with --watch, end after `N` checks")
	f.IntVar(&o.context, "context", usualContext, "show `N` unchanged words around each change")
	f.DurationVar(&o.timeout, "timeout", usualPatience, "longest `TIME` for one page")
	f.StringArrayVar(&o.library, "library", nil, "a `FOLDER` with cited files, beside those of the library; may be repeated")
	return cmd
}

func (o driftOptions) check(cmd *cobra.Command) error {
	given := func(name string) bool { return cmd.Flags().Changed(name) }
	switch {
	case given("watch") && (o.watch < minWatch || o.watch > maxWatch):
		return invalid("--watch", "for example 24h", fmt.Sprintf("must be a time between %s and %s, not %s", minWatch, maxWatch, o.watch))
	case given("times") && !given("watch"):
		return invalid("--times", "", "is for --watch")
	case given("times") && o.times < 1:
		return invalid("--times", "", fmt.Sprintf("must be 1 or more, not %d", o.times))
	case o.context < 0 || o.context > maxContext:
		return invalid("--context", "", fmt.Sprintf("must be between 0 and %d, not %d", maxContext, o.context))
	case o.timeout < minPatience || o.timeout > maxPatience:
		return invalid("--timeout", "", fmt.Sprintf("must be a time between %s and %s, not %s", minPatience, maxPatience, o.timeout))
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

// runDrift checks once, or again and again, and gives the exit code of what it found.
func runDrift(ctx context.Context, a *app, c *settings.Settings, o driftOptions, store run.Store, id marchwarden.TraceID) (int, error) {
	check := func(ctx context.Context) (drift.Report, error) {
		rep, err := checkDrift(ctx, a, c, o, store, id)
		if err != nil {
			return rep, err
		}
		if err := drift.Keep(c.Home(), rep); err != nil {
			a.warn("this check is not kept: " + err.Error())
		}
		return rep, nil
	}
	return watchDrift(ctx, a, o, check, sleepFor)
}

func sleepFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return marchwarden.Wrap(context.Cause(ctx), marchwarden.CodeCanceled, "wait for the next check")
	}
}

// watchDrift makes one check, or as many as are wanted, a time apart, and shows
// them: in full if something is other than the last time, else as one line. A check
// that was stopped is shown as far as it came. The exit code is that of the worst
// check.
func watchDrift(ctx context.Context, a *app, o driftOptions, check func(context.Context) (drift.Report, error), sleep func(context.Context, time.Duration) error) (int, error) {
	var last drift.Report
	found := map[int]int{} // how many checks there were, by their exit code
	for n := 1; ; n++ {
		rep, err := check(ctx)
		if err != nil {
			if marchwarden.CodeOf(err) == marchwarden.CodeCanceled && len(rep.Sources) > 0 {
				err = errors.Join(err, showDrift(a, rep, o, true))
			}
			sumDrift(a, o, found)
			return exitFailed, err
		}
		if err := showDrift(a, rep, o, n == 1 || !rep.Same(last)); err != nil {
			return exitFailed, err
		}
		found[driftCode(rep)]++
		if last = rep; o.watch == 0 || n == o.times {
			sumDrift(a, o, found)
			worst := exitOK
			for _, code := range []int{exitIncomplete, exitDrifted} {
				if found[code] > 0 {
					worst = code
				}
			}
			return worst, nil
		}
		if !o.quiet {
			a.note("next check at %s", a.inZone(a.Now().Add(o.watch)))
		}
		if err := sleep(ctx, o.watch); err != nil {
			sumDrift(a, o, found)
			return exitFailed, err
		}
	}
}

// sumDrift says at the end of a watch what its checks came to.
func sumDrift(a *app, o driftOptions, found map[int]int) {
	n := found[exitOK] + found[exitDrifted] + found[exitIncomplete]
	if o.watch == 0 || n == 0 {
		return
	}
	a.note("%s made: in %d everything stood, in %d evidence was lost, in %d something could not be checked",
		term.Plural(n, "check"), found[exitOK], found[exitDrifted], found[exitIncomplete])
}

// checkDrift makes one check with fetchers of its own, which keep nothing.
func checkDrift(ctx context.Context, a *app, c *settings.Settings, o driftOptions, store run.Store, id marchwarden.TraceID) (rep drift.Report, err error) {
	run, err := store.Load(id)
	if err != nil {
		return rep, err
	}
	cfg, end, err := a.OpenDrift(c, store, o.library, o.timeout)
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, end()) }()
	cfg.Told = o.told
	if !o.quiet {
		told, end := driftProgress(a)
		defer end()
		cfg.Told = told
	}
	return drift.Check(ctx, cfg, run)
}

// driftProgress tells people who wait for slow sites how far it is. The caller calls
// end.
func driftProgress(a *app) (told func(drift.Source), end func()) {
	var done atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticks := time.NewTicker(progressEvery)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				a.note("still checking: %s done", term.Plural(int(done.Load()), "source"))
			case <-stop:
				return
			}
		}
	}()
	return func(drift.Source) { done.Add(1) }, func() { close(stop); <-stopped }
}

func showDrift(a *app, rep drift.Report, o driftOptions, full bool) error {
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
	switch {
	case o.json && o.watch == 0:
		return printJSON(a.forPrograms(), rep)
	case o.json:
		enc := json.NewEncoder(a.forPrograms())
		enc.SetEscapeHTML(false)
		return marchwarden.Wrap(enc.Encode(rep), marchwarden.CodeUnavailable, "print JSON")
	}
	text := rep.Summary(a.inZone(rep.CheckedAt)) + "\n"
	if full {
		text = rep.Text(a.inZone(rep.CheckedAt), a.outStyle(), o.context)
	}
	return a.print("%s", text)
}
