package term

import (
	"fmt"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mdtable"
)

// markdownParser is CommonMark with tables and without link reference
// definitions: a line "[1]: https://…" in an answer must not turn its markers
// into links.
var markdownParser = parser.NewParser(append(mdtable.Options(),
	parser.WithBlockParsers(parser.DefaultBlockParsers()...),
	parser.WithInlineParsers(parser.DefaultInlineParsers()...),
)...)

// maxMarkdown is the longest answer, in bytes, that is read as Markdown: some cost the parser quadratic time.
const maxMarkdown = 64 << 10

type margin struct{ first, rest string }

func (m *margin) next() string {
	f := m.first
	m.first = m.rest
	return f
}

// nest is the margin of a block within this one, as long as text has room.
func (m *margin) nest(first, rest string) *margin {
	if uniseg.StringWidth(m.rest+rest) > minText/3 {
		return &margin{m.next(), m.rest}
	}
	return &margin{m.next() + first, m.rest + rest}
}

type markdown struct {
	*Page
	source []byte
}

// Markdown writes Markdown from outside onto the page. Its markers may name the
// citations from 1 to cited. What is longer than maxMarkdown is written as plain
// text.
func (p *Page) Markdown(src string, cited int) {
	p.Cited = cited
	defer func() { p.Cited = 0 }() // brackets elsewhere are no markers
	if len(src) > maxMarkdown {
		p.Text("", "", Run{strings.Trim(Clean(src), "\n"), Plain})
		return
	}
	md := markdown{Page: p, source: []byte(Clean(src))}
	md.blocks(markdownParser.Parse(text.NewReader(md.source)), &margin{}, false)
}

// blocks draws the children of n, with an empty line between them unless tight.
func (md markdown) blocks(n ast.Node, m *margin, tight bool) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c != n.FirstChild() && !tight {
			md.line(m.rest, "")
		}
		md.block(c, m)
	}
}

func (md markdown) block(n ast.Node, m *margin) {
	switch n := n.(type) {
	case *ast.Heading:
		runs := []Run{{strings.Repeat("#", n.Level) + " ", Dim}}
		md.Text(m.next(), m.rest, append(runs, md.inline(n, Bold)...)...)
	case *ast.List:
		md.list(n, m)
	case *ast.Blockquote:
		md.blocks(n, m.nest("│ ", "│ "), false)
	case *ast.CodeBlock, *ast.FencedCodeBlock, *ast.HTMLBlock:
		md.verbatim(n, m)
	case *ast.ThematicBreak:
		md.Text(m.next(), m.rest, Run{"* * *", Dim})
	case *extast.Table:
		md.table(n, m)
	default:
		md.Text(m.next(), m.rest, md.inline(n, Plain)...)
	}
}

func (md markdown) list(n *ast.List, m *margin) {
	number := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c != n.FirstChild() && !n.IsTight {
			md.line(m.rest, "")
		}
		bullet := "• "
		if n.IsOrdered() {
			bullet = fmt.Sprintf("%d%c ", number, n.Marker)
			number++
		}
		item := m.nest(bullet, strings.Repeat(" ", uniseg.StringWidth(bullet)))
		if c.FirstChild() == nil {
			md.Text(item.next(), item.rest)
		}
		md.blocks(c, item, n.IsTight)
	}
}

// verbatim draws the lines of code and of HTML, which is shown and not obeyed, unwrapped.
func (md markdown) verbatim(n ast.Node, m *margin) {
	inner := m.nest("    ", "    ")
	lines := n.Lines()
	for i := range lines.Len() {
		seg := lines.At(i)
		code := strings.ReplaceAll(string(seg.Value(md.source)), "\t", "    ")
		code = strings.TrimRight(oneLine(Clean(code)), " ")
		md.line(inner.next(), md.st.Paint(Tint, code))
	}
	if html, ok := n.(*ast.HTMLBlock); ok && html.HasClosure() {
		md.line(inner.next(), md.st.Paint(Tint, CleanLine(string(html.ClosureLine.Value(md.source)))))
	}
}

// table draws aligned columns if they fit, and otherwise each row as a list of "head: cell".
func (md markdown) table(n *extast.Table, m *margin) {
	var grid [][]line
	widths := []int{}
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		look := Plain
		if len(grid) == 0 {
			look = Bold
		}
		var cols []line
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			l := line(cells(md.inline(c, look), md.Cited))
			if len(cols) == len(widths) {
				widths = append(widths, 0)
			}
			widths[len(cols)] = max(widths[len(cols)], l.width())
			cols = append(cols, l)
		}
		grid = append(grid, cols)
	}
	total := uniseg.StringWidth(m.rest) - 2
	for _, w := range widths {
		total += w + 2
	}
	if total > md.st.textWidth() {
		md.tableRows(n, m)
		return
	}
	for _, cols := range grid {
		var b strings.Builder
		for i, l := range cols {
			b.WriteString(md.st.render(l))
			if i < len(cols)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-l.width()+2))
			}
		}
		md.line(m.next(), strings.TrimRight(b.String(), " "))
	}
}

func (md markdown) tableRows(n *extast.Table, m *margin) {
	head := n.FirstChild()
	for row := head.NextSibling(); row != nil; row = row.NextSibling() {
		item := m.nest("• ", "  ")
		h := head.FirstChild()
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			var runs []Run
			if h != nil {
				runs = append(md.inline(h, Bold), Run{": ", Bold})
				h = h.NextSibling()
			}
			md.Text(item.next(), item.rest, append(runs, md.inline(c, Plain)...)...)
		}
	}
}

func (md markdown) inline(n ast.Node, look Look) []Run {
	var out []Run
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			out = append(out, Run{md.words(c), look})
		case *ast.String:
			out = append(out, Run{string(c.Value), look})
		case *ast.CodeSpan:
			out = append(out, Run{"`" + md.raw(c) + "`", look.And(Tint)})
		case *ast.Emphasis:
			out = append(out, md.inline(c, look.And([]Look{Italic, Bold}[min(c.Level, 2)-1]))...)
		case *ast.Link:
			out = append(out, md.link(md.inline(c, look), c.Destination)...)
		case *ast.Image:
			alt := append([]Run{{"[image: ", look}}, md.inline(c, look)...)
			out = append(out, md.link(append(alt, Run{"]", look}), c.Destination)...)
		case *ast.AutoLink:
			out = append(out, Run{string(c.Label(md.source)), look.And(Tint)})
		case *ast.RawHTML:
			for i := range c.Segments.Len() {
				seg := c.Segments.At(i)
				out = append(out, Run{string(seg.Value(md.source)), look})
			}
		default:
			out = append(out, md.inline(c, look)...)
		}
	}
	return out
}

// words is the text of a node with its escapes and entities resolved.
func (md markdown) words(t *ast.Text) string {
	s := string(t.Segment.Value(md.source))
	if !t.IsRaw() {
		s = unescape(s)
	}
	s = oneLine(Clean(s))
	switch {
	case t.HardLineBreak():
		return s + "\n"
	case t.SoftLineBreak():
		return s + " "
	}
	return s
}

func (md markdown) raw(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(md.source))
		}
	}
	return oneLine(Clean(b.String()))
}

// link shows where a link leads, unless its text says so already.
func (md markdown) link(label []Run, destination []byte) []Run {
	to := CleanLine(unescape(string(destination)))
	var said strings.Builder
	for _, r := range label {
		said.WriteString(r.Text)
	}
	if to == "" || to == said.String() {
		return label
	}
	return append(label, Run{" (" + to + ")", Dim})
}

// unescape resolves escapes and entities in one pass: an escaped ampersand starts no entity.
func unescape(s string) string {
	var b strings.Builder
	flush := func(part string) {
		b.Write(util.ResolveEntityNames(util.ResolveNumericReferences([]byte(part))))
	}
	start := 0
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '\\' && util.IsPunct(s[i+1]) {
			flush(s[start:i])
			b.WriteByte(s[i+1])
			i++
			start = i + 1
		}
	}
	flush(s[start:])
	return b.String()
}
