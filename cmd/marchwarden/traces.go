package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

type tracesOptions struct {
	json   bool
	all    bool
	limit  int
	status []string
}

func newTraces(a *app) *cobra.Command {
	var o tracesOptions
	cmd := &cobra.Command{
		Use: "traces", Short: "list the recorded runs", Args: noArgs,
		RunE: a.run(func(_ context.Context, c *settings.Settings, _ []string) error { return runTraces(a, c, o) }),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	cmd.Flags().BoolVar(&o.all, "all", false, "list what each researcher was asked, too")
	cmd.Flags().StringSliceVar(&o.status, "status", nil, "list only runs of these `STATES`: "+strings.Join(statuses, ", "))
	complete(cmd, "status", statuses...)
	cmd.Flags().IntVar(&o.limit, "limit", 20, "list at most `N` runs; 0 lists all")
	return cmd
}

// statuses are the states of a run, as people are told them.
var statuses = func() (all []string) {
	for _, s := range run.Statuses() {
		all = append(all, string(s))
	}
	return all
}()

// runInfo is a row of 'traces', and its form in JSON. Fields are only ever added.
type runInfo struct {
	TraceID    marchwarden.TraceID `json:"trace_id"`
	StartedAt  *time.Time          `json:"started_at,omitempty"`
	Researcher string              `json:"researcher,omitempty"`
	Question   string              `json:"question"`
	Citations  *int                `json:"citations,omitempty"`
	Confidence *marchwarden.Unit   `json:"confidence,omitempty"`
	Status     run.State           `json:"status"`
	Resumable  bool                `json:"resumable,omitempty"`
	Partial    bool                `json:"partial,omitempty"`
	Imported   bool                `json:"imported,omitempty"`
	Problem    string              `json:"problem,omitempty"`
}

func runTraces(a *app, c *settings.Settings, o tracesOptions) error {
	if o.limit < 0 {
		return invalid("--limit", "", fmt.Sprintf("must be 0 or more, not %d", o.limit))
	}
	for i, s := range o.status {
		s = strings.TrimSpace(s)
		o.status[i] = s
		if !slices.Contains(statuses, s) {
			return invalid("--status", "", fmt.Sprintf("must be %s, not %q", settings.Either(statuses), plaintext.Clip(s, 40)))
		}
	}
	infos, more, err := listRuns(a, c, o)
	if err != nil {
		return err
	}
	none := fmt.Sprintf("no runs are recorded in %s yet", c.Text(settings.TraceDir))
	if len(o.status) > 0 {
		none = fmt.Sprintf("no run in %s is %s", c.Text(settings.TraceDir), settings.Either(o.status))
	}
	head, rows := []string{"id", "when", "citations", "confidence", "status", "question"}, make([][]string, len(infos))
	for i, r := range infos {
		rows[i] = runRow(a, r)
	}
	if a.outStyle().Width > 0 { // room for the question; the beginning of an id is enough
		head = []string{"id", "when", "sure", "status", "question"}
		for i, r := range infos {
			rows[i] = slices.Delete(rows[i], 2, 3)
			rows[i][0] = shortID(r.TraceID)
		}
	}
	if err := a.show(o.json, infos, head, rows, none); err != nil {
		return err
	}
	if more && !o.json {
		a.note("older runs are not shown; --limit 0 lists all")
	}
	return nil
}

// listRuns reads the newest runs, and says whether some were left out for the limit.
func listRuns(a *app, c *settings.Settings, o tracesOptions) (infos []runInfo, more bool, err error) {
	infos = []runInfo{}
	if _, err := os.Stat(c.Text(settings.TraceDir)); errors.Is(err, fs.ErrNotExist) {
		return infos, false, nil
	}
	d, err := trace.OpenDir(c.Text(settings.TraceDir), a.Now)
	if err != nil {
		return nil, false, err
	}
	defer d.Close()
	which := run.Listing{Rihlas: o.all, Limit: o.limit}
	for _, s := range o.status {
		which.Status = append(which.Status, run.State(s))
	}
	entries, more, err := run.List(d, which)
	for _, e := range entries {
		infos = append(infos, infoOf(e))
	}
	return infos, more, err
}

func infoOf(e run.Entry) runInfo {
	r := runInfo{TraceID: e.ID, Researcher: e.Researcher, Question: e.Question, Confidence: e.Confidence,
		Status: e.Status, Resumable: e.Resumable, Partial: e.Partial, Imported: e.Imported, Problem: e.Problem}
	if !e.Began.IsZero() {
		r.StartedAt = &e.Began
	}
	if e.Confidence != nil {
		r.Citations = &e.Citations
	}
	return r
}

func runRow(a *app, r runInfo) []string {
	row := []string{r.TraceID.String(), "", "", "", string(r.Status), r.Question}
	if r.Imported {
		row[4] += ", imported"
	}
	if r.StartedAt != nil {
		row[1] = a.inZone(*r.StartedAt)
	}
	if r.Citations != nil {
		row[2], row[3] = term.Count(*r.Citations), fmt.Sprintf("%.2f", *r.Confidence)
	}
	if r.Problem != "" {
		row[5] = strings.TrimSpace(r.Question + " " + r.Problem)
	}
	return row
}

// onRun is run for the work on one recorded run, which the argument names.
func (a *app) onRun(do func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error) func(*cobra.Command, []string) error {
	return a.run(func(ctx context.Context, c *settings.Settings, args []string) error {
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
	})
}

// shortID is as much of an id as names it among a few thousand.
func shortID(id marchwarden.TraceID) string { return id.String()[:18] }
