package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/calibrate"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

const calibrateHelp = `Make confidence mean what it says: of the answers given with 0.8, eight of ten
should be right.

The score of an answer is computed from its evidence by a fixed rubric. This
command reads, from reports of 'marchwarden-lab run … --uncalibrated', which
answers were right, fits a sigmoid (Platt) and a curve that never falls
(isotonic), takes the one that does better on answers held back (five folds,
whole articles together), and writes it as a table. Every later answer of
'marchwarden' is given the confidence that the table says; 'confidence_factors'
stay as they are, and so do the bounds for one origin, contradictions and an
exhausted budget.

The table goes to calibration.json in the home folder, in place of the one that
comes with the program. Remove the file to have that one back. The record of a
run holds the table it was scored with, so that a replay gives the same.`

type calibrateOptions struct {
	from     []string
	out, svg string
	seed     uint64
	dry      bool
}

func newCalibrate(l *lab) *cobra.Command {
	var o calibrateOptions
	cmd := &cobra.Command{
		Use: "calibrate REPORT…", Short: "fit confidence to how often answers were right", Long: calibrateHelp, Args: cobra.MinimumNArgs(1),
		Example: "  marchwarden-lab run squad2 clapnq --uncalibrated --out reports\n  marchwarden-lab calibrate reports/*.json\n" +
			"  marchwarden-lab calibrate reports/squad2.json --svg diagram.svg --dry-run",
		RunE: func(_ *cobra.Command, args []string) error {
			o.from = args
			return l.calibrate(o)
		},
	}
	cmd.Flags().StringVar(&o.out, "out", "", "write the table to `FILE` instead of calibration.json in the home folder")
	cmd.Flags().StringVar(&o.svg, "svg", "", "write the reliability diagram to `FILE`, as a picture")
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "`NUMBER` that deals the answers into folds")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "fit and show, and write no table")
	return cmd
}

func (l *lab) calibrate(o calibrateOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	answers, err := readAnswers(o.from)
	if err != nil {
		return err
	}
	fit, err := calibrate.Make(answers, o.seed)
	if err != nil {
		return err
	}
	fit.Table.Made = time.Now().UTC().Format(time.DateOnly)
	fit.Table.Command = "marchwarden-lab calibrate"
	for _, path := range o.from {
		fit.Table.Command += " " + filepath.Base(path)
	}
	if err := l.printFit(fit); err != nil {
		return err
	}
	if o.svg != "" {
		if err := write(o.svg, []byte(calibrate.SVG(fit))); err != nil {
			return err
		}
		l.note("the diagram is in %s", o.svg)
	}
	if o.dry {
		l.note("nothing was changed (--dry-run)")
		return nil
	}
	return l.keepTable(o.out, fit)
}

// check refuses to write over what is read.
func (o calibrateOptions) check() error {
	for _, w := range []struct{ flag, path string }{{"--out", o.out}, {"--svg", o.svg}} {
		for _, from := range o.from {
			if w.path != "" && sameFile(w.path, from) {
				return invalid(w.flag, "give another file", "%q is a report that is read", w.path)
			}
		}
	}
	return nil
}

func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// keepTable writes the table to where it is used, or to where it is wanted.
func (l *lab) keepTable(out string, fit *calibrate.Fit) error {
	text, err := json.MarshalIndent(fit.Table, "", "  ")
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInternal, "encode the calibration table")
	}
	path := out
	if path == "" {
		c, err := l.load()
		if err != nil {
			return err
		}
		if err := durable.MakeDir(c.Home()); err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make the home folder")
		}
		path = c.CalibrationPath()
	}
	if err := write(path, append(text, '\n')); err != nil {
		return err
	}
	if out == "" {
		l.note("answers are given with these probabilities from now on; the table is %s", path)
	} else {
		l.note("the table is in %s", path)
	}
	return nil
}

// readAnswers takes the answers out of reports. The same answer twice is refused: a curve
// would be held against what it was fitted to.
func readAnswers(paths []string) ([]calibrate.Answer, error) {
	var all []calibrate.Answer
	seen := map[answerKey]string{}
	for _, path := range paths {
		r, err := readReport(path)
		if err != nil {
			return nil, err
		}
		answers := calibrate.FromRows(r.Suite, r.Rows)
		if len(answers) == 0 {
			continue // of a suite that asks nothing
		}
		if !r.Settings.Uncalibrated {
			return nil, invalid(path, "run the suite again with --uncalibrated", "holds confidences that went through a table already")
		}
		settings := r.Settings
		settings.Limit, settings.Seed = 0, 0 // which only choose cases
		for _, row := range r.Rows {
			k := answerKey{r.Suite, row.ID, settings}
			if first, twice := seen[k]; twice {
				return nil, invalid(path, "leave one of them out", "the case %.60q of %.40s is in %q, too", row.ID, r.Suite, first)
			}
			seen[k] = path
		}
		all = append(all, answers...)
	}
	return all, nil
}

// answerKey tells answers apart.
type answerKey struct {
	suite, id string
	settings  eval.Settings
}

func (l *lab) printFit(f *calibrate.Fit) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d answers: %s\n\nas the rubric scores them\n%s\nas the curve says, of answers it was not fitted to\n%s\n",
		f.Table.Answers, term.CleanLine(f.Table.Data), calibrate.Text(f.Before), calibrate.Text(f.After))
	fmt.Fprintf(&b, "%-22s %8s %8s\n%-22s %8.4f %8.4f\n", "", "ECE", "Brier", "score of the rubric", f.Table.Before.ECE, f.Table.Before.Brier)
	for i, t := range f.Trials {
		chosen := ""
		if i == 0 {
			chosen = "  chosen"
		}
		fmt.Fprintf(&b, "%-22s %8.4f %8.4f%s\n", t.Method+", held back", t.ECE, t.Brier, chosen)
	}
	return l.printf("%s", b.String())
}
