package report

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mdtable"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
)

// This part is an answer as HTML that is safe to put into a page and whose sentences lead
// to their citations. Text from outside stays text: the parser knows no raw HTML and no
// reference definitions, and what it found is written by package markup, in which only
// constants of the source are markup. Nothing of it runs, loads or sends anything. A link
// leads to http or https, says to which host, and tells the other side nothing; an image is
// its description in brackets.

// maxMarkdown is the longest text, in bytes, that is read as Markdown. Some inputs
// cost the parser quadratic time; at this length that is half a second. In what is
// longer, markup is text; markers are found in it all the same, and an answer that
// the gate wrote reads the same either way.
const maxMarkdown = 32 << 10

// AnswerHTML is the answer of a result, as HTML that cannot act or load. A sentence with markers, or with a claim, is
//
//	<span class="sentence partial" data-claim="2" data-source="1">text
//	<a href="?source=1#source" class="cite" data-source="1" aria-label="source 1">[1]</a>
//	<span class="verdict partial">partial</span></span>
//
// where the claim, its verdict and the word for it are there if the sentence is a
// claim, and data-source is its first citation. It is blocks, to be put into an
// element of the page; headings begin at h3. Equal results give equal bytes.
func AnswerHTML(res *marchwarden.Result) h.Node {
	body := (&answerWriter{res: res, claims: Claims(res.Claims)}).document(res.Answer)
	if body.Empty() {
		body = h.Fill(`<p>{}</p>`, None)
	}
	return body
}

func (w *answerWriter) plain() h.Node {
	var out []h.Node
	for _, paragraph := range Sentences(w.res) {
		var parts []h.Node
		for i, s := range paragraph {
			if i > 0 {
				parts = append(parts, h.Text(" "))
			}
			runs := []textRun{{text: strings.TrimLeft(s.Text+" ", " ")}}
			for _, n := range s.Cited {
				runs = append(runs, textRun{marker: n})
			}
			parts = append(parts, w.sentence(runs, s.Claim))
		}
		out = append(out, h.Fill(`<p lang="" dir="auto">{}</p>`, h.Join(parts...)))
	}
	return h.Lines(out...)
}

// markdown is CommonMark with tables, deletions and markers. It has no HTML, which is
// text, and no link reference definitions: a line "[1]: https://…" in an answer must
// not turn its markers into links.
var answerParser = parser.NewParser(append(mdtable.Options(),
	parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(parser.NewBlockquoteParser(), 800),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	),
	parser.WithInlineParsers(
		util.Prioritized(parser.NewCodeSpanParser(), 100),
		util.Prioritized(markerParser{}, 150), // before links, so that "[1](…)" is a marker
		util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300),
		util.Prioritized(parser.NewEmphasisParser(), 500),
		util.Prioritized(extension.NewStrikethroughParser(), 500),
	),
)...)

func parseAnswer(source []byte, citations int) ast.Node {
	pc := parser.NewContext()
	pc.Set(citationsKey, citations)
	return answerParser.Parse(text.NewReader(source), parser.WithContext(pc))
}

var citationsKey = parser.NewContextKey()

type marker struct {
	ast.BaseInline
	number      int
	start, stop int // in the source
}

var markerKind = ast.NewNodeKind("Marker")

// Kind implements ast.Node.
func (*marker) Kind() ast.NodeKind { return markerKind }

// Dump implements ast.Node.
func (m *marker) Dump(source []byte, level int) { ast.DumpHelper(m, source, level, nil, nil) }

type markerParser struct{}

// Trigger implements parser.InlineParser.
func (markerParser) Trigger() []byte { return []byte{'['} }

// Parse implements parser.InlineParser.
func (markerParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, segment := block.PeekLine()
	const longest = len("[123456789]")
	citations, _ := pc.Get(citationsKey).(int)
	n, size := Marker(string(line[:min(len(line), longest)]), citations)
	if n == 0 {
		return nil
	}
	block.Advance(size)
	return &marker{number: n, start: segment.Start, stop: segment.Start + size}
}

// maxDepth is how deep lists and quotes are nested; what is deeper stands at that depth.
const maxDepth = 16

func (w *answerWriter) document(markdown string) h.Node {
	if len(markdown) > maxMarkdown {
		return w.plain()
	}
	w.source = []byte(markdown)
	return h.Lines(w.blocks(parseAnswer(w.source, len(w.res.Citations)), 0)...)
}

func (w *answerWriter) blocks(n ast.Node, depth int) []h.Node {
	var out []h.Node
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		out = append(out, w.block(c, depth)...)
	}
	return out
}

// headings are the headings of a page whose own ones are h1 and h2, by their level.
var headings = []h.Literal{`<h3 lang="" dir="auto">{}</h3>`, `<h4 lang="" dir="auto">{}</h4>`, `<h5 lang="" dir="auto">{}</h5>`, `<h6 lang="" dir="auto">{}</h6>`}

// block is one block. It is several where it is nested too deep.
func (w *answerWriter) block(n ast.Node, depth int) []h.Node {
	switch n := n.(type) {
	case *ast.Heading:
		return w.textual(headings[min(n.Level, len(headings))-1], n)
	case *ast.Blockquote, *ast.List:
		if depth >= maxDepth {
			return w.blocks(n, depth)
		}
		if list, ok := n.(*ast.List); ok {
			return []h.Node{w.list(list, depth+1)}
		}
		return []h.Node{listed(`<blockquote>{}</blockquote>`, w.blocks(n, depth+1))}
	case *ast.ListItem: // of a list that is too deep
		return w.blocks(n, depth)
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		return []h.Node{w.verbatim(n)}
	case *ast.ThematicBreak:
		return []h.Node{h.Fill(`<hr>`)}
	case *extast.Table:
		return []h.Node{w.table(n)}
	}
	return w.textual(`<p lang="" dir="auto">{}</p>`, n)
}

// textual is a block of text as an element; nothing stays nothing.
func (w *answerWriter) textual(form h.Literal, n ast.Node) []h.Node {
	text := w.text(n)
	return []h.Node{h.If(!text.Empty(), form, text)}
}

func (w *answerWriter) text(n ast.Node) h.Node {
	from, to := 0, 0
	if lines := n.Lines(); lines.Len() > 0 {
		from, to = lines.At(0).Start, lines.At(lines.Len()-1).Stop
	}
	return w.sentences(w.runs(n, textRun{}), from, to)
}

func (w *answerWriter) list(n *ast.List, depth int) h.Node {
	var items []h.Node
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		var parts []h.Node
		for b := c.FirstChild(); b != nil; b = b.NextSibling() {
			if _, ok := b.(*ast.TextBlock); ok { // of a tight list
				parts = append(parts, w.text(b))
				continue
			}
			parts = append(parts, w.block(b, depth)...)
		}
		items = append(items, h.Fill(`<li lang="" dir="auto">{}</li>`, h.Lines(parts...)))
	}
	if !n.IsOrdered() {
		return listed(`<ul>{}</ul>`, items)
	}
	return h.Fill(`<ol{}>
{}</ol>`, h.If(n.Start != 1, ` start="{}"`, n.Start), h.Lines(items...))
}

// verbatim is code, to the character.
func (w *answerWriter) verbatim(n ast.Node) h.Node {
	var b strings.Builder
	lines := n.Lines()
	for i := range lines.Len() {
		segment := lines.At(i)
		b.Write(segment.Value(w.source))
	}
	return h.Fill(`<pre role="group" aria-label="code" tabindex="0"><code>{}</code></pre>`, h.Exact(b.String()))
}

// table may be wider than the page: it is scrolled by itself, with a keyboard, too.
func (w *answerWriter) table(n *extast.Table) h.Node {
	var head, rows []h.Node
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		_, first := row.(*extast.TableHeader)
		form := h.Literal(`<td lang="" dir="auto">{}</td>`)
		if first {
			form = `<th lang="" dir="auto">{}</th>`
		}
		var cells []h.Node
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			cells = append(cells, h.Fill(form, w.text(c)))
		}
		if tr := h.Fill(`<tr>{}</tr>`, h.Join(cells...)); first {
			head = append(head, tr)
		} else {
			rows = append(rows, tr)
		}
	}
	return h.Fill(`<div role="group" aria-label="table" tabindex="0" class="table"><table>
{}</table></div>`, h.Lines(h.Fill(`<thead>{}</thead>`, h.Join(head...)), listed(`<tbody>{}</tbody>`, rows)))
}
