package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

var homeCheckHelp = `Read everything in the home folder and say what is damaged or missing, and which
runs depend on it.

Every stored piece is held against its hash, every line of a trace, of the
ledger and of a drift report against its checksum, and every hash in a trace
against the store; the pins, the folders of the library and its index are read
as well. Pieces that no run needs are counted, and are no damage: 'marchwarden
gc' removes them. Files between traces, pieces and drift reports that are none
of the program's are named and left alone.

With --repair it does what is safe. A line that a crash tore is cut off, and a
trace in which no run was begun is removed after an hour; damaged pieces are
moved to the folder "damaged" in the home folder and restored where their
content is found elsewhere in the store; an index that cannot be read is
removed, to be made again. A run that is going on is left alone. Nothing is
thrown away but the index and what broken-off writes left, and all is printed.
For what cannot be repaired it says what can be done instead.` + exits("0 nothing is wrong, or not any more", "1 something is wrong, or the check failed", "2",
	"130 interrupted; what was found until then is printed")

func newCheck(a *app) *cobra.Command {
	var asJSON, repair bool
	cmd := &cobra.Command{
		Use: "check", Short: "find damaged and missing records", Long: homeCheckHelp, Args: noArgs,
		Example: "  marchwarden check\n  marchwarden check --repair\n  marchwarden check --json | jq '.findings[].object'",
		RunE: a.run(func(ctx context.Context, c *settings.Settings, _ []string) error {
			return runHomeCheck(ctx, a, c, repair, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "do what is safe about it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// checkReport is the form of 'check --json'. Fields are only ever added.
type checkReport struct {
	Home string `json:"home"`
	record.Report
	LedgerLines int `json:"ledger_lines"`
}

func runHomeCheck(ctx context.Context, a *app, c *settings.Settings, repair, asJSON bool) error {
	r := checkReport{Home: c.Home()}
	rec, err := a.OpenKept(c)
	switch {
	case marchwarden.CodeOf(err) == marchwarden.CodeNotFound:
		a.note("%s", err.Error())
		err = nil
	case err != nil:
		return err
	default:
		defer rec.Close()
		var found *record.Report // with an error, what was found until then
		found, err = rec.Home(c).Check(ctx, record.CheckOptions{Now: a.Now(), Repair: repair, Progress: func(n int) {
			if n%signOfLife == 0 {
				a.note("checking: %s stored pieces read", term.Count(n))
			}
		}})
		r.Report = *found
	}
	if err == nil {
		r.LedgerLines, err = network.FilesOf(c).Check(ctx, record.CheckOptions{Now: a.Now(), Repair: repair}, &r.Report)
		err = marchwarden.Wrap(err, marchwarden.CodeUnavailable, "check %s", c.Home())
	}
	r.Incomplete = err != nil
	r.Sort()
	if r.Findings == nil {
		r.Findings = []record.Finding{}
	}
	if asJSON {
		err = errors.Join(err, printJSON(a.forPrograms(), r))
	} else {
		err = errors.Join(err, a.print("%s", r.Text(repair, r.LedgerLines)))
	}
	if ctx.Err() != nil {
		return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: "the check is not complete", Err: errInterrupted}
	}
	if err != nil {
		return err
	}
	return checkVerdict(r, repair)
}

func checkVerdict(r checkReport, repair bool) error {
	n := r.Wrong()
	switch {
	case r.Failed != "":
		return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "not everything could be repaired: " + r.Failed}
	case n == 0:
		return nil
	}
	verb := "are"
	if n == 1 {
		verb = "is"
	}
	problem := &marchwarden.Error{Code: marchwarden.CodeCorrupt, Message: fmt.Sprintf("%s of %s %s damaged or missing", term.Plural(n, "object"), r.Home, verb)}
	if !repair && r.Repairable() {
		problem.Hint = "'marchwarden check --repair' does what is safe"
	}
	return problem
}

// signOfLife is after how many blobs a sign of life is given.
const signOfLife = 5000
