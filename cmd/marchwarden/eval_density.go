package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/texts"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

const evalDensityHelp = `Count, in Markdown reports of whoever made them, the sentences that carry a
citation: a number or footnote in square brackets, or a link.

Headings, tables, code and lists of sources are left out, and so are pieces of
fewer than six words. A mark that follows the full stop belongs to the sentence
before it.`

func newEvalDensity(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "density FILE.md…", Short: "count the sentences of any report that are cited", Long: evalDensityHelp,
		Args: argCount(1, 1000, "at least one Markdown file"), Example: "  marchwarden eval density report.md others/*.md",
		RunE: func(_ *cobra.Command, args []string) error { return a.runEvalDensity(args, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// densityInfo is a line of 'eval density --json'. Fields are only ever added.
type densityInfo struct {
	File string `json:"file"`
	texts.Citing
	Share float64 `json:"share"`
}

func (a *app) runEvalDensity(paths []string, asJSON bool) error {
	const most = 64 << 20
	var infos []densityInfo
	var rows [][]string
	for _, path := range paths {
		f, err := durable.OpenRegular(path)
		if err != nil {
			return invalid("file", "give a Markdown file", path+" cannot be opened: "+durable.Cause(err))
		}
		data, err := network.ReadLimited(f, most, path)
		if err = firstError(err, f.Close()); err != nil {
			return err
		}
		c := texts.CountCited(strings.ToValidUTF8(string(data), "\uFFFD"))
		infos = append(infos, densityInfo{path, c, c.Share()})
		rows = append(rows, []string{filepath.Base(path), term.Count(c.Sentences), term.Count(c.Cited), fmt.Sprintf("%.1f %%", 100*c.Share()),
			term.Count(c.Numbers), eval.Number(ratioOf(c.NumbersCited, c.Numbers))})
	}
	if asJSON {
		return printJSON(a.forPrograms(), infos)
	}
	return a.outStyle().Table(a.stdout, []string{"report", "sentences", "cited", "share", "with a number", "of these cited"}, rows)
}

func ratioOf(n, of int) float64 { return float64(n) / float64(max(1, of)) }

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeOf(err), "read a report")
		}
	}
	return nil
}
