package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	evaldesk "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/desk"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/suites"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// printReport shows the numbers of a run.
func (a *app) printReport(r *evalReport) error {
	rows := make([][]string, len(r.Metrics))
	for i, m := range r.Metrics {
		rows[i] = []string{m.Name, eval.Number(m.Value), term.Count(m.N), "", "", ""}
		if h := r.Bar(m.Name); h.Metric != "" {
			rows[i][3], rows[i][5] = h.Bar.String(), h.Known
			if h.Reached != nil {
				rows[i][4] = reachedWord(*h.Reached)
			}
		}
	}
	if _, err := fmt.Fprintf(a.stdout, "%s: %s\n", r.Suite, r.Title); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the numbers")
	}
	if err := a.outStyle().Table(a.stdout, []string{"metric", "value", "n", "bar", "", "known"}, rows); err != nil {
		return err
	}
	for _, note := range r.Notes {
		a.note("%s", note)
	}
	cost := "cost unknown"
	if r.USD != nil {
		cost = fmt.Sprintf("about $%.4f", *r.USD)
		if *r.USD == 0 {
			cost = "no cost"
		}
	}
	_, err := fmt.Fprintf(a.stdout, "%s of %s · %s · %s tokens · %s · %s, %s a case\n%s\n\n", term.Count(len(r.Report.Rows)), term.Plural(r.Cases, "case"), r.Settings.Describe(),
		term.Count(r.Tokens), cost, term.Duration(seconds(r.Took.WallSec)), term.Duration(seconds(r.Took.MedianSec)), r.File)
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the numbers")
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func reachedWord(reached bool) string {
	if reached {
		return "reached"
	}
	return "below"
}

const evalCompareHelp = `Hold one report against another of the same suite and data, case by case.

For every metric: the difference over the cases that both have run, the interval
in which it lies in 95 of 100 resamplings (a paired bootstrap), how likely so
large a difference is by chance, and whether B is better, worse, or the
difference is noise. A metric that is no mean over cases, such as an area under
a curve, is scored anew for every resampling, for which the data must be there;
where it is not, that metric is shown without.`

func newEvalCompare(a *app) *cobra.Command {
	var o evalCompareOptions
	cmd := &cobra.Command{
		Use: "compare A.json B.json", Short: "say whether one run is better than another", Long: evalCompareHelp,
		Args: argCount(2, 2, "two reports"), Example: "  marchwarden eval compare before.json after.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runEvalCompare(cmd.Context(), o, args[0], args[1])
		},
	}
	dataFlag(cmd, &o.data)
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "`NUMBER` that decides the resamplings")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

type evalCompareOptions struct {
	data string
	seed uint64
	json bool
}

// scorer is how a suite scores rows, or nil where its data is not there.
func (a *app) scorer(ctx context.Context, name, dir string) (score func([]eval.Row) []eval.Metric, close func() error, err error) {
	none := func() error { return nil }
	data, err := a.evalData(dir)
	if err != nil {
		data = eval.Data{} // there are suites that need none
	}
	all := suites.All()
	i := slices.IndexFunc(all, func(s eval.Suite) bool { return s.Name == name })
	if i < 0 || len(missing(data, all[i])) > 0 {
		return nil, none, nil
	}
	sess, err := eval.Idle(ctx, all[i], eval.Env{Data: data, Seed: 1, Now: evaldesk.Today()})
	if err != nil {
		return nil, none, err
	}
	return sess.Score, sess.Close, nil
}

func (a *app) runEvalCompare(ctx context.Context, o evalCompareOptions, pathA, pathB string) error {
	ra, err := readReport(pathA)
	if err != nil {
		return err
	}
	rb, err := readReport(pathB)
	if err != nil {
		return err
	}
	if _, err := eval.Compare(ra, rb, nil, o.seed); err != nil {
		return err // before the data is read
	}
	score, closed, err := a.scorer(ctx, ra.Suite, o.data)
	if err != nil {
		return err
	}
	list, err := eval.Compare(ra, rb, score, o.seed)
	if err = errors.Join(err, closed()); err != nil {
		return err
	}
	if o.json {
		return printJSON(a.forPrograms(), list)
	}
	rows := make([][]string, len(list))
	for i, c := range list {
		rows[i] = []string{c.Metric, eval.Number(c.A), eval.Number(c.B), fmt.Sprintf("%+.4f", c.Difference), "", "", term.Count(c.Cases), string(c.Verdict)}
		if c.Verdict != eval.Untold {
			rows[i][4], rows[i][5] = fmt.Sprintf("%+.4f to %+.4f", c.Low, c.High), fmt.Sprintf("%.4f", c.P)
		}
	}
	return a.outStyle().Table(a.stdout, []string{"metric", "A", "B", "difference", "95 % interval", "p", "cases", ""}, rows)
}

// maxReport bounds a report.
const maxReport = 256 << 20

func readReport(path string) (*eval.Report, error) {
	f, err := durable.OpenRegular(path)
	if err != nil {
		return nil, invalid(path, "give the report of 'marchwarden eval run'", "cannot be opened: "+durable.Cause(err))
	}
	defer f.Close()
	data, err := network.ReadLimited(f, maxReport, path)
	if err != nil {
		return nil, err
	}
	r, err := eval.DecodeReport(data)
	if err != nil {
		return nil, invalid(path, "give the report of 'marchwarden eval run'", err.Error())
	}
	return r, nil
}

const evalTableHelp = `Print the numbers of reports as a Markdown table, with what they are held
against, what is known of others, and the commands that made them.

--into replaces, in a file, the part between the lines
  <!-- eval: begin -->
  <!-- eval: end -->
and leaves the rest as it is.`

func newEvalTable(a *app) *cobra.Command {
	var into string
	cmd := &cobra.Command{
		Use: "table REPORT.json…", Short: "put reports into a Markdown table", Long: evalTableHelp, Args: argCount(1, 1000, "at least one report"),
		Example: "  marchwarden eval table reports/*.json --into docs/quality.md",
		RunE:    func(_ *cobra.Command, args []string) error { return a.runEvalTable(args, into) },
	}
	cmd.Flags().StringVar(&into, "into", "", "replace the marked part of `FILE`")
	return cmd
}

// readPage reads the file that a table goes into.
func readPage(path string) ([]byte, error) {
	const most = 64 << 20
	f, err := durable.OpenRegular(path)
	if err != nil {
		return nil, invalid("--into", "give a file with the two marked lines; see 'marchwarden eval table --help'", fmt.Sprintf("%q cannot be opened: %s", path, durable.Cause(err)))
	}
	defer f.Close()
	return network.ReadLimited(f, most, "--into")
}

func (a *app) runEvalTable(paths []string, into string) error {
	var reports []*eval.Report
	for _, path := range paths {
		r, err := readReport(path)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	text := term.Clean(eval.Markdown(reports))
	if into == "" {
		_, err := io.WriteString(a.stdout, text)
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the table")
	}
	page, err := readPage(into)
	if err != nil {
		return err
	}
	const begin, end = "<!-- eval: begin -->\n", "<!-- eval: end -->"
	before, rest, ok := bytes.Cut(page, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return invalid("--into", "see 'marchwarden eval table --help'", fmt.Sprintf("%s has no part that is marked for the table", into))
	}
	return writeOut(into, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s%s%s%s%s", before, begin, text, end, after)
		return err
	})
}
