package report

import (
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

func (p screen) timings(ts []Timing) {
	if len(ts) > 0 {
		p.Section("Timings", term.Plain)
	}
	widest, longest := 0, 0
	name := func(t Timing) string { return term.Truncate(term.CleanLine(t.Stage), 20) }
	for _, t := range ts {
		widest, longest = max(widest, term.Width(name(t))), max(longest, term.Width(term.Duration(t.Duration)))
	}
	for _, t := range ts {
		p.Text("  ", "  ", normal(term.Pad(name(t), widest, false)+"  "+term.Pad(term.Duration(t.Duration), longest, true)))
	}
}

// actionOrder is the order in which what was not followed is listed: what a
// person should see comes first.
var actionOrder = []marchwarden.Action{marchwarden.Flagged, marchwarden.Withheld, marchwarden.Capped, marchwarden.Accepted}

// decisions lists what an investigator did about the reports: with verbose all of
// it in its order, else what it did not follow and a count of the rest. What is
// flagged and stands among the contradictions is part of that count.
func (p screen) decisions(res *marchwarden.Result, verbose bool) {
	ds := res.Decisions
	if len(ds) == 0 {
		return
	}
	p.Gap()
	p.Text("", "", bold("Follow-up"), dim(" — what was done about the reports"))
	if verbose {
		for _, d := range ds {
			p.decision(d)
		}
		return
	}
	var rest []string
	ds = slices.DeleteFunc(slices.Clone(ds), func(d marchwarden.Decision) bool { return flaggedAbove(d, res.Contradictions) })
	if n := len(res.Decisions) - len(ds); n > 0 {
		rest = append(rest, term.Count(n)+" flagged as contradictory, shown above")
	}
	const most = 12
	rank := func(d marchwarden.Decision) int {
		if i := slices.Index(actionOrder, d.Action); i >= 0 {
			return i
		}
		return len(actionOrder)
	}
	open := slices.DeleteFunc(slices.Clone(ds), func(d marchwarden.Decision) bool { return d.Action == marchwarden.Dispatched })
	slices.SortStableFunc(open, func(a, b marchwarden.Decision) int { return rank(a) - rank(b) })
	for _, d := range open[:min(len(open), most)] {
		p.decision(d)
	}
	if n := len(open) - most; n > 0 {
		rest = append(rest, term.Count(n)+" more not followed")
	}
	if n := len(ds) - len(open); n > 0 {
		rest = append(rest, term.Plural(n, "report")+" followed")
	}
	if len(rest) > 0 {
		p.Note("  ", append(rest, "--verbose shows all"))
	}
}

// flaggedAbove reports whether a decision only flags what stands among the contradictions.
func flaggedAbove(d marchwarden.Decision, cs []marchwarden.Contradiction) bool {
	return d.Action == marchwarden.Flagged && d.About == string(marchwarden.ContradictorySources) &&
		slices.ContainsFunc(cs, func(c marchwarden.Contradiction) bool { return sameTopic(d.Topic, contested(c)) })
}

func (p screen) decision(d marchwarden.Decision) {
	const column = 12 // "dispatched" and two spaces
	runs := []term.Run{dim(columned(string(d.Action), column))}
	if about := strings.ReplaceAll(plaintext.Fold(d.About), "_", " "); about != "" {
		runs = append(runs, dim(about+": "))
	}
	runs = append(runs, headed(d.Topic, d.Reason)...)
	switch from := "rihla " + term.Count(d.From); {
	case d.Rihla > 0:
		runs = append(runs, dim(" ("+from+" → "+term.Count(d.Rihla)+")"))
	case d.From > 0:
		runs = append(runs, dim(" ("+from+")"))
	}
	p.Text("  ", strings.Repeat(" ", 2+column), runs...)
}
