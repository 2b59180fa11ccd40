package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

func newTraces(a *app) *cobra.Command {
	var all bool
	var limit int
	var status []string
	cmd := a.listing("traces", "list the recorded runs", noArgs, func(_ context.Context, c *settings.Settings, _ []string) error {
		if limit < 0 {
			return invalid("--limit", "", fmt.Sprintf("must be 0 or more, not %d", limit))
		}
		which := run.Listing{Rihlas: all, Limit: limit}
		for i, s := range status {
			s = strings.TrimSpace(s)
			status[i], which.Status = s, append(which.Status, run.State(s))
			if !slices.Contains(statuses, s) {
				return invalid("--status", "", fmt.Sprintf("must be %s, not %q", settings.Either(statuses), plaintext.Clip(s, 40)))
			}
		}
		runs, more := []run.Entry{}, false
		if _, err := os.Stat(c.Text(settings.TraceDir)); !errors.Is(err, fs.ErrNotExist) {
			d, err := trace.OpenDir(c.Text(settings.TraceDir), a.Now)
			if err != nil {
				return err
			}
			defer d.Close()
			var found []run.Entry
			if found, more, err = run.List(d, which); err != nil {
				return err
			}
			runs = append(runs, found...)
		}
		none := fmt.Sprintf("no runs are recorded in %s yet", c.Text(settings.TraceDir))
		if len(status) > 0 {
			none = fmt.Sprintf("no run in %s is %s", c.Text(settings.TraceDir), settings.Either(status))
		}
		head := []string{"id", "when", "citations", "confidence", "status", "question"}
		if a.outStyle().Width > 0 {
			head = []string{"id", "when", "sure", "status", "question"}
		}
		var rows [][]string
		for _, e := range runs {
			rows = append(rows, runRow(a, e))
		}
		if err := a.show(runs, head, rows, none); err != nil {
			return err
		}
		if more && !a.json {
			a.note("older runs are not shown; --limit 0 lists all")
		}
		return nil
	})
	cmd.Flags().BoolVar(&all, "all", false, "list what each researcher was asked, too")
	cmd.Flags().StringSliceVar(&status, "status", nil, "list only runs of these `STATES`: "+strings.Join(statuses, ", "))
	complete(cmd, "status", statuses...)
	cmd.Flags().IntVar(&limit, "limit", 20, "list at most `N` runs; 0 lists all")
	return cmd
}

// statuses are the states of a run, as people are told them.
var statuses = func() (all []string) {
	for _, s := range run.Statuses() {
		all = append(all, string(s))
	}
	return all
}()

// runRow is a run as people see it. A screen has room for the question where an id is cut to its
// beginning and the citations are left out.
func runRow(a *app, e run.Entry) []string {
	began, citations, sure, status := "", "", "", string(e.Status)
	if e.Imported {
		status += ", imported"
	}
	if !e.Began.IsZero() {
		began = a.inZone(e.Began)
	}
	if e.Confidence != nil {
		citations, sure = term.Count(e.Citations), fmt.Sprintf("%.2f", *e.Confidence)
	}
	question := strings.TrimSpace(e.Question + " " + e.Problem)
	if a.outStyle().Width > 0 {
		return []string{shortID(e.ID), began, sure, status, question}
	}
	return []string{e.ID.String(), began, citations, sure, status, question}
}

// onRun is run for the work on one recorded run, which the argument names.
func (a *app) onRun(do func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error) work {
	return func(ctx context.Context, c *settings.Settings, args []string) error {
		rec, err := a.OpenKept(c)
		if err != nil {
			return err
		}
		defer rec.Close()
		id, err := run.FindID(rec.Traces, args[0])
		if err != nil {
			return err
		}
		return do(ctx, c, rec, id)
	}
}

var oneRun = argCount(1, 1, "one trace id")

// shortID is as much of an id as names it among a few thousand.
func shortID(id marchwarden.TraceID) string { return id.String()[:18] }

func newShow(a *app) *cobra.Command {
	var verbose bool
	show := func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error {
		if busy, err := rec.Traces.Busy(id); err != nil {
			return err
		} else if busy {
			return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: fmt.Sprintf("run %s is going on", id), Hint: "to watch it: marchwarden ui"}
		}
		store := rec.Store()
		past, err := store.Load(id)
		if err != nil {
			return err
		}
		if past.Log.Latest() == nil {
			return &marchwarden.Error{Code: marchwarden.CodeUnsupported, Message: fmt.Sprintf("run %s was cut off, and has no answer", id), Hint: "resume it: marchwarden resume " + shortID(id)}
		}
		r, err := report.Gather(ctx, store, past)
		if err != nil {
			return err
		}
		if a.json {
			return printJSON(a.forPrograms(), r.Result)
		}
		if last, ok, err := drift.Last(c.Home(), id); err != nil {
			a.warn(err.Error())
		} else if ok {
			r.Checked = last.Summary(a.inZone(last.CheckedAt))
		}
		_, searched := spentOf(store, r.Result, past.Start)
		what := report.Options{Verbose: verbose, Searched: strings.Join(searched, ", "), Cost: report.Price(r.Result.CostMetadata.CostUSD)}
		switch end := past.Log.Complete(); {
		case end == nil:
			what.Notices = append(what.Notices, "the run went on after this result, and was cut off; to resume it: marchwarden resume "+shortID(id))
		case end.Interrupted:
			what.Notices = append(what.Notices, "the run was stopped, and the result is partial; to resume it: marchwarden resume "+shortID(id))
		}
		return report.Reading(a.stdout, a.outStyle(), r, what)
	}
	cmd := a.verb("show [flags] ID", "show an answer with the evidence behind each sentence", oneRun, a.onRun(show))
	cmd.Flags().BoolVar(&a.json, "json", false, "print the result as JSON, as 'ask --json' does")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "show hashes, spans and how each text was got, too")
	return cmd
}

func newReplay(a *app) *cobra.Command {
	var raw, rerun bool
	replay := func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error {
		switch {
		case raw && rerun:
			return invalid("--raw", "", "cannot be used together with --rerun")
		case raw:
			return printRaw(a, rec.Traces, id)
		}
		log, err := rec.Traces.Load(id)
		if err != nil {
			return err
		}
		a.reportTorn(id, log)
		if rerun {
			return rerunTrace(ctx, a, log, rec.Blobs, a.OpenVectors(c).Of, id)
		}
		return a.show(nil, []string{"step", "at", "action", "decision"}, stepRows(log), "the trace has no steps")
	}
	cmd := a.verb("replay [flags] ID", "show a recorded run or run it again offline", oneRun, a.onRun(replay))
	cmd.Flags().BoolVar(&raw, "raw", false, "print the lines of the trace as they are (JSONL)")
	cmd.Flags().BoolVar(&rerun, "rerun", false, "execute the run again on its record and compare the bytes")
	return cmd
}

func (a *app) reportTorn(id marchwarden.TraceID, log *trace.Log) {
	if torn := log.TornWords(id); torn != "" {
		a.warn(torn)
	}
}

// stepRows are a row a step: number, time since the start, action and decision.
func stepRows(log *trace.Log) (rows [][]string) {
	for _, s := range log.Steps {
		h, began := s.Header(), log.Steps[0].Header().Timestamp
		if start, err := log.Start(); err == nil {
			began = start.StartedAt
		}
		rows = append(rows, []string{strconv.Itoa(h.Step), fmt.Sprintf("+%.3f s", h.Timestamp.Sub(began).Seconds()), string(h.Action), h.Decision})
	}
	return rows
}

func rerunTrace(ctx context.Context, a *app, log *trace.Log, blobs blob.Store, vectorsOf func(id string) embed.Embedder, id marchwarden.TraceID) error {
	again, err := network.Again(ctx, log, blobs, vectorsOf)
	if err == nil && again.Start.TraceID != id {
		err = marchwarden.Errorf(marchwarden.CodeCorrupt, "trace %s holds another run, %s", id, again.Start.TraceID)
	}
	if err != nil {
		return err
	}
	if v := again.Start.Version; v != programVersion() {
		a.warn(fmt.Sprintf("the run was made by version %s; this is version %s", v, programVersion()))
	}
	if !again.Same() {
		return marchwarden.Errorf(marchwarden.CodeInternal, "the rerun of %s gives another result: %s", again.Start.TraceID, replay.Difference(again.Want, again.Got))
	}
	return a.print("the rerun of %s is identical: %s bytes, %s\n", again.Start.TraceID, term.Count(len(again.Got)), blob.Of(again.Got))
}

// printRaw prints the lines of a trace as they are.
func printRaw(a *app, records *trace.Dir, id marchwarden.TraceID) error {
	f, err := records.Raw(id)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(a.forPrograms(), f)
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print trace %s", id)
}
