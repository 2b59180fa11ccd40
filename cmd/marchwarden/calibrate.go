package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/calibrate"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
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
			o.from = append(o.from, args...) // as a shell makes several of one pattern
			return a.runCalibrate(o)
		},
	}
	cmd.Flags().StringSliceVar(&o.from, "from", nil, "`REPORTS` of evaluations whose answers are known to be right or wrong")
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
	for _, path := range []string{o.out, o.svg} {
		if err := checkOut(path); err != nil {
			return err
		}
	}
	answers, err := readAnswers(o.from)
	if err != nil {
		return err
	}
	fit, err := calibrate.Make(answers, o.seed)
	if err != nil {
		return err
	}
	fit.Table.Made = a.now().UTC().Format(time.DateOnly)
	fit.Table.Command = "marchwarden calibrate --from " + strings.Join(baseNames(o.from), " ")
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
	return a.writeTable(c, o.out, fit.Table)
}

// writeTable writes the table to where it is used, or to where it is wanted.
func (a *app) writeTable(c *config, out string, t *confidence.Table) error {
	b, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInternal, "encode the calibration table")
	}
	path := out
	if path == "" {
		path = c.calibrationPath()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make the home folder")
		}
	}
	if err := writeText(path, string(b)+"\n"); err != nil {
		return err
	}
	if out == "" {
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

// readAnswers takes the answers out of reports.
func readAnswers(paths []string) ([]calibrate.Answer, error) {
	var all []calibrate.Answer
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, invalid("--from", "give the path of a report", fmt.Sprintf("%q cannot be read: %s", path, cause(err)))
		}
		r, err := eval.DecodeReport(b)
		if err != nil {
			return nil, marchwarden.Wrap(err, marchwarden.CodeInvalid, "--from %q", path)
		}
		answers := calibrate.FromRows(r.Suite, r.Rows)
		if len(answers) > 0 && !r.Settings.Uncalibrated {
			return nil, invalid("--from", "run the suite again with --uncalibrated", fmt.Sprintf("%q holds confidences that went through a table already", path))
		}
		all = append(all, answers...)
	}
	return all, nil
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
		f.Table.Answers, f.Table.Data, calibrate.Text(f.Before), calibrate.Text(f.After))
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

// calibration is the table that answers are scored with: the user's own, or the one
// that comes with the program.
func (c *config) calibration() (json.RawMessage, error) {
	path := c.calibrationPath()
	b, err := os.ReadFile(path)
	var t *confidence.Table
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t, err = confidence.Shipped()
	case err == nil:
		t, err = confidence.ParseTable(b)
	}
	if err != nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: path, Message: "the calibration table cannot be used",
			Hint: "remove the file to use the table that comes with the program, or make it anew with 'marchwarden calibrate'", Err: err}
	}
	return json.Marshal(t)
}
