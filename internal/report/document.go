package report

import (
	"fmt"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// This part is a report as a document that is handed on: the answer with its citations, what is to be
// known about it, references, and the excerpts as an appendix.

func (m *markdown) document() {
	if len(m.Notices) > 0 {
		m.line(strong("Take note:"))
		for _, n := range m.Notices {
			m.item(0, esc(n))
		}
	}
	m.heading(1, "Answer")
	if m.Lead != "" {
		m.line(m.noted(strong(m.Lead), existing([]int{m.LeadsTo}, len(m.r.Result.Citations))))
	}
	m.answer()
	if m.Missing {
		m.gaps(whatIsMissing)
	}
	m.closest()
	m.heading(1, "Confidence")
	m.facts(append([]Fact{{"Confidence", m.Confidence}}, m.Factors...))
	m.claims()
	m.contradictions()
	if !m.Missing {
		m.gaps("Gaps")
	}
	m.items("Discoveries", 0, m.Discoveries, ": ")
	m.items("Open questions", 0, m.Questions, "")
	m.items("Researchers asked", 1, m.Rihlas, " — ")
	m.references()
	m.heading(1, "Cost")
	m.facts(m.Cost)
	m.heading(1, "How to check this report")
	m.facts(m.Provenance)
	if len(m.Commands) > 0 {
		m.line(esc(checking))
		for _, c := range m.Commands {
			m.line(mono(c))
		}
	}
	m.appendix()
}

// part opens a part of the document that has something to say.
func (m *markdown) part(title string, things int) {
	if things > 0 {
		m.heading(1, title)
	}
}

func (m *markdown) facts(fs []Fact) {
	for _, f := range fs {
		m.item(0, esc(f.Label+": "+f.Value))
	}
}

func (m *markdown) answer() {
	all := Blocks(m.r.Result)
	if len(all) == 0 {
		m.line(esc(None))
	}
	for _, b := range all {
		switch b.Type {
		case marchwarden.Heading:
			m.heading(max(b.Level, 2), b.Text)
		case marchwarden.Paragraph:
			var said []string
			for _, c := range b.Claims {
				said = append(said, m.claimed(c))
			}
			m.line(strings.Join(said, " "))
		case marchwarden.List:
			for i, c := range b.Items {
				number := 0
				if b.Ordered {
					number = i + 1
				}
				m.item(number, m.claimed(c))
			}
		case marchwarden.Quote:
			m.quote(m.r.Result.Citations[b.Citation-1].RawExcerpt, b.Citation)
		case marchwarden.Chart:
			m.grid(verify.Figures(b))
		case marchwarden.TableBlock:
			m.grid(b)
		}
	}
}

// claimed is a sentence with its footnotes and, unless it stands, its verdict.
func (m *markdown) claimed(c marchwarden.Claim) string {
	said := m.noted(esc(c.Text), c.Citations)
	if c.Support != "" && !c.Support.Stands() {
		said += " " + esc("("+string(c.Support)+")")
	}
	return said
}

func (m *markdown) grid(b marchwarden.Block) {
	rows := make([][]string, 1, 1+len(b.Rows))
	for _, c := range b.Columns {
		rows[0] = append(rows[0], esc(c))
	}
	for _, row := range b.Rows {
		var cells []string
		for _, c := range row {
			cells = append(cells, m.noted(esc(orNone(c)), c.Citations))
		}
		rows = append(rows, cells)
	}
	m.table(rows)
}

func (m *markdown) closest() {
	m.part(notAnAnswer, len(m.Closest))
	for i, s := range m.Closest {
		m.line(strong(s.Heading))
		m.place(nearest(m.r.Result)[i].Locator)
		m.quote(s.Excerpt)
		if len(s.Facts) > 0 {
			m.line(esc(strings.Join(s.Facts, " · ")))
		}
	}
}

// place is a locator, as a link if it leads to the web.
func (m *markdown) place(at string) {
	switch to := webAddress(at); {
	case to == "":
		m.line(mono(at))
	case to == at:
		m.line(linked(to))
	default:
		m.line(mono(at) + " " + linked(to))
	}
}

func (m *markdown) claims() {
	m.part("Claims", len(m.Claims))
	for _, c := range m.Claims {
		m.item(c.Number, strong(c.Verdict)+" "+esc("— "+marked(c.Text, c.Sources)))
	}
}

func (m *markdown) contradictions() {
	m.part("Contradictions", len(m.Contradictions))
	for i, c := range m.Contradictions {
		m.line(strong(c.About))
		if c.Detail != "" {
			m.line(esc(c.Detail))
		}
		rows := [][]string{{oneSide, otherSide}}
		whole := m.r.Result.Contradictions[i]
		a, b := m.side(c.Sides[0], whole.A), m.side(c.Sides[1], whole.B)
		for row := range a {
			if a[row] != "" || b[row] != "" {
				rows = append(rows, []string{a[row], b[row]})
			}
		}
		m.table(rows)
	}
}

// side is the cells of one side of a contradiction.
func (m *markdown) side(v SideView, s marchwarden.Side) [4]string {
	where := m.noted(esc(joined(" — ", s.Title, s.Locator)), existing([]int{v.Source}, v.Source))
	return [4]string{where, esc(strings.Join(v.Facts, " · ")), esc(v.Value), esc("“" + v.Excerpt + "”")}
}

func (m *markdown) gaps(title string) {
	m.part(title, len(m.Gaps))
	for _, g := range m.Gaps {
		m.heading(2, g.Words)
		for _, x := range g.Gaps {
			m.item(0, esc(joined(" — ", x.Topic, x.Detail)), x.Done...)
		}
	}
}

// items writes a list, if there is any, that counts from first, or with 0 has bullets.
func (m *markdown) items(title string, first int, all []Item, between string) {
	m.part(title, len(all))
	for i, x := range all {
		m.item(first*(i+1), esc(x.Head+between+x.Text), strings.Join(x.Facts, " · "))
	}
}

func (m *markdown) references() {
	all := m.r.references()
	m.part("References", len(all))
	for _, ref := range all {
		m.line(strings.TrimSpace(esc(marked("", ref.cited)+" "+ref.text) + " " + linked(ref.address)))
	}
}

// appendix has the excerpts, each as it was cut from the stored text.
func (m *markdown) appendix() {
	m.heading(1, "Appendix: excerpts")
	if len(m.Sources) == 0 {
		m.line(esc("None cited."))
	}
	for _, s := range m.Sources {
		m.heading(2, fmt.Sprintf("Source %d", s.Number))
		m.line(strong(s.Heading))
		m.place(m.r.Result.Citations[s.Number-1].Locator)
		m.quote(s.Excerpt)
		for _, p := range s.Problems {
			m.line(strong(p))
		}
		m.facts(s.Facts)
		for _, n := range s.Claims {
			claim := m.Claims[n-1]
			m.item(0, esc(fmt.Sprintf("cited for claim %d (%s): %s", n, claim.Verdict, claim.Text)))
		}
	}
}
