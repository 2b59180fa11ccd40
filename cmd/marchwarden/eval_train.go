package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	evaldesk "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/desk"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/suites"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

type evalTrainOptions struct {
	data      string
	write     bool
	noVectors bool
	quiet     bool
}

const evalTrainHelp = `Fit one of the small models that the program ships, on the public data, and
print what cross-validation says about it.

The models are files of names and weights in the source of the program. --write
replaces the file, and must be run in the root of the source; the program has to
be built anew to use it. The same data gives the same file.`

func newEvalTrain(a *app) *cobra.Command {
	var o evalTrainOptions
	cmd := &cobra.Command{
		Use: "train [NAME]", Short: "fit a model that the program ships", Long: evalTrainHelp, Args: argCount(0, 1, "the name of a model"),
		Example: "  marchwarden eval train\n  marchwarden eval train support --write",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listTrainers()
			}
			return a.runEvalTrain(cmd.Context(), o, args[0])
		},
	}
	dataFlag(cmd, &o.data)
	cmd.Flags().BoolVar(&o.write, "write", false, "replace the model's file in the source")
	cmd.Flags().BoolVar(&o.noVectors, "no-vectors", false, "work with words alone, without sentence vectors")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

// listTrainers shows what can be trained.
func (a *app) listTrainers() error {
	var rows [][]string
	for _, t := range suites.Trainers() {
		rows = append(rows, []string{t.Name, t.Writes, strings.Join(t.Files, ", ")})
	}
	return a.outStyle().Table(a.stdout, []string{"model", "file", "data"}, rows)
}

func (a *app) runEvalTrain(ctx context.Context, o evalTrainOptions, name string) (err error) {
	t, err := trainerNamed(name)
	if err != nil {
		return err
	}
	data, err := a.evalData(o.data)
	if err != nil {
		return err
	}
	if gone := slices.DeleteFunc(slices.Clone(t.Files), data.Has); len(gone) > 0 {
		return invalid("--data", "name the folder that holds it", fmt.Sprintf("%s does not hold %s", data.Dir(), strings.Join(gone, ", ")))
	}
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	path := filepath.Join(a.Dir, filepath.FromSlash(t.Writes))
	if o.write {
		if err := inSource(a.Dir, path); err != nil {
			return err
		}
	}
	run := evalRunOptions{noVectors: o.noVectors, uncalibrated: true}
	lab, err := a.openEvalLab(c, run)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.close()) }()
	d, _, err := lab.open(run, "")
	if err != nil {
		return err
	}
	progress := a.newEvalProgress(c, t.Name, o.quiet)
	weights, summary, err := t.Fit(ctx, eval.Env{Data: data, Embed: lab.embed, Reader: lab.reader(), Desk: d, Seed: 1, Now: evaldesk.Today(), Say: progress.say})
	progress.close()
	if err != nil {
		return stopped(ctx, "the model was not fitted", err)
	}
	if _, err := fmt.Fprintln(a.stdout, strings.TrimRight(summary, "\n")); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the figures")
	}
	return a.keepWeights(path, t.Writes, weights, o.write)
}

func trainerNamed(name string) (eval.Trainer, error) {
	all := suites.Trainers()
	var names []string
	for _, t := range all {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return eval.Trainer{}, invalid("model", "'marchwarden eval train' shows what can be trained", fmt.Sprintf("must be %s, not %q", settings.Either(names), plaintext.Clip(name, 40)))
}

// inSource makes sure that a file of the program's source can be replaced.
func inSource(dir, path string) error {
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return invalid("--write", "run it in the root of the source", "there is no go.mod in "+dir)
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return invalid("--write", "run it in the root of the source", durable.Cause(err))
	}
	return nil
}

// keepWeights writes a model, or says whether it would change.
func (a *app) keepWeights(path, name string, weights []byte, write bool) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && write {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the model")
	}
	switch {
	case bytes.Equal(old, weights):
		a.note("%s has this model already", name)
		return nil
	case !write:
		a.note("not written; --write replaces %s", name)
		return nil
	}
	if err := durable.ReplaceFile(path, weights); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write the model")
	}
	if err := os.Chmod(path, 0o644); err != nil { // source is for everybody to read
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write the model")
	}
	a.note("written: %s; build the program anew to use it", name)
	return nil
}
