package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

func newCheck(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check", Short: "find damaged and missing records", Args: noArgs,
		RunE: a.run(func(ctx context.Context, c *settings.Settings, _ []string) error {
			return runHomeCheck(ctx, a, c, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// checkReport is the form of 'check --json'. Fields are only ever added.
type checkReport struct {
	Home string `json:"home"`
	record.Report
	LedgerLines int `json:"ledger_lines"`
}

func runHomeCheck(ctx context.Context, a *app, c *settings.Settings, asJSON bool) error {
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
		found, err = rec.Home(c).Check(ctx, record.CheckOptions{Now: a.Now(), Progress: func(n int) {
			if n%signOfLife == 0 {
				a.note("checking: %s stored pieces read", term.Count(n))
			}
		}})
		r.Report = *found
	}
	if err == nil {
		r.LedgerLines, err = record.Files{Ledger: c.Text(settings.Ledger), Home: c.Home()}.Check(ctx, &r.Report)
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
		err = errors.Join(err, a.print("%s", r.Text(r.LedgerLines)))
	}
	if ctx.Err() != nil {
		return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: "the check is not complete", Err: errInterrupted}
	}
	if err != nil {
		return err
	}
	return checkVerdict(r)
}

func checkVerdict(r checkReport) error {
	n, verb := len(r.Findings), "are"
	switch n {
	case 0:
		return nil
	case 1:
		verb = "is"
	}
	return &marchwarden.Error{Code: marchwarden.CodeCorrupt, Message: fmt.Sprintf("%s of %s %s damaged or missing", term.Plural(n, "object"), r.Home, verb)}
}

// signOfLife is after how many blobs a sign of life is given.
const signOfLife = 5000
