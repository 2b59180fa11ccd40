package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

const importHelp = `Import a bundle that another person exported, so that you can show, verify, run
again and export it like a run of your own.

The bundle is verified first, and nothing is taken from one that does not stand.
A run that is here already is never replaced.

` + exitStatus

func newImport(a *app) *cobra.Command {
	var by []string
	cmd := &cobra.Command{
		Use: "import [flags] FILE.mwz", Short: "import a run that another person exported", Long: importHelp,
		Example: "  marchwarden import answer.mwz\n  marchwarden import --by colleague.pub answer.mwz",
		Args:    argCount(1, 1, "one bundle"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return stopped(cmd.Context(), "the run was not imported", a.runImport(cmd.Context(), by, args[0]))
		},
	}
	cmd.Flags().StringArrayVar(&by, "by", nil, byUsage)
	return cmd
}

func (a *app) runImport(ctx context.Context, by []string, path string) error {
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	keys, err := bundle.ReadPublicKeyFiles("--by", by)
	if err != nil {
		return err
	}
	b, file, err := openBundle(path)
	if err != nil {
		return err
	}
	defer file.Close()
	silent := *a // what does not stand is in the error
	silent.stdout = io.Discard
	if err := silent.audit(verifyOptions{}, nil).Bundle(ctx, b, keys); err != nil {
		return err
	}
	rec, err := a.OpenRecords(c)
	if err != nil {
		return err
	}
	defer rec.Close()
	// The evidence goes to the disk itself, as it is in the bundle: what only memory
	// could take, or what a secret was taken out of, would not be what the traces name.
	in, err := b.Import(ctx, run.Store{Traces: rec.Traces, Blobs: rec.Blobs.Store})
	if err != nil {
		return err
	}
	id, what := in.Run.ID, "imported"
	if !in.Brought() {
		what = "it is here already:"
	}
	_, err = fmt.Fprintf(a.stdout, "%s %s: %s (%s)\n", what, id, term.CleanLine(in.Run.Start.Request.Question), term.Plural(len(in.New)+len(in.Kept), "trace"))
	a.note("to see it: marchwarden export --format md %s", id)
	a.note("to check it: marchwarden verify %s; to run it again: marchwarden replay --rerun %s", id, id)
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the outcome")
}
