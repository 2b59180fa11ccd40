package term

import (
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Page is a screen being written. Whatever is written on it is cleaned on the way.
// Margins are the caller's own strings.
type Page struct {
	// Cited is how many citations the markers of what is written now can name; those are
	// tinted, and stay on the line of the word before them.
	Cited int

	st Style
	b  strings.Builder
}

// NewPage begins an empty page.
func (st Style) NewPage() *Page { return &Page{st: st} }

// Text writes runs as a wrapped paragraph behind margins: first before its first
// line, rest before the others. A newline in a run breaks the line.
func (p *Page) Text(first, rest string, runs ...Run) {
	p.lay(first, rest, cells(runs, p.Cited))
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
	runs := make([]Run, len(facts))
	for i, f := range facts {
		runs[i] = Run{f, Dim}
	}
	p.Series(indent, runs...)
}

// Series writes short facts in a row, if there are any, with line breaks between them rather
// than within.
func (p *Page) Series(indent string, facts ...Run) {
	var clean []Run
	for _, f := range facts {
		if f.Text = CleanLine(f.Text); f.Text != "" {
			clean = append(clean, f)
		}
	}
	if len(clean) > 0 {
		p.lay(indent, indent, series(clean))
	}
}

// SourceHead writes what a source is numbered by and its title, its locator on a line of its
// own, unbroken, so that it can be copied or followed, and returns the indent of what belongs below.
func (p *Page) SourceHead(number, title, locator string) (indent string) {
	number += " "
	indent = strings.Repeat(" ", 2+uniseg.StringWidth(number))
	if title = CleanLine(title); title == "" {
		title, locator = locator, ""
	}
	p.Text("  ", indent, Run{number, Tint}, Run{title, Bold})
	if locator = CleanLine(locator); locator != "" {
		p.line(indent, p.st.render(cells([]Run{{locator, Plain}}, 0)))
	}
	return indent
}

// Grid writes a table whose first row is its head, its cells wrapped so that it fits the page.
// Where the columns would be too narrow, each row is a list of "head: cell".
func (p *Page) Grid(rows [][]Run) {
	widths := make([]int, len(rows[0]))
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], line(cells(row[i:i+1], p.Cited)).width())
		}
	}
	if !narrow(widths, p.st.textWidth()) {
		p.list(rows)
		return
	}
	for i, row := range rows {
		p.gridRow(row, widths)
		if i == 0 {
			rule := make([]Run, len(widths))
			for j, w := range widths {
				rule[j] = Run{strings.Repeat("─", w), Dim}
			}
			p.gridRow(rule, widths)
		}
	}
}

func (p *Page) gridRow(row []Run, widths []int) {
	columns, tall := make([][]line, len(row)), 1
	for i, r := range row {
		columns[i] = wrap(cells([]Run{r}, p.Cited), widths[i], widths[i])
		tall = max(tall, len(columns[i]))
	}
	for at := range tall {
		out, fill := "", 0
		for i, lines := range columns {
			width := 0
			if at < len(lines) && len(lines[at]) > 0 {
				out += strings.Repeat(" ", fill) + p.st.render(lines[at])
				fill, width = 0, lines[at].width()
			}
			fill += widths[i] - width + tableGap
		}
		p.line("", out)
	}
}

func (p *Page) list(rows [][]Run) {
	for _, row := range rows[1:] {
		margin := "• "
		for i, cell := range row {
			head := rows[0][i]
			if head.Text != "" {
				head.Text += ": "
			}
			p.Text(margin, "  ", head, cell)
			margin = "  "
		}
	}
}

// WriteTo writes the page in one write.
func (p *Page) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, p.b.String())
	return int64(n), err
}

// Run is a stretch of text in one look. Its text may come from outside: it is
// cleaned where runs become cells, which is the only way to the page.
type Run struct {
	Text string
	Look Look
}

// cell is one grapheme cluster as it is placed on a line.
type cell struct {
	text  string
	width int
	look  Look
	can   bool // the line may be broken after it
	must  bool // the line ends after it
}

type line []cell

func (l line) width() int {
	n := 0
	for _, c := range l {
		n += c.width
	}
	return n
}

// ExcerptBar stands before the lines of an excerpt, and in no text that is written: there a light one stands
// in its place.
const ExcerptBar = "┃"

var inText = strings.NewReplacer("\t", " ", ExcerptBar, "│")

var markerPattern = regexp.MustCompile(`\[[0-9]{1,4}\]`)

// cells cleans the runs and cuts them into cells, with the places where a line
// may be broken (Unicode line breaking). A marker stays on the line of the word
// before it; one that names a citation, from 1 to cited, is tinted.
func cells(runs []Run, cited int) []cell {
	var text strings.Builder
	ends := make([]int, len(runs))
	for i, r := range runs {
		text.WriteString(inText.Replace(Clean(r.Text)))
		ends[i] = text.Len()
	}
	s := text.String()
	markers := markerPattern.FindAllStringIndex(s, -1)

	out := make([]cell, 0, len(s))
	state, at, which := -1, 0, 0
	for rest := s; rest != ""; {
		var cluster string
		var bounds int
		cluster, rest, bounds, state = uniseg.StepString(rest, state)
		for which < len(ends)-1 && at >= ends[which] {
			which++
		}
		c := cell{text: cluster, width: bounds >> uniseg.ShiftWidth, look: runs[which].Look}
		switch bounds & uniseg.MaskLine {
		case uniseg.LineCanBreak:
			c.can = cluster == " " || cluster[0] >= utf8.RuneSelf // words, names and addresses stay whole
		case uniseg.LineMustBreak:
			c.must = cluster == "\n"
		}
		for len(markers) > 0 && at >= markers[0][1] {
			markers = markers[1:]
		}
		if len(markers) > 0 && at >= markers[0][0] {
			if at == markers[0][0] {
				glue(out)
			}
			if names(s[markers[0][0]+1:markers[0][1]-1], cited) {
				c.look = c.look.And(Tint)
			}
		}
		at += len(cluster)
		out = append(out, c)
	}
	return out
}

// series is short facts in a row, with line breaks between them rather than within.
func series(facts []Run) []cell {
	const sure = minText - 11
	var out []cell
	for i, f := range facts {
		cs := cells([]Run{f}, 0)
		whole := line(cs).width() <= sure
		if i < len(facts)-1 {
			cs = append(cs, cells([]Run{{" · ", Dim}}, 0)...)
		}
		for j := range cs {
			cs[j].can = cs[j].can && !whole && j < len(cs)-4 // nor before what parts it from the next
		}
		cs[len(cs)-1].can = true
		out = append(out, cs...)
	}
	return out
}

// glue forbids a break between the last word and what comes next.
func glue(cs []cell) {
	for i := len(cs) - 1; i >= 0; i-- {
		cs[i].can = false
		if cs[i].text != " " {
			return
		}
	}
}

func names(digits string, cited int) bool {
	n, err := strconv.Atoi(digits)
	return err == nil && n >= 1 && n <= cited
}

// wrap breaks cells into lines. A word that is too long for a line is cut between clusters.
func wrap(cs []cell, first, rest int) []line {
	var lines []line
	limit := max(first, 1)
	end := func(l []cell) {
		for len(l) > 0 && (l[len(l)-1].text == " " || l[len(l)-1].text == "\n") {
			l = l[:len(l)-1]
		}
		lines = append(lines, line(l))
		limit = max(rest, 1)
	}
	start, width, after := 0, 0, 0 // after is where the line can be broken, if beyond start
	for i := 0; i < len(cs); i++ {
		c := cs[i]
		if c.text != " " && !c.must && width+c.width > limit && i > start {
			cut := i
			if after > start {
				cut = after
			}
			end(cs[start:cut])
			start, width, after = cut, 0, 0
			i = cut - 1 // place what moved down again: the next line may be narrower
			continue
		}
		width += c.width
		if c.must {
			end(cs[start : i+1])
			start, width, after = i+1, 0, 0
		} else if c.can {
			after = i + 1
		}
	}
	if start < len(cs) {
		end(cs[start:])
	}
	return lines
}

func (st Style) render(l line) string {
	var b strings.Builder
	for i := 0; i < len(l); {
		j := i
		var part strings.Builder
		for ; j < len(l) && l[j].look == l[i].look; j++ {
			part.WriteString(l[j].text)
		}
		b.WriteString(st.Paint(l[i].look, part.String()))
		i = j
	}
	return b.String()
}
