package record

import (
	"fmt"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// Text is a report for people: each finding with what needs it and what can be done, then
// what was checked. ledgerLines is how many lines the ledger has.
func (r *Report) Text(ledgerLines int) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintln(&b, term.CleanLine(fmt.Sprintf(format, args...))) }
	detail := func(format string, args ...any) {
		b.WriteString("    ")
		say(format, args...)
	}
	for _, f := range r.Findings {
		say("✗ %s: %s", f.Object, strings.TrimPrefix(f.Problem, f.Object+": "))
		for _, n := range f.NeededBy {
			detail("needed by %s", n)
		}
		if f.More > 0 {
			detail("and by %s", term.Plural(f.More, "other step"))
		}
		if f.Remedy != "" {
			detail("%s", f.Remedy)
		}
	}
	say("checked: %s (%d running), %s stored pieces of %s, %s of the ledger", term.Plural(r.Traces, "trace"), r.Running, term.Count(r.Blobs), term.Bytes(r.Bytes), term.Plural(ledgerLines, "line"))
	if r.Orphans > 0 {
		say("stored pieces that no run needs: %s, %s; 'marchwarden gc' removes them an hour after their last use", term.Count(r.Orphans), term.Bytes(r.OrphanBytes))
	}
	if r.Leftovers > 0 {
		say("files that broken-off writes left: %s; 'marchwarden gc' removes them", term.Count(r.Leftovers))
	}
	if r.Torn > 0 {
		say("traces whose last line a crash tore: %s; nothing that was recorded is lost", term.Count(r.Torn))
	}
	if r.Empty > 0 {
		say("traces in which no run was begun: %s; 'marchwarden gc --keep-days N' removes them with other old runs", term.Count(r.Empty))
	}
	if r.Unsummed > 0 {
		say("traces without checksums, by an earlier version: %s; not every flipped bit can be found in them", term.Count(r.Unsummed))
	}
	switch {
	case r.Incomplete:
		say("the check is not complete")
	case len(r.Findings) == 0:
		say("nothing is wrong")
	}
	return b.String()
}
