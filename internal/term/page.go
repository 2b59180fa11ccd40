package term

import (
	"fmt"
	"io"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Page is a page of text for other packages to lay out. Whatever is written on it is
// cleaned on the way, and looks like the pages of this one. Margins are the caller's
// own strings.
type Page struct{ p page }

// NewPage begins an empty page.
func (st Style) NewPage() *Page { return &Page{page{st: st}} }

// Text writes runs as a wrapped paragraph behind margins: first before its first line,
// rest before the others. A newline in a run breaks the line. Markers of so many
// citations are tinted, and stay on the line of the word before them.
func (p *Page) Text(first, rest string, cited int, runs ...Run) {
	p.p.cited = cited
	p.p.text(first, rest, runs...)
	p.p.cited = 0
}

// Unbroken writes one line as it is, for what is there to be copied.
func (p *Page) Unbroken(margin, text string) { p.p.line(margin, CleanLine(text)) }

// Gap writes an empty line.
func (p *Page) Gap() { p.p.gap() }

// Section opens a section with its title.
func (p *Page) Section(title string, look Look) { p.p.section(title, look) }

// Note writes a dim line of short facts, if there are any.
func (p *Page) Note(indent string, facts []string) {
	clean := make([]string, len(facts))
	for i, f := range facts {
		clean[i] = CleanLine(f)
	}
	p.p.note(indent, nonEmpty(clean...))
}

// SourceHead writes the number of a source in brackets, its title and its locator, and
// returns the indent of what belongs below.
func (p *Page) SourceHead(number int, title, locator string) (indent string) {
	head := "[" + Count(number) + "]"
	indent = strings.Repeat(" ", 2+len(head)+1)
	p.p.sourceHead(head+" ", indent, CleanLine(title), CleanLine(locator))
	return indent
}

// Contradictions writes a section of what two sources disagree about, side by side
// where there is room, if there is any.
func (p *Page) Contradictions(r *marchwarden.Result) { p.p.contradictions(r) }

// Fact writes a labelled line of a list: the label in a column of its own.
func (p *Page) Fact(label string, column int, value string) {
	label = "  " + Pad(CleanLine(label), column, false)
	p.p.text(label, strings.Repeat(" ", Width(label)), Run{CleanLine(value), Plain})
}

// String is what was written.
func (p *Page) String() string { return p.p.String() }

// WriteTo writes the page in one write.
func (p *Page) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, p.p.String())
	if err != nil {
		return int64(n), fmt.Errorf("write page: %w", err)
	}
	return int64(n), nil
}
