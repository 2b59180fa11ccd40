package extract

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	readability "codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// maxTreeBytes and maxTreeTags bound a page that is parsed into a tree, which takes many times its size: half a kilobyte for a tag of three bytes.
	maxTreeBytes, maxTreeTags = 16 << 20, 100_000
	// maxReadable is the largest tree, in elements, that readability sees: its passes are not linear.
	maxReadable = 60_000
	// An article shorter than minPruned characters after pruning is used unpruned; one shorter than minArticle is no article, and the whole body is read.
	minPruned, minArticle = 250, 120
)

// readHTML finds the main text of a page. Readability picks the article, prune takes out what is not prose. A page too deep or too large to be parsed is read as
// a stream of tokens.
func readHTML(s source, doc *Document) error {
	src := s.text()
	root, err := parseHTML(src)
	if err != nil {
		doc.Text, doc.Title = htmlTokens(src)
		return nil
	}
	base := pageBase(root, s.name)
	pageMetadata(root, base, doc)
	removeHidden(root)
	headings := headingsUnder(root)
	pageLinks := linksUnder(root, base)
	if countElements(root) <= maxReadable {
		doc.Text = articleText(root, base, doc)
	}
	if textLength(doc.Text) < minArticle {
		doc.Text = wholeBody(src)
	}
	doc.Title = withoutSite(doc.Title, headings)
	doc.Links = append(doc.Links, pageLinks...)
	return nil
}

// parseHTML refuses what the parser cannot nest and what is too large for a tree.
func parseHTML(src string) (root *html.Node, err error) {
	if n := strings.Count(src, "<"); len(src) > maxTreeBytes || n > maxTreeTags {
		return nil, fmt.Errorf("page of %d bytes with %d tags: %w", len(src), n, ErrTooLarge)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("parse html: %v", p)
		}
	}()
	return html.Parse(strings.NewReader(src))
}

// articleText runs readability on the tree, which it changes, and returns the article's text or "" when there is none.
func articleText(root *html.Node, base *url.URL, doc *Document) string {
	parser := readability.NewParser()
	article, err := parser.ParseAndMutate(root, base)
	if err != nil {
		return ""
	}
	if t := strings.TrimSpace(article.Title()); t != "" {
		doc.Title = t
	}
	if doc.Author == "" {
		doc.Author, _, _ = strings.Cut(bylinePrefix.ReplaceAllString(article.Byline(), ""), "\n")
	}
	if article.Node == nil {
		return ""
	}
	doc.Links = linksUnder(article.Node, base)
	full := htmlText(article.Node)
	prune(article.Node)
	if text := htmlText(article.Node); textLength(text) >= minPruned {
		return text
	}
	return full
}

// wholeBody is the text of a page without its furniture, or with it when nothing else is there.
func wholeBody(src string) string {
	root, err := parseHTML(src)
	if err != nil {
		return ""
	}
	removeHidden(root)
	body := findElement(root, atom.Body)
	if body == nil {
		return ""
	}
	all := htmlText(body)
	prune(body)
	if text := htmlText(body); textLength(text) >= minArticle {
		return text
	}
	return all
}

// textLength counts bytes that are not white space, enough to tell an article from a remnant in any script.
func textLength(s string) int {
	n := 0
	for _, f := range strings.Fields(s) {
		n += len(f)
	}
	return n
}

// htmlFragment gives the text and links of HTML inside another format.
func htmlFragment(src string) (string, []string) {
	root, err := parseHTML(src)
	if err != nil {
		text, _ := htmlTokens(src)
		return text, nil
	}
	removeHidden(root)
	return htmlText(root), linksUnder(root, nil)
}

// htmlTokens strips the tags of a page that cannot be parsed into a tree, and leaves out what is hidden as far as that can be told without one.
func htmlTokens(src string) (text, title string) {
	z := html.NewTokenizer(strings.NewReader(src))
	z.SetMaxBuf(maxTreeBytes)
	r := tokenReader{}
	for {
		kind := z.Next()
		switch kind {
		case html.ErrorToken:
			return r.out.b.String(), r.title
		case html.TextToken:
			r.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			r.out.owe(breaks[t.DataAtom])
			if kind == html.StartTagToken && !void[t.DataAtom] {
				r.open(t)
			}
		case html.EndTagToken:
			t := z.Token()
			r.out.owe(breaks[t.DataAtom])
			r.close(t.Data)
		}
	}
}

// tokenReader follows the tags of a page. Inside an element that is left out it counts only elements of the same name, so that it finds the end.
type tokenReader struct {
	out   textWriter
	sheet sheet
	title string
	at    atom.Atom // the last start tag, 0 after an end tag
	skip  string    // the name of the element that is left out, or ""
	depth int       // open elements of that name
}

func (r *tokenReader) text(s string) {
	switch {
	case r.at == atom.Style:
		r.sheet.Add(s)
	case r.skip != "":
	case r.at == atom.Title:
		r.title += s
	default:
		r.out.words(s)
	}
}

func (r *tokenReader) open(t html.Token) {
	if r.at = t.DataAtom; r.at == atom.Body {
		r.skip = "" // whatever the head left open
	}
	if r.skip == t.Data && !selfEnding[r.at] {
		r.depth++
		return
	}
	if r.skip == "" || r.skip == t.Data {
		r.skip = ""
		if r.at != atom.Head && r.at != atom.Style && (invisible[r.at] || r.sheet.Hides(t.Data, t.Attr)) {
			r.skip, r.depth = t.Data, 1
		}
	}
}

func (r *tokenReader) close(name string) {
	r.at = 0
	if r.skip == name {
		if r.depth--; r.depth == 0 {
			r.skip = ""
		}
	}
}

// void elements have no end tag, and selfEnding ones are ended by the next of their kind.
var (
	void = map[atom.Atom]bool{
		atom.Area: true, atom.Base: true, atom.Br: true, atom.Col: true, atom.Embed: true, atom.Hr: true, atom.Img: true, atom.Input: true, atom.Link: true,
		atom.Meta: true, atom.Param: true, atom.Source: true, atom.Track: true, atom.Wbr: true,
	}
	selfEnding = map[atom.Atom]bool{
		atom.P: true, atom.Li: true, atom.Dt: true, atom.Dd: true, atom.Option: true, atom.Tr: true, atom.Td: true, atom.Th: true,
	}
)

// furniture are elements that hold no prose of an article.
var furniture = map[atom.Atom]bool{
	atom.Figcaption: true, atom.Nav: true, atom.Footer: true, atom.Aside: true, atom.Form: true, atom.Button: true,
	atom.Time: true, atom.Select: true, atom.Noscript: true, atom.Dialog: true,
}

// linkLimit is the share of link text from which a block counts as navigation. Lists are navigation sooner.
var linkLimit = map[atom.Atom]float64{
	atom.P: 0.8, atom.Li: 0.8, atom.Div: 0.8, atom.Section: 0.8, atom.H2: 0.8, atom.H3: 0.8, atom.H4: 0.8, atom.H5: 0.8, atom.H6: 0.8,
	atom.Td: 0.8, atom.Dd: 0.8, atom.Dt: 0.8, atom.Figure: 0.8, atom.Header: 0.8, atom.Ul: 0.5, atom.Ol: 0.5,
}

// prune removes furniture and blocks that consist of links from below n; n itself stays. The shares are those of the tree as given, whatever is removed inside.
func prune(n *html.Node) {
	pruneUnder(n, linkShares(n), false)
}

// pruneUnder knows when it is inside a paragraph: there a date is part of the sentence, and a sentence is kept whole.
func pruneUnder(n *html.Node, shares map[*html.Node]share, inProse bool) {
	inProse = inProse || n.DataAtom == atom.P
	for _, c := range slices.Collect(n.ChildNodes()) {
		limit, block := linkLimit[c.DataAtom]
		s := shares[c]
		switch {
		case c.Type == html.ElementNode && furniture[c.DataAtom] && !(inProse && c.DataAtom == atom.Time):
			n.RemoveChild(c)
		case c.Type == html.ElementNode && block && s.text > 0 && float64(s.link) >= limit*float64(s.text):
			n.RemoveChild(c)
		default:
			pruneUnder(c, shares, inProse)
		}
	}
}

// share counts the characters of an element's text and of the links in it, white space left out.
type share struct{ text, link int }

// linkShares counts once for the whole tree: asking each block anew would be quadratic in depth.
func linkShares(root *html.Node) map[*html.Node]share {
	shares := make(map[*html.Node]share)
	var count func(n *html.Node, inLink bool) share
	count = func(n *html.Node, inLink bool) share {
		var s share
		if n.Type == html.TextNode {
			s.text = textLength(n.Data)
			if inLink {
				s.link = s.text
			}
			return s
		}
		if invisible[n.DataAtom] {
			return s
		}
		inLink = inLink || n.DataAtom == atom.A
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			k := count(c, inLink)
			s.text += k.text
			s.link += k.link
		}
		shares[n] = s
		return s
	}
	count(root, false)
	return shares
}

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
	return w.b.String()
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
