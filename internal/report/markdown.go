package report

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// Markdown writes the report as CommonMark, with tables of GitHub's kind for what
// stands side by side. Markers link to the headings of the sources. Text from outside
// is text in every reader of Markdown: it makes no link, image, tag or format. It
// writes once.
func Markdown(w io.Writer, r *Report) error {
	m := &markdown{res: r.Result}
	m.line("# " + esc(r.title()))
	m.line("Marchwarden research report · " + esc(strings.Join(r.about(), " · ")))
	m.notices(r.notices())
	m.answer()
	m.closest()
	m.line("## Confidence")
	m.list(append([]Fact{{"Confidence", unit(m.res.Confidence)}}, factors(m.res.ConfidenceFactors)...))
	m.claims()
	m.contradictions()
	m.gaps()
	m.discoveries()
	m.openQuestions()
	m.rihlas()
	m.sources(r)
	m.line("## Cost")
	m.list(r.costs())
	m.line("## How to check this report")
	m.list(r.provenance())
	if commands := r.commands(); len(commands) > 0 {
		m.line(checking)
		m.line("```sh\n" + strings.Join(commands, "\n") + "\n```")
	}
	if _, err := io.WriteString(w, strings.TrimSuffix(m.String(), "\n")); err != nil {
		return fmt.Errorf("write Markdown: %w", err)
	}
	return nil
}

// markdown collects a document. Its methods write blocks.
type markdown struct {
	strings.Builder
	res *marchwarden.Result
}

// line writes a block and the empty line behind it.
func (m *markdown) line(s string) { m.WriteString(s + "\n\n") }

// item writes an item of a list and lines that belong to it.
func (m *markdown) item(mark, s string, more ...string) {
	m.WriteString(mark + " " + s + "\n")
	for _, x := range more {
		if x != "" {
			m.WriteString(strings.Repeat(" ", len(mark)+1) + "- " + x + "\n")
		}
	}
}

// end ends a list.
func (m *markdown) end() { m.WriteString("\n") }

func (m *markdown) list(fs []Fact) {
	for _, f := range fs {
		m.item("-", f.Label+": "+esc(f.Value))
	}
	m.end()
}

func (m *markdown) notices(all []string) {
	if len(all) == 0 {
		return
	}
	m.line("**Take note:**")
	for _, n := range all {
		m.item("-", esc(n))
	}
	m.end()
}

func (m *markdown) answer() {
	m.line("## Answer")
	if lead := esc(m.res.Lead()); lead != "" {
		if n := leadsTo(m.res); n > 0 {
			m.line("**" + lead + "** " + marks([]int{n}))
		} else {
			m.line("**" + lead + "**")
		}
	}
	paragraphs := Sentences(m.res)
	if len(paragraphs) == 0 {
		m.line(None)
	}
	for _, p := range paragraphs {
		var parts []string
		for _, s := range p {
			text := strings.TrimSpace(esc(s.Text) + " " + marks(s.Cited))
			if s.Claim > 0 {
				if v := m.res.Claims[s.Claim-1].Support; !v.Stands() {
					text += " (" + Verdict(v) + ")"
				}
			}
			parts = append(parts, text)
		}
		m.line(strings.Join(parts, " "))
	}
}

// closest writes the passages that a refusal comes with.
func (m *markdown) closest() {
	for i, c := range nearest(m.res) {
		if i == 0 {
			m.line("## " + notAnAnswer)
		}
		m.line("**" + esc(heading(c.Title, c.Locator)) + "**")
		m.line(place(c.Locator))
		m.line(quote(c.RawExcerpt))
		if why := esc(c.Reason); why != "" {
			m.line(why)
		}
	}
}

// marks are markers that lead to sources.
func marks(numbers []int) string {
	var b strings.Builder
	for _, n := range numbers {
		fmt.Fprintf(&b, "[[%d]](#source-%d)", n, n)
	}
	return b.String()
}

func (m *markdown) claims() {
	if len(m.res.Claims) == 0 {
		return
	}
	m.line("## Claims")
	for i, c := range m.res.Claims {
		m.item(fmt.Sprintf("%d.", i+1), strings.TrimSpace(fmt.Sprintf("**%s** — %s %s", Verdict(c.Support), esc(c.Text), marks(numbers(m.res, c)))))
	}
	m.end()
}

func (m *markdown) contradictions() {
	if len(m.res.Contradictions) == 0 {
		return
	}
	m.line("## Contradictions")
	for _, c := range m.res.Contradictions {
		m.line("**" + esc(contested(c)) + "**")
		if detail := plaintext.Fold(c.Detail); detail != "" {
			m.line(esc(detail))
		}
		m.WriteString("| " + oneSide + " | " + otherSide + " |\n| --- | --- |\n")
		m.row(func(s marchwarden.Side) string {
			n := sideNumber(m.res, s)
			if n == 0 {
				return esc(joined(" — ", s.Title, s.Locator))
			}
			return marks([]int{n}) + " " + esc(joined(" — ", s.Title, s.Locator))
		}, c)
		m.row(func(s marchwarden.Side) string { return esc(strings.Join(sideFacts(s), " · ")) }, c)
		m.row(func(s marchwarden.Side) string { return esc(s.Value) }, c)
		m.row(func(s marchwarden.Side) string { return "“" + esc(s.RawExcerpt) + "”" }, c)
		m.end()
	}
}

// row writes both sides of a contradiction beside each other, unless both are empty.
func (m *markdown) row(cell func(marchwarden.Side) string, c marchwarden.Contradiction) {
	if a, b := cell(c.A), cell(c.B); a != "" || b != "" {
		m.WriteString("| " + a + " | " + b + " |\n")
	}
}

func (m *markdown) gaps() {
	groups := gaps(m.res)
	if len(groups) == 0 {
		return
	}
	m.line("## Gaps")
	for _, g := range groups {
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

func (m *markdown) discoveries() {
	if len(m.res.DiscoveryEvents) == 0 {
		return
	}
	m.line("## Discoveries")
	for _, d := range m.res.DiscoveryEvents {
		x := discovery(d)
		m.item("-", esc(x.Head+": "+x.Text), esc(strings.Join(x.Facts, " · ")))
	}
	m.end()
}

func (m *markdown) openQuestions() {
	if len(m.res.OpenQuestions) == 0 {
		return
	}
	m.line("## Open questions")
	for _, q := range openQuestions(m.res) {
		x := asked(q)
		m.item("-", esc(x.Text), esc(strings.Join(x.Facts, " · ")))
	}
	m.end()
}

func (m *markdown) rihlas() {
	if len(m.res.Rihlas) == 0 {
		return
	}
	m.line("## Researchers asked")
	for i, r := range m.res.Rihlas {
		m.item(fmt.Sprintf("%d.", i+1), esc(joined(" — ", r.Researcher, r.Question)), esc(strings.Join(rihlaFacts(r, false), " · ")))
	}
	m.end()
}

func (m *markdown) sources(r *Report) {
	m.line("## Sources")
	if len(m.res.Citations) == 0 {
		m.line("None cited.")
	}
	for i, c := range m.res.Citations {
		// Its name on a page is that of the heading: "source-1".
		m.line(fmt.Sprintf("### Source %d", i+1))
		m.line("**" + esc(heading(c.Title, c.Locator)) + "**")
		m.line(place(c.Locator))
		if c.Unchecked {
			m.line(unchecked)
		}
		m.line(quote(c.RawExcerpt))
		if p := r.source(i).Problem; p != "" {
			m.line("**This excerpt does not stand:** " + esc(p) + ".")
		}
		m.list(r.sourceFacts(i))
		for _, n := range citedFor(m.res, i+1) {
			claim := m.res.Claims[n-1]
			m.item("-", fmt.Sprintf("cited for claim %s (%s): %s", term.Count(n), Verdict(claim.Support), esc(claim.Text)))
		}
		if len(citedFor(m.res, i+1)) > 0 {
			m.end()
		}
	}
}

// place is a locator: a link if it leads to the web, else as code.
func place(at string) string {
	if to, ok := locator.Canonical(address(at)); ok && !strings.ContainsAny(to, "<>\\` \"") {
		link := "<" + to + ">"
		if to == at {
			return link
		}
		return code(at) + " " + link
	}
	return code(at)
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

// quote is an excerpt as a block quote, line by line.
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
