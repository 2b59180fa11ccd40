package report

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// Markdown writes the report as CommonMark, with tables of GitHub's kind for what
// stands side by side. Markers link to the headings of the sources. Text from outside
// is text in every reader of Markdown: it makes no link, image, tag or format. It
// writes once.
func Markdown(w io.Writer, r *Report) error {
	m := &markdown{View: r.View(), r: r}
	m.line("# " + esc(m.Title))
	m.line("Marchwarden research report · " + inLine(m.About))
	if len(m.Notices) > 0 {
		m.line("**Take note:**")
		for _, n := range m.Notices {
			m.item("-", esc(n))
		}
		m.end()
	}
	m.answer()
	m.closest()
	m.line("## Confidence")
	m.list(append([]Fact{{"Confidence", m.Confidence}}, m.Factors...))
	m.claims()
	m.contradictions()
	m.gaps()
	m.items("Discoveries", "-", m.Discoveries, ": ")
	m.items("Open questions", "-", m.Questions, "")
	m.items("Researchers asked", "", m.Rihlas, " — ")
	m.sources()
	m.line("## Cost")
	m.list(m.Cost)
	m.line("## How to check this report")
	m.list(m.Provenance)
	if len(m.Commands) > 0 {
		m.line(checking)
		m.line("```sh\n" + strings.Join(m.Commands, "\n") + "\n```")
	}
	if _, err := io.WriteString(w, strings.TrimSuffix(m.String(), "\n")); err != nil {
		return fmt.Errorf("write Markdown: %w", err)
	}
	return nil
}

type markdown struct {
	strings.Builder
	*View
	r *Report
}

func (m *markdown) line(s string) { m.WriteString(s + "\n\n") }

func (m *markdown) item(mark, s string, more ...string) {
	m.WriteString(mark + " " + s + "\n")
	for _, x := range more {
		if x != "" {
			m.WriteString(strings.Repeat(" ", len(mark)+1) + "- " + x + "\n")
		}
	}
}

func (m *markdown) end() { m.WriteString("\n") }

func (m *markdown) list(fs []Fact) {
	for _, f := range fs {
		m.item("-", f.Label+": "+esc(f.Value))
	}
	m.end()
}

func inLine(facts []string) string { return esc(strings.Join(facts, " · ")) }

func (m *markdown) answer() {
	m.line("## Answer")
	if m.Lead != "" {
		var cited []int
		if m.LeadsTo > 0 {
			cited = []int{m.LeadsTo}
		}
		m.line(strings.TrimSpace("**" + esc(m.Lead) + "** " + marks(cited)))
	}
	paragraphs := Sentences(m.r.Result)
	if len(paragraphs) == 0 {
		m.line(None)
	}
	for _, p := range paragraphs {
		var parts []string
		for _, s := range p {
			text := strings.TrimSpace(esc(s.Text) + " " + marks(s.Cited))
			if s.Claim > 0 {
				if c := m.Claims[s.Claim-1]; !c.stands() {
					text += " (" + c.Verdict + ")"
				}
			}
			parts = append(parts, text)
		}
		m.line(strings.Join(parts, " "))
	}
}

func (m *markdown) closest() {
	for i, s := range m.Closest {
		if i == 0 {
			m.line("## " + notAnAnswer)
		}
		m.line("**" + esc(s.Heading) + "**")
		m.line(place(nearest(m.r.Result)[i].Locator))
		m.line(quote(s.Excerpt))
		if why := inLine(s.Facts); why != "" {
			m.line(why)
		}
	}
}

func marks(numbers []int) string {
	var b strings.Builder
	for _, n := range numbers {
		fmt.Fprintf(&b, "[[%d]](#source-%d)", n, n)
	}
	return b.String()
}

func (m *markdown) claims() {
	if len(m.Claims) == 0 {
		return
	}
	m.line("## Claims")
	for _, c := range m.Claims {
		m.item(fmt.Sprintf("%d.", c.Number), strings.TrimSpace(fmt.Sprintf("**%s** — %s %s", c.Verdict, esc(c.Text), marks(c.Sources))))
	}
	m.end()
}

func (m *markdown) contradictions() {
	for i, c := range m.Contradictions {
		if i == 0 {
			m.line("## Contradictions")
		}
		m.line("**" + esc(c.About) + "**")
		if c.Detail != "" {
			m.line(esc(c.Detail))
		}
		m.WriteString("| " + oneSide + " | " + otherSide + " |\n| --- | --- |\n")
		whole := m.r.Result.Contradictions[i]
		a, b := sideCells(c.Sides[0], whole.A), sideCells(c.Sides[1], whole.B)
		for row := range a {
			if a[row] != "" || b[row] != "" {
				m.WriteString("| " + a[row] + " | " + b[row] + " |\n")
			}
		}
		m.end()
	}
}

func sideCells(v SideView, s marchwarden.Side) [4]string {
	where := esc(joined(" — ", s.Title, s.Locator))
	if v.Source > 0 {
		where = marks([]int{v.Source}) + " " + where
	}
	return [4]string{where, inLine(v.Facts), esc(v.Value), "“" + esc(v.Excerpt) + "”"}
}

func (m *markdown) gaps() {
	if len(m.Gaps) > 0 {
		m.line("## Gaps")
	}
	for _, g := range m.Gaps {
		m.line("### " + esc(g.Words))
		for _, x := range g.Gaps {
			var done []string
			for _, d := range x.Done {
				done = append(done, esc(d))
			}
			m.item("-", esc(joined(" — ", x.Topic, x.Detail)), done...)
		}
		m.end()
	}
}

// items writes a list, if there is any; without a mark its items are counted.
func (m *markdown) items(title, mark string, all []Item, between string) {
	if len(all) == 0 {
		return
	}
	m.line("## " + title)
	for i, x := range all {
		number := mark
		if number == "" {
			number = fmt.Sprintf("%d.", i+1)
		}
		m.item(number, esc(x.Head+between+x.Text), inLine(x.Facts))
	}
	m.end()
}

func (m *markdown) sources() {
	m.line("## Sources")
	if len(m.Sources) == 0 {
		m.line("None cited.")
	}
	for i, s := range m.Sources {
		c := m.r.Result.Citations[i]
		// Its name on a page is that of the heading: "source-1".
		m.line(fmt.Sprintf("### Source %d", s.Number))
		m.line("**" + esc(s.Heading) + "**")
		m.line(place(c.Locator))
		if c.Unchecked {
			m.line(unchecked)
		}
		m.line(quote(c.RawExcerpt))
		if p := m.r.source(i).Problem; p != "" {
			m.line("**This excerpt does not stand:** " + esc(p) + ".")
		}
		m.list(s.Facts)
		for _, n := range s.Claims {
			claim := m.Claims[n-1]
			m.item("-", fmt.Sprintf("cited for claim %s (%s): %s", term.Count(n), claim.Verdict, esc(claim.Text)))
		}
		if len(s.Claims) > 0 {
			m.end()
		}
	}
}

// place is a locator: a link if it leads to the web, else as code.
func place(at string) string {
	to := webAddress(at)
	switch {
	case to == "" || strings.ContainsAny(to, "<>\\` \""):
		return code(at)
	case to == at:
		return "<" + to + ">"
	}
	return code(at) + " <" + to + ">"
}

// code is a text as code, in as many backquotes as it takes.
func code(s string) string {
	s = plaintext.Fold(s)
	if s == "" {
		return ""
	}
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}

func quote(s string) string {
	var out []string
	for line := range strings.Lines(strings.TrimSpace(s)) {
		out = append(out, strings.TrimRight("> "+esc(line), " "))
	}
	if len(out) == 0 {
		return ">"
	}
	return strings.Join(out, "\n")
}

// special is what some reader of Markdown takes for markup: formats, code, links,
// tags, tables, formulas, character references, addresses, and what makes a block at
// the start of a line.
var special = regexp.MustCompile("[\\\\`*_\\[\\]#|~$<>&@]|://|(?i:www\\.)|^[+=:-]|^\\d{1,9}[.)](?: |$)")

// esc is a text on one line as Markdown that shows it as it reads.
func esc(s string) string {
	return special.ReplaceAllStringFunc(plaintext.Fold(s), func(m string) string {
		switch m {
		case "<":
			return "&lt;" // not every reader takes a backslash before these three
		case ">":
			return "&gt;"
		case "&":
			return "&amp;"
		case "://":
			return `\://`
		}
		mark := strings.TrimSuffix(m, " ") // of a number, the point behind it
		return m[:len(mark)-1] + `\` + m[len(mark)-1:]
	})
}
