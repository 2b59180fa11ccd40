package main

import (
	"context"
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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// defaultData is where the data is looked for unless --data says.
var defaultData = filepath.Join("..", "shared", "data")

func dataFlag(cmd *cobra.Command, data *string) {
	cmd.Flags().StringVar(data, "data", defaultData, "`FOLDER` of the data sets")
}

func newList(l *lab) *cobra.Command {
	var data string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "show the suites, and whether their data is there", Args: cobra.NoArgs,
		Example: "  marchwarden-lab list\n  marchwarden-lab list --data ~/data --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return l.list(cmd.Context(), data, asJSON) },
	}
	dataFlag(cmd, &data)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// suiteInfo is a line of 'list --json'. Fields are only ever added.
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

func (l *lab) list(ctx context.Context, dir string, asJSON bool) error {
	data, err := openData(dir)
	if err != nil {
		return err
	}
	all := suites.All()
	infos := make([]suiteInfo, len(all))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i, s := range all {
		g.Go(func() error {
			infos[i] = suiteInfo{Name: s.Name, Title: s.Title, Measures: s.Measures, Licence: s.Licence, Files: s.Files, Bars: s.Bars, Missing: missing(data, s.Files), Without: missing(data, s.Optional)}
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
		return err
	}
	if asJSON {
		return l.json(infos)
	}
	rows := make([][]string, len(infos))
	for i, s := range infos {
		rows[i] = []string{s.Name, s.found(), s.Measures, s.Licence}
	}
	if err := l.table([]string{"suite", "cases", "measures", "licence"}, rows); err != nil {
		return err
	}
	l.note("data in %s", data.Dir())
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

// missing are the files that are not there.
func missing(data eval.Data, files []string) []string {
	return slices.DeleteFunc(slices.Clone(files), data.Has)
}

// openData is the data in a folder, which must be there.
func openData(dir string) (eval.Data, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return eval.Data{}, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "find the data")
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return eval.Data{}, invalid("--data", "name the folder that holds the data sets, with folders such as qa, claims and retrieval in it", "%s cannot be opened: %s", path, durable.Cause(err))
	}
	return eval.NewData(root.FS(), path), nil // open until the process ends
}

// chosenWithData are the suites of these names and the data that they read. A suite that
// needs no data runs without the folder that is looked for when none is named.
func (l *lab) chosenWithData(names []string, dir string) ([]eval.Suite, eval.Data, error) {
	data, err := openData(dir)
	if err == nil {
		chosen, err := l.chosen(names, data)
		return chosen, data, err
	}
	none := eval.NewData(nil, dir)
	if chosen, absent := l.chosen(names, none); dir == defaultData && absent == nil && !slices.Contains(names, "all") {
		return chosen, none, nil
	}
	return nil, data, err
}

// chosen are the suites of these names, each once; "all" is every one whose data is
// there.
func (l *lab) chosen(names []string, data eval.Data) ([]eval.Suite, error) {
	all := suites.All()
	var known []string
	for _, s := range all {
		known = append(known, s.Name)
	}
	var out []eval.Suite
	add := func(s eval.Suite) {
		if !slices.ContainsFunc(out, func(o eval.Suite) bool { return o.Name == s.Name }) {
			out = append(out, s)
		}
	}
	for _, name := range names {
		if name == "all" {
			for _, s := range all {
				if gone := append(missing(data, s.Files), missing(data, s.Optional)...); len(gone) > 0 {
					l.note("left out: %s, whose data is not in %s: %s", s.Name, data.Dir(), strings.Join(gone, ", "))
					continue
				}
				add(s)
			}
			continue
		}
		i := slices.Index(known, name)
		if i < 0 {
			return nil, invalid("suite", "'marchwarden-lab list' shows what each measures", "must be all, %s, not %.40q", strings.Join(known, ", "), name)
		}
		if gone := missing(data, all[i].Files); len(gone) > 0 {
			return nil, notHeld(data, gone)
		}
		add(all[i])
	}
	if len(out) == 0 {
		return nil, invalid("--data", "'marchwarden-lab list' shows what is looked for", "there is no data in %s", data.Dir())
	}
	return out, nil
}

func notHeld(data eval.Data, files []string) error {
	return invalid("--data", "name the folder that holds it; 'marchwarden-lab list' shows what is found", "%s does not hold %s", data.Dir(), strings.Join(files, ", "))
}
