package report

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Markdown writes the report as Markdown that Pandoc reads, and that readers of CommonMark with
// tables and footnotes read: a title block in YAML, footnotes, pipe tables. Text from outside
// is text in every one of them: it makes no link, image, tag or format. It writes once.
func Markdown(w io.Writer, r *Report) error {
	m := &markdown{View: r.View(), r: r, used: map[int]bool{}}
	m.WriteString("---\ntitle: " + yaml(m.Title) + "\nsubtitle: " + yaml("Marchwarden research report · "+strings.Join(m.About, " · ")) + "\n")
	if !r.StartedAt.IsZero() {
		m.WriteString("date: " + r.StartedAt.UTC().Format(time.DateOnly) + "\n")
	}
	m.WriteString("---\n\n")
	m.document()
	m.footnotes()
	_, err := io.WriteString(w, strings.TrimSuffix(m.String(), "\n"))
	return err
}

// yaml is a text as a value that is read as Markdown in its turn. It has no escapes of its own, so
// that a reader who does not know title blocks finds those of Markdown.
func yaml(s string) string { return "'" + strings.ReplaceAll(esc(s), "'", "''") + "'" }

// markdown is a report that is being written. Texts are on one line, but for excerpts.
type markdown struct {
	strings.Builder
	*View
	r       *Report
	listing bool         // the line before is an item
	used    map[int]bool // footnotes
}

func (m *markdown) line(s string) {
	m.end()
	m.WriteString(s + "\n\n")
}

// end ends a list.
func (m *markdown) end() {
	if m.listing {
		m.WriteString("\n")
	}
	m.listing = false
}

// noted is Markdown with the footnotes of citations.
func (m *markdown) noted(shown string, citations []int) string {
	for i, n := range citations {
		m.used[n] = true
		if i > 0 {
			shown += " "
		}
		shown += fmt.Sprintf("[^%d]", n)
	}
	return shown
}

func strong(s string) string {
	if s = esc(s); s == "" {
		return ""
	}
	return "**" + s + "**"
}

// linked is an address as a link, or as code where it could not be told from markup.
func linked(to string) string {
	if to == "" || strings.ContainsAny(to, "<>\\` \"") {
		return mono(to)
	}
	return "<" + to + ">"
}

func (m *markdown) heading(level int, text string) {
	m.line(strings.Repeat("#", level) + " " + esc(text))
}

// item is an entry of a list: number is from one, or 0 for a bullet. The asides are texts that say more about it.
func (m *markdown) item(number int, shown string, asides ...string) {
	mark := "-"
	if number > 0 {
		mark = fmt.Sprintf("%d.", number)
	}
	m.listing = true
	m.WriteString(mark + " " + shown + "\n")
	for _, a := range asides {
		if a != "" {
			m.WriteString("    - " + esc(a) + "\n")
		}
	}
}

// table has its head as first row.
func (m *markdown) table(rows [][]string) {
	m.end()
	for i, row := range rows {
		for _, cell := range row {
			m.WriteString("| " + cell + " ")
		}
		m.WriteString("|\n")
		if i == 0 {
			m.WriteString(strings.Repeat("| --- ", len(row)) + "|\n")
		}
	}
	m.WriteString("\n")
}

func (m *markdown) quote(text string, citations ...int) {
	var out []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		out = append(out, strings.TrimRight("> "+esc(line), " "))
	}
	if len(out) == 0 {
		out = []string{">"}
	}
	m.line(m.noted(strings.Join(out, "\n"), citations))
}

// footnotes are those that are used, in the order of the citations.
func (m *markdown) footnotes() {
	m.end()
	notes := make([]string, len(m.r.Result.Citations))
	for _, ref := range m.r.references() {
		for _, n := range ref.cited {
			notes[n-1] = strings.TrimSpace(esc(fmt.Sprintf("Source %d: %s", n, ref.text)) + " " + linked(ref.address))
		}
	}
	for i, note := range notes {
		if m.used[i+1] {
			m.line(fmt.Sprintf("[^%d]: %s", i+1, note))
		}
	}
}

// mono is a text as code, in as many backquotes as it takes.
func mono(s string) string {
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

// special is what some reader of Markdown takes for markup: formats, code, links, notes, tags,
// tables, formulas, attributes, character references, addresses, and what makes a block at
// the start of a line.
var special = regexp.MustCompile("[\\\\`*_\\[\\]#|~$<>&@^{}]|://|(?i:www\\.)|^[+=:%-]|^\\(?(?:\\d{1,9}|[A-Za-z]|[ivxlcdmIVXLCDM]+)[.)](?: |$)")

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
	for _, s := range m.Closest {
		m.line(strong(s.Heading))
		m.place(s.Locator, s.Address)
		m.quote(s.Excerpt)
		if len(s.Facts) > 0 {
			m.line(esc(strings.Join(s.Facts, " · ")))
		}
	}
}

// place is a locator, as a link if it leads to the web.
func (m *markdown) place(locator, address string) {
	if address == locator {
		locator = ""
	}
	m.line(strings.TrimSpace(mono(locator) + " " + linked(address)))
}

func (m *markdown) claims() {
	m.part("Claims", len(m.Claims))
	for _, c := range m.Claims {
		m.item(c.Number, strong(c.Verdict)+" "+esc("— "+marked(c.Text, c.Sources)))
	}
}

func (m *markdown) contradictions() {
	m.part("Contradictions", len(m.Contradictions))
	for _, c := range m.Contradictions {
		m.line(strong(c.About))
		if c.Detail != "" {
			m.line(esc(c.Detail))
		}
		rows := [][]string{{oneSide, otherSide}}
		a, b := m.side(c.Sides[0]), m.side(c.Sides[1])
		for row := range a {
			if a[row] != "" || b[row] != "" {
				rows = append(rows, []string{a[row], b[row]})
			}
		}
		m.table(rows)
	}
}

// side is the cells of one side of a contradiction.
func (m *markdown) side(s SideView) [4]string {
	where := s.Locator
	if s.Heading != s.Locator {
		where = s.Heading + " — " + s.Locator
	}
	return [4]string{m.noted(esc(where), existing([]int{s.Source}, s.Source)), esc(strings.Join(s.Facts, " · ")), esc(s.Value), esc("“" + s.Excerpt + "”")}
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
		m.place(s.Locator, s.Address)
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
