package term

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
)

// Page is a screen being written. Whatever is written on it is cleaned on the way.
// Margins are the caller's own strings.
type Page struct {
	// Cited is how many citations the markers of what is written now can name; those are
	// tinted, and stay on the line of the word before them.
	Cited int
	// Swap replaces what must not stand in the texts that are written; nil is nothing.
	Swap *strings.Replacer

	st Style
	b  strings.Builder
}

// NewPage begins an empty page.
func (st Style) NewPage() *Page { return &Page{st: st} }

// Text writes runs as a wrapped paragraph behind margins: first before its first
// line, rest before the others. A newline in a run breaks the line.
func (p *Page) Text(first, rest string, runs ...Run) {
	p.lay(first, rest, p.cells(runs, p.Cited))
}

func (p *Page) cells(runs []Run, cited int) []cell {
	if p.Swap != nil {
		runs = slices.Clone(runs)
		for i := range runs {
			runs[i].Text = p.Swap.Replace(runs[i].Text)
		}
	}
	return cells(runs, cited)
}

func (p *Page) lay(first, rest string, cs []cell) {
	width := p.st.textWidth()
	lines := wrap(cs, width-uniseg.StringWidth(first), width-uniseg.StringWidth(rest))
	if len(lines) == 0 {
		lines = []line{nil}
	}
	margin := first
	for _, l := range lines {
		p.line(margin, p.st.render(l))
		margin = rest
	}
}

func (p *Page) line(margin, rendered string) {
	if rendered == "" {
		margin = strings.TrimRight(margin, " ")
	}
	body := strings.TrimLeft(margin, " ")
	p.b.WriteString(margin[:len(margin)-len(body)])
	p.b.WriteString(p.st.Paint(Dim, body))
	p.b.WriteString(rendered + "\n")
}

// Unbroken writes one line as it is, for what is there to be copied.
func (p *Page) Unbroken(margin, text string, look Look) {
	p.line(margin, p.st.Paint(look, CleanLine(text)))
}

// Gap writes an empty line.
func (p *Page) Gap() { p.b.WriteString("\n") }

// Section opens a section with its title.
func (p *Page) Section(title string, look Look) {
	p.Gap()
	p.Text("", "", Run{title, Bold.And(look)})
}

// Note writes a dim line of short facts, if there are any.
func (p *Page) Note(indent string, facts []string) {
	clean := make([]string, len(facts))
	for i, f := range facts {
		if p.Swap != nil {
			f = p.Swap.Replace(f)
		}
		clean[i] = CleanLine(f)
	}
	if clean = nonEmpty(clean...); len(clean) > 0 {
		p.lay(indent, indent, series(clean, " · ", Dim))
	}
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return t == "" })
}

// Labelled writes a line behind a dim label of a width: a head, if any, then a series of
// facts.
func (p *Page) Labelled(label string, width int, head []Run, separator string, facts ...string) {
	cs := p.cells(append([]Run{{Pad(label, width, false), Dim}}, head...), 0)
	p.lay("", strings.Repeat(" ", width), append(cs, series(facts, separator, Plain)...))
}

// SourceHead writes what a source is numbered by, its title and its locator, and returns
// the indent of what belongs below. A locator that does not fit beside the title has a
// line of its own, unbroken, so that it can be copied or followed.
func (p *Page) SourceHead(number, title, locator string) (indent string) {
	number += " "
	indent = strings.Repeat(" ", 2+uniseg.StringWidth(number))
	title, locator = CleanLine(title), CleanLine(locator)
	runs := []Run{{number, Tint}}
	if title == "" || locator == "" {
		p.line("  ", p.st.render(p.cells(append(runs, Run{title + locator, Bold}), 0)))
		return indent
	}
	runs = append(runs, Run{title, Bold})
	whole := p.cells(append(slices.Clone(runs), Run{" — ", Dim}, Run{locator, Plain}), 0)
	if l := line(whole); l.width()+2 <= p.st.textWidth() {
		p.line("  ", p.st.render(l))
		return indent
	}
	p.Text("  ", indent, runs...)
	p.line(indent, p.st.render(p.cells([]Run{{locator, Plain}}, 0)))
	return indent
}

// sideBySide is the least width of a page that shows two texts abreast.
const sideBySide = 70

// Abreast writes the paragraphs of two sides beside each other, or one above the other
// on a narrow page.
func (p *Page) Abreast(a, b [][]Run) {
	width := p.st.textWidth()
	if width >= sideBySide {
		column := (width - 2 - 3) / 2
		p.columns("  ", column, p.stack(a, column), p.stack(b, column))
		return
	}
	for i, side := range [][][]Run{a, b} {
		if i > 0 {
			p.Text("  ", "  ", Run{"against", Dim})
		}
		for _, runs := range side {
			p.Text("  │ ", "  │ ", runs...)
		}
	}
}

func (p *Page) stack(paragraphs [][]Run, width int) []line {
	var out []line
	for _, runs := range paragraphs {
		out = append(out, wrap(p.cells(runs, 0), width, width)...)
	}
	return out
}

// columns writes two stacks of lines side by side behind a margin, the left one
// as wide as said.
func (p *Page) columns(margin string, width int, left, right []line) {
	for i := range max(len(left), len(right)) {
		var l, r line
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = right[i]
		}
		fill := strings.Repeat(" ", max(0, width-l.width()))
		bar := " │ "
		if len(r) == 0 {
			bar = " │"
		}
		p.line(margin, p.st.render(l)+fill+p.st.Paint(Dim, bar)+p.st.render(r))
	}
}

// WriteTo writes the page in one write.
func (p *Page) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, p.b.String())
	if err != nil {
		return int64(n), fmt.Errorf("write page: %w", err)
	}
	return int64(n), nil
}
