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

func newDoctor(a *app) *cobra.Command {
	var asJSON, online, verbose bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "show settings and where they came from, and what works", Args: noArgs,
		RunE: a.run(func(ctx context.Context, c *settings.Settings, _ []string) error {
			return runDoctor(ctx, a, c, asJSON, online, verbose)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "show every setting and every part")
	cmd.Flags().BoolVar(&online, "online", false, "call every service that is set, to check keys and reachability")
	return cmd
}

// checkup is what doctor prints as JSON. Fields are only ever added.
type checkup struct {
	Settings []settings.Row `json:"settings"`
	Parts    []network.Part `json:"parts"`
}

func runDoctor(ctx context.Context, a *app, c *settings.Settings, asJSON, online, verbose bool) error {
	d, err := network.NewDoctor(&a.Host, c)
	if err != nil {
		return err
	}
	r := checkup{Settings: c.Rows(), Parts: append(d.Parts(ctx), clusterPart(ctx, a, c))}
	if online {
		a.note("calling every service that is set…")
	}
	r.Parts = append(r.Parts, d.Services(ctx, online)...)
	print := func() error { return printCheckup(a, r) }
	switch {
	case asJSON:
		print = func() error { return printJSON(a.forPrograms(), r) }
	case !verbose && !online:
		print = func() error { return printHealth(a, c, r.Parts) }
	}
	if err := print(); err != nil {
		return err
	}
	return brokenParts(r.Parts)
}

// brokenParts is the error of a checkup; what is wrong with each part was shown.
func brokenParts(parts []network.Part) error {
	var names []string
	for _, p := range parts {
		if p.State == network.PartBroken {
			names = append(names, p.Name)
		}
	}
	verb := "are"
	switch len(names) {
	case 0:
		return nil
	case 1:
		verb = "is"
	}
	return marchwarden.Errorf(marchwarden.CodeUnavailable, "%s %s broken: %s; see above", term.Plural(len(names), "part"), verb, strings.Join(slices.Compact(names), ", "))
}

// printHealth says in five lines what is on and how to switch on the rest, and what is broken.
func printHealth(a *app, c *settings.Settings, parts []network.Part) error {
	var folders, engines, broken []string
	for _, p := range parts {
		switch {
		case p.State == network.PartBroken:
			broken = append(broken, p.Name+": "+p.Detail)
		case p.State != network.PartOK:
		case p.Name == "folder":
			folders = append(folders, p.Detail)
		case strings.HasPrefix(p.Name, "search by "):
			engines = append(engines, strings.TrimPrefix(p.Name, "search by "))
		}
	}
	answers, documents := "the reader inside; a model: --model ollama/NAME, or a key", "the embedded library; yours: marchwarden library add DIR"
	web, data := "with --online", "off; on: --db FILE or postgres://…, or MARCHWARDEN_DB"
	if model := network.ChooseModel(c, "", false).Name; model != "" && model != network.NoModel {
		answers = model
	} else if model := network.ChooseModel(c, "", true).Name; model != "" && model != network.NoModel {
		answers = "the reader inside, and of the web " + model
	}
	if len(folders) > 0 {
		documents = term.Plural(len(folders), "folder") + ": marchwarden library list; --embedded adds ours"
	}
	if len(engines) > 0 {
		web += " by " + strings.Join(engines, ", ")
	}
	if len(engines) == 1 && engines[0] == "wikipedia" {
		web += "; more: TAVILY_API_KEY or SEARXNG_URL"
	}
	if c.Text(settings.DB) != "" {
		data = "read-only, by " + c.Label(settings.DB)
	}
	page := a.outStyle().NewPage()
	row := func(label, text string) {
		const column = 13
		page.Text(term.Pad(label, column, false), strings.Repeat(" ", column), term.Run{Text: text})
	}
	row("answers by", answers)
	row("documents", documents)
	row("web, papers", web)
	row("database", data)
	row("records in", c.Home())
	for _, b := range broken {
		row("broken", b)
	}
	page.Gap()
	page.Unbroken("", "every setting and part: marchwarden doctor --verbose", term.Dim)
	_, err := page.WriteTo(a.stdout)
	return err
}

func printCheckup(a *app, r checkup) error {
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
