package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/pdf"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

func newCheck(a *app) *cobra.Command {
	return a.listing("check", "find damaged and missing records", noArgs, stopping(unfinishedCheck, func(ctx context.Context, c *settings.Settings, _ []string) error {
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
				if n%5000 == 0 { // a sign of life
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
		if a.json {
			err = errors.Join(err, printJSON(a.forPrograms(), r))
		} else {
			err = errors.Join(err, a.print("%s", r.Text(r.LedgerLines)))
		}
		if n := len(r.Findings); err == nil && n > 0 {
			return marchwarden.Errorf(marchwarden.CodeCorrupt, "%s of %s %s damaged or missing", term.Plural(n, "object"), r.Home, isOrAre(n))
		}
		return err
	}))
}

// checkReport is the form of 'check --json'. Fields are only ever added.
type checkReport struct {
	Home string `json:"home"`
	record.Report
	LedgerLines int `json:"ledger_lines"`
}

func newGc(a *app) *cobra.Command {
	var keepDays int
	var dryRun bool
	var runs []string
	cmd := a.listing("gc", "remove what no run needs, and old runs", noArgs, stopping("not all was removed", func(ctx context.Context, c *settings.Settings, _ []string) error {
		collect := record.CollectOptions{Now: a.Now(), Older: time.Duration(keepDays) * 24 * time.Hour}
		if len(runs) > 0 && keepDays > 0 {
			return invalid("--run", "", "removes just the runs that it names; leave out --keep-days")
		}
		rec, err := a.OpenKept(c)
		if marchwarden.CodeOf(err) == marchwarden.CodeNotFound && len(runs) == 0 {
			a.note("%s", err.Error())
			return nil
		}
		if err != nil {
			return err
		}
		defer rec.Close()
		for _, arg := range runs {
			id, err := run.FindID(rec.Traces, arg)
			if err != nil {
				return err
			}
			collect.Runs = append(collect.Runs, id)
		}
		plan, err := rec.Home(c).PlanCollection(ctx, collect)
		if err == nil && !a.json {
			err = printPlan(a, plan, dryRun)
		}
		r := gcReport{Plan: plan}
		if err == nil && !dryRun {
			var gone record.Collected
			gone, err = plan.Run(ctx)
			err = errors.Join(err, pdf.Forget(c.CachePath(), a.Now().AddDate(0, 0, -30)))
			if r.Removed = &gone; !a.json {
				err = errors.Join(err, a.print("removed: %s with %s, %s, %s in all\n", term.Plural(gone.Families, "run"), term.Plural(gone.Traces, "trace"),
					term.Plural(gone.Blobs, "stored piece"), term.Bytes(gone.Bytes)))
			}
		}
		if a.json && plan != nil {
			err = errors.Join(err, printJSON(a.forPrograms(), r))
		}
		return err
	}))
	countFlag(cmd.Flags(), &keepDays, "keep-days", 0, 1, 36500, "remove runs that were last written more than `N` days ago")
	cmd.Flags().StringArrayVar(&runs, "run", nil, "remove the run with this `ID`, and what it asked of researchers; may be repeated")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would go, and remove nothing")
	return cmd
}

// gcReport is the form of 'gc --json'. Fields are only ever added.
type gcReport struct {
	Plan    *record.Plan      `json:"plan"`
	Removed *record.Collected `json:"removed,omitempty"` // not of a dry run
}

func printPlan(a *app, p *record.Plan, dryRun bool) error {
	rows := make([][]string, len(p.Families))
	for i, f := range p.Families {
		state := run.Complete
		switch {
		case f.Unreadable:
			state = run.Damaged
		case !f.Finished:
			state = run.Interrupted
		}
		rows[i] = []string{f.IDs[0].String(), a.inZone(f.Last), term.Count(len(f.IDs)), string(state), f.Question}
	}
	if len(rows) > 0 {
		if err := a.outStyle().Table(a.stdout, []string{"removes", "last written", "traces", "status", "question"}, rows); err != nil {
			return err
		}
	}
	for i, why := range []string{"they are going on, or may be part of what does: %s", "a trace cannot be read: %s; see 'marchwarden check'", "watched questions are compared with them: %s"} {
		if n := []int{p.Running, p.Sealed, p.Watched}[i]; n > 0 {
			a.note("kept because "+why, term.Plural(n, "run"))
		}
	}
	if p.Spared > 0 {
		a.note("kept because they were used in the last hour, or since a run that is going on began: %s", term.Plural(p.Spared, "stored piece"))
	}
	will := "goes"
	if dryRun {
		will = "would go"
	}
	return a.print("%s: %s and %s; %s of %s stay\n", will, term.Plural(len(p.Families), "run"), term.Plural(p.Blobs, "stored piece"), term.Bytes(p.After), term.Bytes(p.Before))
}

func newDoctor(a *app) *cobra.Command {
	var online, verbose bool
	cmd := a.listing("doctor", "show settings and where they came from, and what works", noArgs, func(ctx context.Context, c *settings.Settings, _ []string) error {
		if online {
			a.note("calling every service that is set…")
		}
		parts, err := network.Checkup(ctx, &a.Host, c, online)
		if err != nil {
			return err
		}
		r := checkup{Settings: c.Rows(), Parts: append(parts, clusterPart(ctx, a, c))}
		switch {
		case a.json:
			err = printJSON(a.forPrograms(), r)
		case verbose || online:
			err = printCheckup(a, r)
		default:
			err = printHealth(a, c, r.Parts)
		}
		if err != nil {
			return err
		}
		var names []string // what is wrong with each was shown
		for _, p := range r.Parts {
			if p.State == network.PartBroken {
				names = append(names, p.Name)
			}
		}
		if n := len(names); n > 0 {
			return marchwarden.Errorf(marchwarden.CodeUnavailable, "%s %s broken: %s; see above", term.Plural(n, "part"), isOrAre(n), strings.Join(slices.Compact(names), ", "))
		}
		return nil
	})
	cmd.Flags().BoolVar(&verbose, "verbose", false, "show every setting and every part")
	cmd.Flags().BoolVar(&online, "online", false, "call every service that is set, to check keys and reachability")
	return cmd
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// checkup is what doctor prints as JSON. Fields are only ever added.
type checkup struct {
	Settings []settings.Row `json:"settings"`
	Parts    []network.Part `json:"parts"`
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
	if model := network.ChooseModel(c, "", true).Name; model != "" && model != network.NoModel {
		if answers = model; network.ChooseModel(c, "", false).Name == "" {
			answers = "the reader inside, and of the web " + model
		}
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

func newCosts(a *app) *cobra.Command {
	var from, by string
	cmd := a.listing("costs", "sum up what research has used", noArgs, func(_ context.Context, c *settings.Settings, _ []string) error {
		since, err := since(a, from)
		if err != nil {
			return err
		}
		entries, bad, err := ledger.Read(c.Text(settings.Ledger))
		if err != nil {
			return err
		}
		r := costReport{By: by, Skipped: len(bad), PricesAsOf: ledger.PricesAsOf()}
		if !since.IsZero() {
			r.Since = &since
		}
		if r.Groups, r.Total, err = ledger.Summarize(entries, by, since); err != nil {
			return settings.Renamed(err, map[string]string{"by": "--by"})
		}
		if len(bad) > 0 {
			a.warn(fmt.Sprintf("left out of %s, torn or no entries: %s", c.Text(settings.Ledger), term.Plural(len(bad), "line")))
		}
		r.Groups = append([]ledger.Sum{}, r.Groups...)
		var rows [][]string
		for _, s := range r.Groups {
			rows = append(rows, sumRow(s))
		}
		if len(rows) > 0 {
			rows = append(rows, sumRow(r.Total))
		}
		return a.show(r, []string{by, "calls", "searches", "tokens", "time", "cost"}, rows, fmt.Sprintf("no calls are in %s for that time", c.Text(settings.Ledger)))
	})
	cmd.Flags().StringVar(&from, "since", "", "only calls since `WHEN`: a date (2026-11-01) or an age (7d, 12h)")
	cmd.Flags().StringVar(&by, "by", "day", "group by `KEY`: day, model, researcher or caller")
	complete(cmd, "by", ledger.Groupings()...)
	return cmd
}

// costReport is the form of 'costs --json'. Fields are only ever added.
type costReport struct {
	By         string       `json:"by"`
	Since      *time.Time   `json:"since,omitempty"`
	Groups     []ledger.Sum `json:"groups"`
	Total      ledger.Sum   `json:"total"`
	Skipped    int          `json:"skipped_lines"`
	PricesAsOf string       `json:"prices_as_of"`
}

func sumRow(s ledger.Sum) []string {
	cost := fmt.Sprintf("$%.4f", s.CostUSD)
	switch {
	case s.UnknownCost == s.Calls:
		cost = "unknown"
	case s.UnknownCost > 0:
		cost += fmt.Sprintf(" and %d unknown", s.UnknownCost)
	}
	return []string{
		s.Key, term.Count(s.Calls), term.Count(s.Searches), term.Count(s.TokensUsed),
		term.Duration(time.Duration(s.WallTimeSec * float64(time.Second))), cost,
	}
}

// since reads a date (in UTC) or an age; "" is the beginning of time.
func since(a *app, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	if age, problem := settings.ParseTerm(s); problem == "" {
		return a.Now().UTC().Add(-age), nil
	}
	return time.Time{}, invalid("--since", "", fmt.Sprintf("must be a date such as 2026-11-01 or an age such as 7d or 12h, not %q", plaintext.Clip(s, 40)))
}
