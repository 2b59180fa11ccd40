package term

import (
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// actionOrder is the order in which what was not followed is listed: what a
// person should see comes first.
var actionOrder = []marchwarden.Action{marchwarden.Flagged, marchwarden.Withheld, marchwarden.Capped, marchwarden.Accepted}

// decisions lists what an investigator did about the reports: with verbose all of
// it in its order, else what it did not follow and a count of the rest. What is
// flagged and stands among the contradictions is part of that count.
func (p *page) decisions(r *marchwarden.Result, verbose bool) {
	ds := r.Decisions
	if len(ds) == 0 {
		return
	}
	p.gap()
	p.text("", "", Run{"Follow-up", Bold}, Run{" — what was done about the reports", Dim})
	if verbose {
		for _, d := range ds {
			p.decision(d)
		}
		return
	}
	var rest []string
	ds = slices.DeleteFunc(slices.Clone(ds), func(d marchwarden.Decision) bool { return seen(d, r.Contradictions) })
	if n := len(r.Decisions) - len(ds); n > 0 {
		rest = append(rest, Count(n)+" flagged as contradictory, shown above")
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
		rest = append(rest, Count(n)+" more not followed")
	}
	if n := len(ds) - len(open); n > 0 {
		rest = append(rest, Plural(n, "report")+" followed")
	}
	if len(rest) > 0 {
		p.note("  ", append(rest, "--verbose shows all"))
	}
}

// seen reports whether a decision only flags what stands among the contradictions,
// where a topic may have been cut.
func seen(d marchwarden.Decision, cs []marchwarden.Contradiction) bool {
	if d.Action != marchwarden.Flagged || d.About != string(marchwarden.ContradictorySources) {
		return false
	}
	topic, cut := strings.CutSuffix(CleanLine(d.Topic), "…")
	return slices.ContainsFunc(cs, func(c marchwarden.Contradiction) bool {
		head := contested(c)
		return topic == head || cut && topic != "" && strings.HasPrefix(head, topic)
	})
}

func (p *page) decision(d marchwarden.Decision) {
	const column = 12 // "dispatched" and two spaces
	label := Pad(Truncate(CleanLine(string(d.Action)), column-2), column, false)
	runs := []Run{{label, Dim}}
	if about := strings.ReplaceAll(CleanLine(d.About), "_", " "); about != "" {
		runs = append(runs, Run{about + ": ", Dim})
	}
	runs = append(runs, headed(d.Topic, d.Reason)...)
	switch from := "rihla " + Count(d.From); {
	case d.Rihla > 0:
		runs = append(runs, Run{" (" + from + " → " + Count(d.Rihla) + ")", Dim})
	case d.From > 0:
		runs = append(runs, Run{" (" + from + ")", Dim})
	}
	p.text("  ", strings.Repeat(" ", 2+column), runs...)
}

// nonEmpty leaves out what is empty.
func nonEmpty(parts ...string) []string {
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}
