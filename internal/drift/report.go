package drift

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// The checks of a result are kept below the home folder, a Report as JSON a line, the
// newest last:
//
//	drift/<trace_id>.jsonl
//
// A line is written under a lock, by one write, and synced. A torn line is what a
// crash leaves: the next writer begins on a line of its own, and readers go past it.
//
// A line has its own format:
//
//	1  the report alone
//	2  the report, and at the end "sum": 16 hex digits over all before it
const (
	folder     = "drift"
	suffix     = ".jsonl"
	lineFormat = 2
)

// lines are those of such a file; a result has far less to say than is read of one.
var lines = durable.Journal[Report]{Tag: "marchwarden/drift-line/v2", What: "report", Format: lineFormat, Most: 64 << 20,
	Sound: func(format int, r Report) bool { return format >= 1 && r.TraceID.Valid() }}

func pathOf(home string, id marchwarden.TraceID) string {
	return filepath.Join(home, folder, id.String()+suffix)
}

// Keep adds a report to those of its result. Files are made with mode 0600, folders
// with 0700. It is safe for concurrent use, by several processes too. An error means
// that the report may not be kept; those before it are.
func Keep(home string, r Report) error {
	path := pathOf(home, r.TraceID)
	r.Format = lineFormat
	return marchwarden.Wrap(lines.Append(path, r), marchwarden.CodeUnavailable, "keep the check in %s", path)
}

// Forget removes the checks of a result; one without any is left as it is.
func Forget(home string, id marchwarden.TraceID) error {
	path := pathOf(home, id)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "remove the checks in %s", path)
	}
	return nil
}

// Last is the newest check of a result that is kept and can be read; false if there
// is none. It is safe while others Keep.
func Last(home string, id marchwarden.TraceID) (last Report, found bool, err error) {
	all, _, err := read(pathOf(home, id))
	for _, r := range all {
		if r.TraceID == id {
			r.Format = Format
			last, found = r, err == nil
		}
	}
	return last, found, err
}

func read(path string) (all []Report, bad []durable.BadLine, err error) {
	all, bad, err = lines.Read(path)
	return all, bad, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the checks in %s", path)
}

// Damage names the lines of a file of checks that cannot be used. A flipped bit in a
// line of format 1 is found only if the line is no longer a report.
func Damage(path string) ([]durable.BadLine, error) {
	_, bad, err := read(path)
	return bad, err
}

// Summary is a check in one line; when is when it was made, in words.
func (r Report) Summary(when string) string {
	if len(r.Sources) == 0 {
		return "checked " + when + ": the result cites nothing"
	}
	states, retracted := map[string]int{}, 0
	for _, s := range r.Sources {
		states[sourceWord(s)]++
		if s.Retracted != "" {
			retracted++
		}
	}
	lost := 0
	for _, c := range r.Claims {
		if c.State == Lost || c.State == Weakened {
			lost++
		}
	}
	var parts []string
	for _, word := range []string{"unchanged", "changed", "gone", "refused", "unanswered", "unchecked"} {
		if n := states[word]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	if retracted > 0 {
		parts = append(parts, fmt.Sprintf("%d retracted", retracted))
	}
	verdict := "every passage stands"
	switch {
	case lost > 0:
		verdict = term.Plural(lost, "claim") + " lost evidence"
	case r.Drifted() && retracted == 0:
		verdict = "passages are lost"
	case r.Incomplete():
		verdict = "no passage is known to be lost"
	}
	return fmt.Sprintf("checked %s: %s (%s); %s", when, term.Plural(len(r.Sources), "source"), strings.Join(parts, ", "), verdict)
}

// sourceWord is the state of a source in one word, or why it is unreachable.
func sourceWord(s Source) string {
	if s.State == Unreachable {
		return string(s.Why)
	}
	return string(s.State)
}

// Text is a check for people: its summary, the sources with what became of their passages,
// and the claims that are not what they were.
func (r Report) Text(when string, st term.Style) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
	}
	line("%s", r.Summary(when))
	for _, s := range r.Sources {
		line("")
		line("%-10s %s", sourceWord(s), term.CleanLine(s.Locator))
		if s.MovedTo != "" {
			line("           moved to %s", term.CleanLine(s.MovedTo))
		}
		if s.Retracted != "" {
			line("           %s", term.CleanLine(s.Retracted))
		}
		if s.Detail != "" {
			line("           %s", term.CleanLine(s.Detail))
		}
		for _, n := range s.Citations {
			p := r.Passages[n-1]
			line("  [%d] %s", n, p.State)
			switch p.State {
			case Altered:
				line("      - %s", st.Paint(term.Red, term.CleanLine(p.Excerpt)))
				line("      + %s", st.Paint(term.Green, term.CleanLine(p.Now)))
			case Missing:
				line("      - %s", st.Paint(term.Red, term.CleanLine(p.Excerpt)))
			}
		}
	}
	head := "\nclaims:\n"
	for _, c := range r.Claims {
		if c.State == Kept {
			continue
		}
		b.WriteString(head)
		head = ""
		marks := ""
		for _, n := range c.Citations {
			marks += fmt.Sprintf("[%d]", n)
		}
		line("  %-8s %s %s", c.State, term.CleanLine(c.Text), marks)
	}
	return b.String()
}
