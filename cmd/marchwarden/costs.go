package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

type costsOptions struct {
	since string
	by    string
	json  bool
}

func newCosts(a *app) *cobra.Command {
	var o costsOptions
	cmd := &cobra.Command{
		Use: "costs", Short: "sum up what research has used", Args: noArgs,
		RunE: a.run(func(_ context.Context, c *settings.Settings, _ []string) error { return runCosts(a, c, o) }),
	}
	cmd.Flags().StringVar(&o.since, "since", "", "only calls since `WHEN`: a date (2026-11-01) or an age (7d, 12h)")
	cmd.Flags().StringVar(&o.by, "by", "day", "group by `KEY`: day, model, researcher or caller")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
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

func runCosts(a *app, c *settings.Settings, o costsOptions) error {
	since, err := since(a, o.since)
	if err != nil {
		return err
	}
	entries, skipped, err := ledger.Read(c.Text(settings.Ledger))
	if err != nil {
		return err
	}
	r := costReport{By: o.by, Skipped: skipped, PricesAsOf: ledger.PricesAsOf()}
	if !since.IsZero() {
		r.Since = &since
	}
	if r.Groups, r.Total, err = ledger.Summarize(entries, o.by, since); err != nil {
		return settings.Renamed(err, map[string]string{"by": "--by"})
	}
	if skipped > 0 {
		a.warn(fmt.Sprintf("left out of %s, torn or no entries: %s", c.Text(settings.Ledger), term.Plural(skipped, "line")))
	}
	r.Groups = append([]ledger.Sum{}, r.Groups...)
	var rows [][]string
	for _, s := range r.Groups {
		rows = append(rows, sumRow(s))
	}
	if len(rows) > 0 {
		rows = append(rows, sumRow(r.Total))
	}
	return a.show(o.json, r, []string{o.by, "calls", "searches", "tokens", "time", "cost"}, rows, fmt.Sprintf("no calls are in %s for that time", c.Text(settings.Ledger)))
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
