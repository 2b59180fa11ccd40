package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	evaldesk "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/desk"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/suites"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

const evalHelp = `Measure the quality of answers, and of the parts that make them, on public data
sets: retrieval, answers, refusal, conflicts, support, excerpts, planning,
extraction and the density of citations.

The data is no part of the program. It is looked for in the folder that --data
names; 'marchwarden eval list' shows what is found there. Nothing of it is ever
written. A run without --model needs no network and no key.`

const evalExamples = `  marchwarden eval list --data ~/data
  marchwarden eval run squad2 --limit 500
  marchwarden eval compare before.json after.json`

// defaultData is where the data is looked for when nobody says.
var defaultData = filepath.Join("..", "shared", "data")

func newEval(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "eval", Short: "measure quality on public data", Long: evalHelp, Example: evalExamples, Args: needCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newEvalList(a), newEvalRun(a), newEvalCompare(a), newEvalTable(a), newEvalDensity(a), newEvalTrain(a))
	return cmd
}

type evalListOptions struct {
	data string
	json bool
}

func newEvalList(a *app) *cobra.Command {
	var o evalListOptions
	cmd := &cobra.Command{
		Use: "list", Short: "show the suites, and whether their data is there", Args: noArgs,
		Example: "  marchwarden eval list\n  marchwarden eval list --data ~/data --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runEvalList(cmd.Context(), o) },
	}
	dataFlag(cmd, &o.data)
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func dataFlag(cmd *cobra.Command, data *string) {
	cmd.Flags().StringVar(data, "data", defaultData, "`FOLDER` of the data sets")
}

// suiteInfo is a line of 'eval list --json'. Fields are only ever added.
type suiteInfo struct {
	Name     string     `json:"name"`
	Title    string     `json:"title"`
	Measures string     `json:"measures"`
	Licence  string     `json:"licence"`
	Files    []string   `json:"files"`
	Missing  []string   `json:"missing,omitempty"`
	Without  []string   `json:"without,omitempty"` // files without which it has fewer cases
	Cases    *int       `json:"cases,omitempty"`   // of data that is there and can be read
	Problem  string     `json:"problem,omitempty"`
	Bars     []eval.Bar `json:"bars,omitempty"`
}

func (a *app) runEvalList(ctx context.Context, o evalListOptions) error {
	data, err := a.evalData(o.data)
	if err != nil {
		return err
	}
	all := suites.All()
	infos := make([]suiteInfo, len(all))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i, s := range all {
		g.Go(func() error {
			infos[i] = suiteInfo{Name: s.Name, Title: s.Title, Measures: s.Measures, Licence: s.Licence, Files: s.Files, Bars: s.Bars, Missing: missing(data, s), Without: without(data, s.Optional)}
			if len(infos[i].Missing) > 0 {
				return nil
			}
			n, err := eval.Count(gctx, s, eval.Env{Data: data, Seed: 1, Now: evaldesk.Today()})
			if err != nil {
				infos[i].Problem = term.CleanLine(err.Error())
				return gctx.Err()
			}
			infos[i].Cases = &n
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return stopped(ctx, "not all suites were looked at", err)
	}
	if o.json {
		return printJSON(a.forPrograms(), infos)
	}
	rows := make([][]string, len(infos))
	for i, s := range infos {
		rows[i] = []string{s.Name, s.found(), s.Measures, s.Licence}
	}
	if err := a.outStyle().Table(a.stdout, []string{"suite", "cases", "measures", "licence"}, rows); err != nil {
		return err
	}
	a.note("data in %s", data.Dir())
	return nil
}

// found says for people what there is of a suite.
func (s suiteInfo) found() string {
	switch {
	case len(s.Missing) > 0:
		return "missing: " + strings.Join(s.Missing, ", ")
	case s.Problem != "":
		return s.Problem
	case len(s.Without) > 0:
		return term.Count(*s.Cases) + " without " + strings.Join(s.Without, ", ")
	}
	return term.Count(*s.Cases)
}

// chosenWithData are the suites of these names and the data that they read. A suite that
// needs no data runs without the folder that is looked for when none is named.
func (a *app) chosenWithData(names []string, dir string) ([]eval.Suite, eval.Data, error) {
	data, err := a.evalData(dir)
	if err == nil {
		chosen, err := a.chosenSuites(names, data)
		return chosen, data, err
	}
	none := eval.NewData(nil, a.Source().Absolute(dir, a.Dir))
	if chosen, absent := a.chosenSuites(names, none); dir == defaultData && absent == nil && !slices.Contains(names, "all") {
		return chosen, none, nil
	}
	return nil, data, err
}

// missing are the files of a suite that are not there.
func missing(data eval.Data, s eval.Suite) []string { return without(data, s.Files) }

func without(data eval.Data, files []string) []string {
	return slices.DeleteFunc(slices.Clone(files), data.Has)
}

// evalData is the data in a folder, which must be there.
func (a *app) evalData(dir string) (eval.Data, error) {
	if strings.TrimSpace(dir) == "" {
		return eval.Data{}, invalid("--data", "leave it out for "+defaultData, "must not be blank")
	}
	path := a.Source().Absolute(dir, a.Dir)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return eval.Data{}, invalid("--data", "name the folder that holds the data sets, with folders such as qa, claims and retrieval in it", fmt.Sprintf("%s cannot be opened: %s", path, durable.Cause(err)))
	case !info.IsDir():
		return eval.Data{}, invalid("--data", "", path+" is not a folder")
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return eval.Data{}, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "open the data")
	}
	return eval.NewData(root.FS(), path), nil // open until the process ends
}

// chosenSuites are the suites of these names, each once; "all" is every one whose data
// is there.
func (a *app) chosenSuites(names []string, data eval.Data) ([]eval.Suite, error) {
	all := suites.All()
	var known []string
	for _, s := range all {
		known = append(known, s.Name)
	}
	var out []eval.Suite
	for _, name := range names {
		if name == "all" {
			for _, s := range all {
				if gone := append(missing(data, s), without(data, s.Optional)...); len(gone) > 0 {
					a.note("left out: %s, whose data is not in %s: %s", s.Name, data.Dir(), strings.Join(gone, ", "))
					continue
				}
				out = append(out, s)
			}
			continue
		}
		i := slices.Index(known, name)
		if i < 0 {
			return nil, invalid("suite", "'marchwarden eval list' shows what each measures", fmt.Sprintf("must be all, %s, not %q", settings.Either(known), plaintext.Clip(name, 40)))
		}
		if gone := missing(data, all[i]); len(gone) > 0 {
			return nil, invalid("--data", "name the folder that holds it; 'marchwarden eval list' shows what is found", fmt.Sprintf("%s does not hold %s", data.Dir(), strings.Join(gone, ", ")))
		}
		out = append(out, all[i])
	}
	seen := map[string]bool{}
	out = slices.DeleteFunc(out, func(s eval.Suite) bool {
		twice := seen[s.Name]
		seen[s.Name] = true
		return twice
	})
	if len(out) == 0 {
		return nil, invalid("--data", "'marchwarden eval list' shows what is looked for", "there is no data in "+data.Dir())
	}
	return out, nil
}
