package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

type tracesOptions struct {
	json  bool
	all   bool
	limit int
}

const tracesHelp = `List the recorded runs, newest first.

The status of a run is complete, planned ('ask --plan': it has no answer),
interrupted (its caller stopped it and got a partial result), unfinished (still
going on, or cut off by a crash) or damaged.
The rihlas of an investigation are runs, too; --all lists them.`

func newTraces(a *app) *cobra.Command {
	var o tracesOptions
	cmd := &cobra.Command{
		Use: "traces", Short: "list the recorded runs", Long: tracesHelp, Args: noArgs,
		Example: "  marchwarden traces --limit 5\n  marchwarden traces --json | jq -r '.[].trace_id'",
		RunE:    func(*cobra.Command, []string) error { return a.runTraces(o) },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	cmd.Flags().BoolVar(&o.all, "all", false, "list the rihlas of investigations, too")
	cmd.Flags().IntVar(&o.limit, "limit", 20, "list at most `N` runs; 0 lists all")
	return cmd
}

// The states of a run.
const (
	statusComplete    = "complete"
	statusPlanned     = "planned"
	statusInterrupted = "interrupted"
	statusUnfinished  = "unfinished"
	statusDamaged     = "damaged"
)

// runInfo is a row of 'traces', and its form in JSON. Fields are only ever added.
type runInfo struct {
	TraceID    marchwarden.TraceID `json:"trace_id"`
	StartedAt  *time.Time          `json:"started_at,omitempty"`
	Researcher string              `json:"researcher,omitempty"`
	Question   string              `json:"question"`
	Citations  *int                `json:"citations,omitempty"`
	Confidence *marchwarden.Unit   `json:"confidence,omitempty"`
	Status     string              `json:"status"`
	Problem    string              `json:"problem,omitempty"`
	rihla      bool                // part of an investigation
}

func (a *app) runTraces(o tracesOptions) error {
	if o.limit < 0 {
		return invalid("--limit", "", fmt.Sprintf("must be 0 or more, not %d", o.limit))
	}
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	infos, left, err := a.listRuns(c, o)
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(a.stdout, infos)
	}
	if len(infos) == 0 {
		a.note("no runs are recorded in %s yet", c.text(setTraceDir))
		return nil
	}
	rows := make([][]string, len(infos))
	for i, r := range infos {
		rows[i] = a.runRow(r)
	}
	if err := a.outStyle().Table(a.stdout, []string{"id", "when", "citations", "confidence", "status", "question"}, rows); err != nil {
		return err
	}
	if left > 0 {
		a.note("not shown: %s; --limit 0 lists all", term.Plural(left, "older run"))
	}
	return nil
}

// listRuns reads the newest runs, at most limit of them (0 is all), and says how
// many were left out for that.
func (a *app) listRuns(c *config, o tracesOptions) (infos []runInfo, left int, err error) {
	infos = []runInfo{}
	if _, err := os.Stat(c.text(setTraceDir)); errors.Is(err, fs.ErrNotExist) {
		return infos, 0, nil
	}
	d, err := trace.OpenDir(c.text(setTraceDir), a.now)
	if err != nil {
		return nil, 0, err
	}
	defer d.Close()
	ids, err := d.List()
	if err != nil {
		return nil, 0, err
	}
	for i, id := range ids {
		if o.limit > 0 && len(infos) == o.limit {
			return infos, hidden(d, ids[i:], o), nil
		}
		if r := runOf(d, id); o.all || !r.rihla {
			infos = append(infos, r)
		}
	}
	return infos, 0, nil
}

// hidden counts those of ids that would be listed.
func hidden(d *trace.Dir, ids []marchwarden.TraceID, o tracesOptions) int {
	n := len(ids)
	for _, id := range ids {
		if !o.all && isRihla(d, id) {
			n--
		}
	}
	return n
}

func runOf(d *trace.Dir, id marchwarden.TraceID) runInfo {
	r := runInfo{TraceID: id, Status: statusDamaged}
	log, err := d.Load(id)
	if err != nil {
		r.Problem = err.Error()
		return r
	}
	r.Status = statusUnfinished
	start, err := log.Start()
	if err != nil {
		if len(log.Steps) > 0 {
			r.Status, r.Problem = statusDamaged, err.Error()
		}
		return r
	}
	r.StartedAt, r.Question, r.Researcher, r.rihla = &start.StartedAt, start.Request.Question, start.Researcher, start.PartOf
	switch done := log.Complete(); {
	case done == nil:
	case start.Investigation != nil && start.Investigation.PlanOnly && !done.Interrupted:
		r.Status = statusPlanned // there is no answer that could have citations
	default:
		r.Citations, r.Confidence, r.Status = &done.Citations, &done.Confidence, statusComplete
		if done.Interrupted {
			r.Status = statusInterrupted
		}
	}
	return r
}

func (a *app) runRow(r runInfo) []string {
	row := []string{r.TraceID.String(), "", "", "", r.Status, r.Question}
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
