package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	evaldesk "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/desk"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/suites"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// printReport shows the numbers of a run.
func (l *lab) printReport(r *report) error {
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
	if err := l.printf("%s: %s\n", r.Suite, r.Title); err != nil {
		return err
	}
	if err := l.table([]string{"metric", "value", "n", "bar", "", "known"}, rows); err != nil {
		return err
	}
	for _, note := range r.Notes {
		l.note("%s", note)
	}
	cost := "cost unknown"
	if r.USD != nil {
		cost = fmt.Sprintf("about $%.4f", *r.USD)
		if *r.USD == 0 {
			cost = "no cost"
		}
	}
	return l.printf("%s of %s · %s · %s tokens · %s · %s, %s a case\n%s\n\n", term.Count(len(r.Report.Rows)), term.Plural(r.Cases, "case"), r.Settings.Describe(),
		term.Count(r.Tokens), cost, term.Duration(seconds(r.Took.WallSec)), term.Duration(seconds(r.Took.MedianSec)), r.File)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func reachedWord(reached bool) string {
	if reached {
		return "reached"
	}
	return "below"
}

const compareHelp = `Hold one report against another of the same suite and data, case by case.

For every metric: the difference over the cases that both have run, the interval
in which it lies in 95 of 100 resamplings (a paired bootstrap), how likely so
large a difference is by chance, and whether B is better, worse, or the
difference is noise. A metric that is no mean over cases, such as an area under
a curve, is scored anew for every resampling, for which the data must be there;
where it is not, that metric is shown without.`

func newCompare(l *lab) *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use: "compare A.json B.json", Short: "say whether one run is better than another", Long: compareHelp,
		Args: cobra.ExactArgs(2), Example: "  marchwarden-lab compare before.json after.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return l.compare(cmd.Context(), o, args[0], args[1])
		},
	}
	dataFlag(cmd, &o.data)
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "`NUMBER` that decides the resamplings")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

type compareOptions struct {
	data string
	seed uint64
	json bool
}

// scorer is how a suite scores rows, or nil where its data is not there.
func scorer(ctx context.Context, name, dir string) (score func([]eval.Row) []eval.Metric, close func() error, err error) {
	none := func() error { return nil }
	data, err := openData(dir)
	if err != nil {
		data = eval.Data{} // there are suites that need none
	}
	all := suites.All()
	i := slices.IndexFunc(all, func(s eval.Suite) bool { return s.Name == name })
	if i < 0 || len(missing(data, all[i].Files)) > 0 {
		return nil, none, nil
	}
	sess, err := eval.Idle(ctx, all[i], eval.Env{Data: data, Seed: 1, Now: evaldesk.Today()})
	if err != nil {
		return nil, none, err
	}
	return sess.Score, sess.Close, nil
}

func (l *lab) compare(ctx context.Context, o compareOptions, pathA, pathB string) error {
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
	score, closed, err := scorer(ctx, ra.Suite, o.data)
	if err != nil {
		return err
	}
	list, err := eval.Compare(ra, rb, score, o.seed)
	if err = errors.Join(err, closed()); err != nil {
		return err
	}
	if o.json {
		return l.json(list)
	}
	rows := make([][]string, len(list))
	for i, c := range list {
		rows[i] = []string{c.Metric, eval.Number(c.A), eval.Number(c.B), fmt.Sprintf("%+.4f", c.Difference), "", "", term.Count(c.Cases), string(c.Verdict)}
		if c.Verdict != eval.Untold {
			rows[i][4], rows[i][5] = fmt.Sprintf("%+.4f to %+.4f", c.Low, c.High), fmt.Sprintf("%.4f", c.P)
		}
	}
	return l.table([]string{"metric", "A", "B", "difference", "95 % interval", "p", "cases", ""}, rows)
}

func readReport(path string) (*eval.Report, error) {
	const hint = "give the report of 'marchwarden-lab run'"
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, invalid(path, hint, "cannot be read: %s", durable.Cause(err))
	}
	r, err := eval.DecodeReport(data)
	if err != nil {
		return nil, invalid(path, hint, "%v", err)
	}
	return r, nil
}

const tableHelp = `Print the numbers of reports as a Markdown table, with what they are held
against, what is known of others, and the commands that made them.

--into replaces, in a file, the part between the lines
  <!-- eval: begin -->
  <!-- eval: end -->
and leaves the rest as it is.`

func newTable(l *lab) *cobra.Command {
	var into string
	cmd := &cobra.Command{
		Use: "table REPORT.json…", Short: "put reports into a Markdown table", Long: tableHelp, Args: cobra.MinimumNArgs(1),
		Example: "  marchwarden-lab table reports/*.json --into docs/quality.md",
		RunE:    func(_ *cobra.Command, args []string) error { return l.markdown(args, into) },
	}
	cmd.Flags().StringVar(&into, "into", "", "replace the marked part of `FILE`")
	return cmd
}

func (l *lab) markdown(paths []string, into string) error {
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
		return l.printf("%s", text)
	}
	const hint = "give a file with the two marked lines; see 'marchwarden-lab table --help'"
	page, err := os.ReadFile(into)
	if err != nil {
		return invalid("--into", hint, "%q cannot be read: %s", into, durable.Cause(err))
	}
	const begin, end = "<!-- eval: begin -->\n", "<!-- eval: end -->"
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return invalid("--into", hint, "%s has no part that is marked for the table", into)
	}
	return write(into, []byte(before+begin+text+end+after))
}
