package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

var doctorHelp = `Show every setting with its value and where it came from, and what is
available, what is not, and why. Secrets are masked. With --online every service
that is set is called once: a search of each engine, a few tokens of each model,
one question to each index of papers; and the database is opened. 'marchwarden
researchers' is what starts and dials the researchers.
What is missing in the home folder is made by the first 'marchwarden ask'; all
that doctor changes is that unfinished files, which interrupted writes left over
an hour ago, are removed.` + exits("0 everything that this version needs works", "1 something is broken; it is named", "2 wrong usage, or a setting that cannot be read")

func newDoctor(a *app) *cobra.Command {
	var asJSON, online bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "show settings and where they came from, and what works", Long: doctorHelp, Args: noArgs,
		RunE: a.run(func(ctx context.Context, c *settings.Settings, _ []string) error {
			return runDoctor(ctx, a, c, asJSON, online)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&online, "online", false, "call every service that is set, to check keys and reachability")
	return cmd
}

// checkup is what doctor prints as JSON. Fields are only ever added.
type checkup struct {
	Settings []settings.Row `json:"settings"`
	Parts    []network.Part `json:"parts"`
}

func runDoctor(ctx context.Context, a *app, c *settings.Settings, asJSON, online bool) error {
	d, err := network.NewDoctor(&a.Host, c)
	if err != nil {
		return err
	}
	r := checkup{Settings: c.Rows(), Parts: append(d.Parts(ctx), clusterPart(ctx, a, c))}
	if online {
		a.note("calling every service that is set…")
	}
	r.Parts = append(r.Parts, d.Services(ctx, online)...)
	if err := printCheckup(a, r, asJSON); err != nil {
		return err
	}
	return brokenParts(r.Parts)
}

// brokenParts is the error of a checkup; what is wrong with each part was shown.
func brokenParts(parts []network.Part) error {
	const most = 5
	var names []string
	n := 0
	for _, p := range parts {
		if p.State != network.PartBroken {
			continue
		}
		if n++; !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	if len(names) > most {
		names = append(names[:most], "…")
	}
	verb := "are"
	switch n {
	case 0:
		return nil
	case 1:
		verb = "is"
	}
	return marchwarden.Errorf(marchwarden.CodeUnavailable, "%s %s broken: %s; see above", term.Plural(n, "part"), verb, strings.Join(names, ", "))
}

func printCheckup(a *app, r checkup, asJSON bool) error {
	if asJSON {
		return printJSON(a.forPrograms(), r)
	}
	var said, parts [][]string
	for _, s := range r.Settings {
		said = append(said, []string{s.Name, s.Origin, s.Env, s.Value})
	}
	for _, p := range r.Parts {
		parts = append(parts, []string{p.Name, p.State, p.Detail})
	}
	st := a.outStyle()
	return errors.Join(st.Table(a.stdout, []string{"setting", "from", "environment", "value"}, said), a.print("\n"), st.Table(a.stdout, []string{"part", "state", "detail"}, parts))
}
