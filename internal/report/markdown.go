package report

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
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
