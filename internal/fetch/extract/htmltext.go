package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// breaks tells how many newlines stand before and after an element; inline elements have none.
var breaks = map[atom.Atom]int{
	atom.P: 2, atom.Div: 2, atom.Section: 2, atom.Article: 2, atom.Main: 2, atom.Header: 2, atom.Footer: 2, atom.Aside: 2, atom.Nav: 2, atom.Address: 2,
	atom.H1: 2, atom.H2: 2, atom.H3: 2, atom.H4: 2, atom.H5: 2, atom.H6: 2, atom.Hgroup: 2, atom.Blockquote: 2, atom.Pre: 2, atom.Figure: 2, atom.Figcaption: 2,
	atom.Ul: 2, atom.Ol: 2, atom.Dl: 2, atom.Table: 2, atom.Form: 2, atom.Fieldset: 2, atom.Details: 2, atom.Summary: 2, atom.Hr: 2, atom.Center: 2, atom.Body: 2,
	atom.Li: 1, atom.Dt: 1, atom.Dd: 1, atom.Tr: 1, atom.Br: 1, atom.Caption: 1, atom.Option: 1, atom.Legend: 1,
}

// invisible are elements whose content is never shown as text.
var invisible = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Iframe: true, atom.Object: true, atom.Svg: true,
	atom.Head: true, atom.Textarea: true, atom.Datalist: true, atom.Noframes: true, atom.Noembed: true, atom.Canvas: true, atom.Audio: true, atom.Video: true,
}

// textWriter lays out words: white space folds to one space, and breaks that are owed are paid before the next word.
type textWriter struct {
	b     strings.Builder
	owed  int
	space bool
}

// String returns what was written.
func (w *textWriter) String() string { return w.b.String() }

func (w *textWriter) owe(newlines int) { w.owed = max(w.owed, newlines) }

func (w *textWriter) pay() {
	switch {
	case w.b.Len() == 0:
	case w.owed > 0:
		w.b.WriteString("\n\n"[:w.owed])
	case w.space:
		w.b.WriteByte(' ')
	}
	w.owed, w.space = 0, false
}

// words writes running text. A no-break space counts as a space and a soft hyphen as nothing: both are about layout.
func (w *textWriter) words(s string) {
	for _, r := range s {
		switch r {
		case ' ', '\t', '\n', '\r', '\f', '\u00a0':
			w.space = true
		case '\u00ad':
		default:
			w.pay()
			w.b.WriteRune(r)
		}
	}
}

// verbatim writes preformatted text with its own line ends.
func (w *textWriter) verbatim(s string) {
	if s != "" {
		w.pay()
		w.b.WriteString(s)
	}
}

// htmlText is the text of a tree: blocks apart by blank lines, list items and table rows on lines of their own.
func htmlText(n *html.Node) string {
	w := &textWriter{}
	w.node(n, false)
	return w.String()
}

func (w *textWriter) node(n *html.Node, pre bool) {
	if n.Type == html.TextNode {
		if pre {
			w.verbatim(n.Data)
		} else {
			w.words(n.Data)
		}
		return
	}
	if n.Type == html.ElementNode && invisible[n.DataAtom] {
		return
	}
	w.owe(breaks[n.DataAtom])
	switch {
	case n.DataAtom == atom.Br && pre:
		w.verbatim("\n")
	case n.DataAtom == atom.Tr && isDataRow(n):
		w.row(n)
	default:
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.DataAtom == atom.Td || c.DataAtom == atom.Th { // a cell that lays out a page
				w.owe(2)
			}
			w.node(c, pre || n.DataAtom == atom.Pre)
		}
	}
	w.owe(breaks[n.DataAtom])
}

// row writes the cells of a data table's row on one line.
func (w *textWriter) row(tr *html.Node) {
	var cells []string
	for c := tr.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode {
			cells = append(cells, strings.Join(strings.Fields(htmlText(c)), " "))
		}
	}
	w.words(strings.TrimRight(strings.Join(cells, " | "), " |"))
}

// isDataRow tells the row of a data table from one that arranges a page: it has two cells or more and none holds blocks of text.
func isDataRow(tr *html.Node) bool {
	cells := 0
	for c := tr.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom != atom.Td && c.DataAtom != atom.Th {
			continue
		}
		cells++
		blocks := 0
		for d := range c.Descendants() {
			switch d.DataAtom {
			case atom.Table, atom.H1, atom.H2, atom.H3, atom.Article, atom.Section:
				return false
			case atom.P, atom.Div, atom.Ul, atom.Ol, atom.Blockquote, atom.Pre:
				if blocks++; blocks > 2 {
					return false
				}
			}
		}
	}
	return cells >= 2
}
