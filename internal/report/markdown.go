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
	m := &markdown{notes: r.notes(), used: map[int]bool{}}
	v := r.View()
	m.WriteString("---\ntitle: " + yaml(v.Title) + "\nsubtitle: " + yaml("Marchwarden research report · "+strings.Join(v.About, " · ")) + "\n")
	if !r.StartedAt.IsZero() {
		m.WriteString("date: " + r.StartedAt.UTC().Format(time.DateOnly) + "\n")
	}
	m.WriteString("---\n\n")
	r.print(m)
	m.end()
	for i, note := range m.notes {
		if m.used[i+1] {
			m.line(fmt.Sprintf("[^%d]: %s", i+1, m.spans(note)))
		}
	}
	_, err := io.WriteString(w, strings.TrimSuffix(m.String(), "\n"))
	return err
}

// yaml is a text as a value that is read as Markdown in its turn. It has no escapes of its own, so
// that a reader who does not know title blocks finds those of Markdown.
func yaml(s string) string { return "'" + strings.ReplaceAll(esc(s), "'", "''") + "'" }

// markdown is paper.
type markdown struct {
	strings.Builder
	listing bool // the line before is an item
	notes   [][]span
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

func (m *markdown) spans(all []span) string {
	var out []string
	for _, s := range all {
		shown := esc(s.text)
		switch {
		case s.link != "" && s.link == s.text && !strings.ContainsAny(s.link, "<>\\` \""):
			shown = "<" + s.link + ">"
		case s.mono || s.link != "":
			shown = mono(s.text)
		case s.bold && shown != "":
			shown = "**" + shown + "**"
		}
		var notes []string
		for _, n := range s.notes {
			m.used[n] = true
			notes = append(notes, fmt.Sprintf("[^%d]", n))
		}
		if shown += strings.Join(notes, " "); shown != "" {
			out = append(out, shown)
		}
	}
	return strings.Join(out, " ")
}

func (m *markdown) heading(level int, text string) {
	m.line(strings.Repeat("#", level) + " " + esc(text))
}
func (m *markdown) paragraph(s ...span) { m.line(m.spans(s)) }

func (m *markdown) item(number int, asides []string, s ...span) {
	mark := "-"
	if number > 0 {
		mark = fmt.Sprintf("%d.", number)
	}
	m.listing = true
	m.WriteString(mark + " " + m.spans(s) + "\n")
	for _, a := range asides {
		m.WriteString("    - " + esc(a) + "\n")
	}
}

func (m *markdown) table(rows [][][]span) {
	m.end()
	for i, row := range rows {
		for _, cell := range row {
			m.WriteString("| " + m.spans(cell) + " ")
		}
		m.WriteString("|\n")
		if i == 0 {
			m.WriteString(strings.Repeat("| --- ", len(row)) + "|\n")
		}
	}
	m.WriteString("\n")
}

func (m *markdown) quote(text string, s ...span) {
	var out []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		out = append(out, strings.TrimRight("> "+esc(line), " "))
	}
	if len(out) == 0 {
		out = []string{">"}
	}
	m.line(strings.Join(out, "\n") + m.spans(s))
}

// notes are the footnotes, one for each citation in their order.
func (r *Report) notes() [][]span {
	out := make([][]span, len(r.Result.Citations))
	for _, ref := range r.references() {
		for _, n := range ref.cited {
			out[n-1] = []span{text(fmt.Sprintf("Source %d: %s", n, ref.text)), {text: ref.address, link: ref.address}}
		}
	}
	return out
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
