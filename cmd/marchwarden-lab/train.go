package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	evaldesk "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/desk"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/suites"
)

type trainOptions struct {
	data      string
	write     bool
	noVectors bool
	quiet     bool
}

const trainHelp = `Fit one of the small models that the program ships, on the public data, and
print what cross-validation says about it.

The models are files of names and weights in the source of the program. --write
replaces the file, and must be run in the root of the source; the program has to
be built anew to use it. The same data gives the same file.`

func newTrain(l *lab) *cobra.Command {
	var o trainOptions
	cmd := &cobra.Command{
		Use: "train [NAME]", Short: "fit a model that the program ships", Long: trainHelp, Args: cobra.MaximumNArgs(1),
		Example: "  marchwarden-lab train\n  marchwarden-lab train support --write",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return l.listTrainers()
			}
			return l.train(cmd.Context(), o, args[0])
		},
	}
	dataFlag(cmd, &o.data)
	cmd.Flags().BoolVar(&o.write, "write", false, "replace the model's file in the source")
	cmd.Flags().BoolVar(&o.noVectors, "no-vectors", false, "work with words alone, without sentence vectors")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

// listTrainers shows what can be trained.
func (l *lab) listTrainers() error {
	var rows [][]string
	for _, t := range suites.Trainers() {
		rows = append(rows, []string{t.Name, t.Writes, strings.Join(t.Files, ", ")})
	}
	return l.table([]string{"model", "file", "data"}, rows)
}

func (l *lab) train(ctx context.Context, o trainOptions, name string) (err error) {
	t, err := trainerNamed(name)
	if err != nil {
		return err
	}
	data, err := openData(o.data)
	if err != nil {
		return err
	}
	if gone := missing(data, t.Files); len(gone) > 0 {
		return notHeld(data, gone)
	}
	path := filepath.FromSlash(t.Writes)
	if _, err := os.Stat(filepath.Dir(path)); err != nil && o.write {
		return invalid("--write", "run it in the root of the source", "%s", err)
	}
	run := runOptions{noVectors: o.noVectors, depth: string(marchwarden.Balanced)}
	b, err := l.open(run)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	d, _, err := b.desk(run, "")
	if err != nil {
		return err
	}
	progress := l.progress(t.Name, o.quiet)
	weights, figures, err := t.Fit(ctx, eval.Env{Data: data, Embed: b.embed, Reader: b.reader(), Desk: d, Seed: 1, Now: evaldesk.Today(), Say: progress.Say})
	progress.Close()
	if err != nil {
		return err
	}
	if err := l.printf("%s\n", strings.TrimRight(figures, "\n")); err != nil {
		return err
	}
	return l.keepWeights(path, weights, o.write)
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
	return eval.Trainer{}, invalid("model", "'marchwarden-lab train' shows what can be trained", "must be %s, not %.40q", strings.Join(names, ", "), name)
}

// keepWeights writes a model, or says whether it would change.
func (l *lab) keepWeights(path string, weights []byte, replace bool) error {
	old, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(old, weights):
		l.note("%s has this model already", path)
		return nil
	case !replace:
		l.note("not written; --write replaces %s", path)
		return nil
	}
	if err := write(path, weights); err != nil {
		return err
	}
	l.note("written: %s; build the program anew to use it", path)
	return nil
}
