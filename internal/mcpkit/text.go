package mcpkit

import (
	"fmt"
	"strings"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// maxShownExcerpt is how much of an excerpt the readable text shows; structured
// content has it whole.
const maxShownExcerpt = 240

// shortText renders a result in plain lines: answer, numbered sources, gaps,
// confidence, trace.
func shortText(r *marchwarden.Result) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(block(r.Answer)))
	b.WriteString("\n")
	if len(r.Citations) > 0 {
		b.WriteString("\nSources\n")
	}
	for i, c := range r.Citations {
		fmt.Fprintf(&b, "[%d] %s", i+1, plain(c.Locator))
		if c.Title != "" {
			fmt.Fprintf(&b, " (%s)", plain(c.Title))
		}
		fmt.Fprintf(&b, "\n    \"%s\"\n", clip(plain(c.RawExcerpt), maxShownExcerpt))
	}
	if len(r.Gaps) > 0 {
		b.WriteString("\nGaps\n")
	}
	for _, g := range r.Gaps {
		fmt.Fprintf(&b, "- %s (%s): %s\n", plain(g.Topic), categoryWords(g.Category), plain(g.Detail))
	}
	fmt.Fprintf(&b, "\nConfidence %.2f · trace %s\n", float64(r.Confidence), r.TraceID)
	return b.String()
}

// categoryWords says what a category of gaps means; one that is not in the contract
// keeps its name.
func categoryWords(c marchwarden.GapCategory) string {
	switch c {
	case marchwarden.SourceNotFound:
		return "not found in what was searched"
	case marchwarden.AccessDenied:
		return "could not be reached or read"
	case marchwarden.ContradictorySources:
		return "sources disagree"
	case marchwarden.BudgetExhausted:
		return "the budget ended first"
	case marchwarden.ScopeExceeded:
		return "needs another kind of researcher"
	}
	return plain(string(c))
}

// plain makes one line of text from outside: runs of white space become a
// space, and what could steer a terminal or hide text is dropped.
func plain(s string) string {
	return strings.Join(strings.Fields(strings.Map(printable, s)), " ")
}

// block drops the same from text of several lines, and keeps its lines.
func block(s string) string { return strings.Map(printable, s) }

// printable drops control and formatting characters (escape sequences,
// direction overrides, zero-width marks) other than white space. The joiners
// stay: some scripts and symbols are written with them.
func printable(r rune) rune {
	switch {
	case r == '\n', r == '\t', r == '\u200c', r == '\u200d':
		return r
	case unicode.IsControl(r) && !unicode.IsSpace(r), unicode.Is(unicode.Cf, r):
		return -1
	case r == '\r', r == '\v', r == '\f', r == '\u0085':
		return ' '
	}
	return r
}

// clip shortens s to at most n characters, its ellipsis included.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
