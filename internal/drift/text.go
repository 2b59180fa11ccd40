package drift

import (
	"fmt"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// The colours of what went and what came. They only repeat what the signs before
// the lines say.
const (
	colourWent = "\x1b[31m"
	colourCame = "\x1b[32m"
	colourOff  = "\x1b[0m"
)

// Summary is a check in one line; when is when it was made, in words.
func (r Report) Summary(when string) string {
	if len(r.Sources) == 0 {
		return "checked " + when + ": the result cites nothing"
	}
	states := map[string]int{}
	for _, s := range r.Sources {
		states[sourceWord(s)]++
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
	verdict := "every passage stands"
	switch {
	case lost > 0:
		verdict = term.Plural(lost, "claim") + " lost evidence"
	case r.Drifted():
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
func (r Report) Text(when string, st term.Style, context int) string {
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
		if s.Detail != "" {
			line("           %s", term.CleanLine(s.Detail))
		}
		for _, n := range s.Citations {
			p := r.Passages[n-1]
			line("  [%d] %s", n, p.State)
			switch p.State {
			case Altered:
				removed, added := diffLines(p.Diff, context, st.Color)
				line("      - %s", removed)
				line("      + %s", added)
			case Missing:
				line("      - %s", painted(st.Color, colourWent, term.CleanLine(p.Excerpt)))
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

// diffLines writes both sides of a diff, with some unchanged words around each change.
func diffLines(edits []Edit, context int, colour bool) (removed, added string) {
	var was, now []string
	for i, e := range edits {
		text := term.CleanLine(e.Text)
		switch e.Op {
		case Removed:
			was = append(was, painted(colour, colourWent, text))
		case Added:
			now = append(now, painted(colour, colourCame, text))
		default:
			text = nearby(text, context, i > 0, i < len(edits)-1)
			was, now = append(was, text), append(now, text)
		}
	}
	return strings.Join(was, " "), strings.Join(now, " ")
}

// nearby keeps the n words of an unchanged stretch next to a change.
func nearby(text string, n int, before, after bool) string {
	words := strings.Fields(text)
	head, tail := 0, len(words)
	if before {
		head = n
	}
	if after {
		tail -= n
	}
	if head >= tail {
		return strings.Join(words, " ")
	}
	return strings.Join(slices.Concat(words[:head], []string{"…"}, words[tail:]), " ")
}

func painted(colour bool, code, text string) string {
	if !colour || text == "" {
		return text
	}
	return code + text + colourOff
}
