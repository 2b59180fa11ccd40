package record

import (
	"fmt"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Text is a report for people: each finding with what needs it and what was or can be done,
// then what was checked. repair says that a repair was wanted, and ledgerLines is how many
// lines the ledger has.
func (r *Report) Text(repair bool, ledgerLines int) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintln(&b, term.CleanLine(fmt.Sprintf(format, args...))) }
	for _, f := range r.Findings {
		mark := "✗"
		if f.Fixed {
			mark = "✓"
		}
		say("%s %s: %s", mark, f.Object, strings.TrimPrefix(f.Problem, f.Object+": "))
		for _, line := range f.lines(repair) {
			fmt.Fprint(&b, "    ")
			say("%s", line)
		}
	}
	const mostStrays = 20
	for _, path := range r.Strays[:min(mostStrays, len(r.Strays))] {
		why := "none of the program's files"
		if strings.HasSuffix(path, trace.ForeignSuffix) {
			why = "the mark of an imported run that is not there: an import was broken off"
		}
		say("- %s: %s; left alone", path, why)
	}
	if n := len(r.Strays) - mostStrays; n > 0 {
		say("- and %s more", term.Count(n))
	}
	for _, done := range r.Done {
		say("%s", done)
	}
	say("checked: %s (%d running), %s stored pieces of %s, %s of the ledger", term.Plural(r.Traces, "trace"), r.Running, term.Count(r.Blobs), term.Bytes(r.Bytes), term.Plural(ledgerLines, "line"))
	if r.Orphans > 0 {
		say("stored pieces that no run needs: %s, %s; 'marchwarden gc' removes them an hour after their last use", term.Count(r.Orphans), term.Bytes(r.OrphanBytes))
	}
	if r.Leftovers > 0 {
		say("files that broken-off writes left: %s; --repair removes them", term.Count(r.Leftovers))
	}
	if r.Unsummed > 0 {
		say("traces without checksums, by an earlier version: %s; not every flipped bit can be found in them", term.Count(r.Unsummed))
	}
	switch {
	case r.Incomplete:
		say("the check is not complete")
	case r.Wrong() == 0 && r.Failed == "":
		say("nothing is wrong")
	}
	return b.String()
}

// lines say who needs an object, what was done about it and what can be.
func (f Finding) lines(repair bool) (lines []string) {
	for _, n := range f.NeededBy {
		lines = append(lines, "needed by "+n.String())
	}
	if f.More > 0 {
		lines = append(lines, "and by "+term.Plural(f.More, "other step"))
	}
	for _, id := range f.MayNeed {
		lines = append(lines, "may be needed by run "+id.String()+", whose trace is damaged")
	}
	if f.Done != "" {
		lines = append(lines, f.Done)
	}
	switch {
	case f.Fixed || f.Remedy == "" || !repair && f.Repairable:
	case repair:
		lines = append(lines, "cannot be repaired: "+f.Remedy)
	default:
		lines = append(lines, f.Remedy)
	}
	return lines
}

// WhyMissed says why more stays than was asked for.
func (p *Plan) WhyMissed() (reasons []string) {
	say := func(n int, what, one, more string) {
		if n == 1 {
			more = one
		}
		if n > 0 {
			reasons = append(reasons, term.Plural(n, what)+" "+more)
		}
	}
	say(p.Young, "run", "was written in the last hour", "were written in the last hour")
	say(p.Running, "run", "is going on, or may be part of what does", "are going on, or may be part of what does")
	say(p.Sealed, "run", "has a trace that cannot be read", "have traces that cannot be read")
	say(p.Watched, "run", "is what a watched question is compared with", "are what watched questions are compared with")
	if p.Spared > 0 {
		reasons = append(reasons, fmt.Sprintf("%s (%s) will go when they were not used for an hour", term.Plural(p.Spared, "stored piece"), term.Bytes(p.SparedBytes)))
	}
	return reasons
}
