package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/texts"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

const densityHelp = `Count, in Markdown reports of any origin, the sentences that carry a
citation: a number or footnote in square brackets, or a link.

Headings, tables, code and lists of sources are left out, and so are pieces of
fewer than six words. A mark that follows the full stop belongs to the sentence
before it.`

func newDensity(l *lab) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "density FILE.md…", Short: "count the sentences of any report that are cited", Long: densityHelp,
		Args: cobra.MinimumNArgs(1), Example: "  marchwarden-lab density report.md others/*.md",
		RunE: func(_ *cobra.Command, args []string) error { return l.density(args, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// densityInfo is a line of 'density --json'. Fields are only ever added.
type densityInfo struct {
	File string `json:"file"`
	texts.Citing
	Share float64 `json:"share"`
}

func (l *lab) density(paths []string, asJSON bool) error {
	var infos []densityInfo
	var rows [][]string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return invalid("file", "give a Markdown file", "%s cannot be read: %s", path, durable.Cause(err))
		}
		c := texts.CountCited(strings.ToValidUTF8(string(data), "\uFFFD"))
		infos = append(infos, densityInfo{path, c, c.Share()})
		rows = append(rows, []string{filepath.Base(path), term.Count(c.Sentences), term.Count(c.Cited), fmt.Sprintf("%.1f %%", 100*c.Share()),
			term.Count(c.Numbers), eval.Number(float64(c.NumbersCited) / float64(max(1, c.Numbers)))})
	}
	if asJSON {
		return l.json(infos)
	}
	return l.table([]string{"report", "sentences", "cited", "share", "with a number", "of these cited"}, rows)
}
