package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/calibrate"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

const calibrateHelp = `Make confidence mean what it says: of the answers given with 0.8, eight of ten
should be right.

The score of an answer is computed from its evidence by a fixed rubric. This
command reads, from reports of 'marchwarden eval run … --uncalibrated', which
answers were right, fits a sigmoid (Platt) and a curve that never falls
(isotonic), takes the one that does better on answers held back (five folds,
whole articles together), and writes it as a table. Every later answer is given
the confidence that the table says; 'confidence_factors' stay as they are, and
so do the bounds for one origin, contradictions and an exhausted budget.

The table goes to calibration.json in the home folder, in place of the one that
comes with the program. Remove the file to have that one back. The record of a
run holds the table it was scored with, so that a replay gives the same.`

type calibrateOptions struct {
	from     []string
	out, svg string
	seed     uint64
	dry      bool
}

func newCalibrate(a *app) *cobra.Command {
	var o calibrateOptions
	cmd := &cobra.Command{
		Use: "calibrate --from REPORT…", Short: "fit confidence to how often answers were right", Long: calibrateHelp,
		Example: "  marchwarden eval run squad2 clapnq --uncalibrated --out reports\n  marchwarden calibrate --from reports/*.json\n" +
			"  marchwarden calibrate --from reports/squad2.json --svg diagram.svg --dry-run",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := notBlank(cmd); err != nil {
				return err
			}
			o.from = append(o.from, args...) // as a shell makes several of one pattern
			return a.runCalibrate(o)
		},
	}
	cmd.Flags().StringArrayVar(&o.from, "from", nil, "`REPORTS` of evaluations whose answers are known to be right or wrong")
	cmd.Flags().StringVar(&o.out, "out", "", "write the table to `FILE` instead of calibration.json in the home folder")
	cmd.Flags().StringVar(&o.svg, "svg", "", "write the reliability diagram to `FILE`, as a picture")
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "`NUMBER` that deals the answers into folds")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "fit and show, and write no table")
	return cmd
}

func (a *app) runCalibrate(o calibrateOptions) error {
	if len(o.from) == 0 {
		return invalid("--from", "make one with: marchwarden eval run squad2 --uncalibrated --out reports", "must name at least one report")
	}
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	if err := o.checkFiles(); err != nil {
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
	fit.Table.Made = a.Now().UTC().Format(time.DateOnly)
	fit.Table.Command = "marchwarden calibrate --from " + strings.Join(baseNames(o.from), " ")
	path, err := o.tablePath(c)
	if err != nil {
		return err
	}
	if err := a.printCalibration(fit); err != nil {
		return err
	}
	if o.svg != "" {
		if err := writeText(o.svg, calibrate.SVG(fit)); err != nil {
			return err
		}
		a.note("the diagram is in %s", o.svg)
	}
	if o.dry {
		a.note("nothing was changed (--dry-run)")
		return nil
	}
	return a.writeTable(path, o.out == "", fit.Table)
}

// tablePath is where the table goes, a place that can be written unless it is not to be.
func (o *calibrateOptions) tablePath(c *settings.Settings) (string, error) {
	if o.out != "" || o.dry {
		return o.out, nil
	}
	path := c.CalibrationPath()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make the home folder")
	}
	var e *marchwarden.Error
	if err := checkOut(path); errors.As(err, &e) {
		return "", invalid(c.Label(settings.Home), "make the folder writable, or name a file with --out", e.Message)
	} else if err != nil {
		return "", err
	}
	return path, nil
}

// checkFiles refuses, before any work is done, files that cannot be written, and those
// that would be written over what is read.
func (o *calibrateOptions) checkFiles() error {
	if err := checkOut(o.out); err != nil {
		return err
	}
	var e *marchwarden.Error
	if err := checkOut(o.svg); errors.As(err, &e) && e.Field == "--out" {
		return invalid("--svg", e.Hint, e.Message)
	} else if err != nil {
		return err
	}
	if o.svg != "" && o.out != "" && filepath.Clean(linked(o.svg)) == filepath.Clean(linked(o.out)) {
		return invalid("--svg", "give each a file of its own", "must not be the file of --out")
	}
	for _, w := range []struct{ flag, path string }{{"--out", o.out}, {"--svg", o.svg}} {
		for _, from := range o.from {
			if w.path != "" && sameFile(w.path, from) {
				return invalid(w.flag, "give another file", fmt.Sprintf("%q is a report that is read", w.path))
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

// writeTable writes the table to where it is used, or to where it is wanted.
func (a *app) writeTable(path string, used bool, t *confidence.Table) error {
	b, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInternal, "encode the calibration table")
	}
	if err := writeText(path, string(b)+"\n"); err != nil {
		return err
	}
	if used {
		a.note("answers are given with these probabilities from now on; the table is %s", path)
	} else {
		a.note("the table is in %s", path)
	}
	return nil
}

func writeText(path, text string) error {
	return writeOut(path, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// readAnswers takes the answers out of reports. The same answer twice is refused: a curve
// would be held against what it was fitted to.
func readAnswers(paths []string) ([]calibrate.Answer, error) {
	var all []calibrate.Answer
	seen := map[answerKey]string{}
	for _, path := range paths {
		r, err := readReport(path)
		if err != nil {
			return nil, fromFlag(err)
		}
		answers := calibrate.FromRows(r.Suite, r.Rows)
		if len(answers) == 0 {
			continue // of a suite that asks nothing
		}
		if !r.Settings.Uncalibrated {
			return nil, invalid("--from", "run the suite again with --uncalibrated", fmt.Sprintf("%q holds confidences that went through a table already", path))
		}
		settings := r.Settings
		settings.Limit, settings.Seed = 0, 0 // which only choose cases
		for _, row := range r.Rows {
			k := answerKey{r.Suite, row.ID, settings}
			if first, twice := seen[k]; twice {
				return nil, invalid("--from", "leave one of them out", fmt.Sprintf("the case %q of %s is in %q and in %q", plaintext.Clip(row.ID, 60), plaintext.Clip(r.Suite, 40), first, path))
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

// fromFlag names the flag in the error of a report that cannot be read.
func fromFlag(err error) error {
	var e *marchwarden.Error
	if errors.As(err, &e) && e.Code == marchwarden.CodeInvalid {
		return invalid("--from", e.Hint, fmt.Sprintf("%q %s", e.Field, e.Message))
	}
	return err
}

func baseNames(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = filepath.Base(p)
	}
	return out
}

func (a *app) printCalibration(f *calibrate.Fit) error {
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
	if _, err := io.WriteString(a.stdout, b.String()); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the calibration")
	}
	return nil
}
