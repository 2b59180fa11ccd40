package report

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"

	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
)

// maxDepth is how deep lists and quotes are nested on a page. What is deeper stands at
// that depth.
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
