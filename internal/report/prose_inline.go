package report

import (
	"bufio"
	"bytes"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	gohtml "github.com/yuin/goldmark/renderer/html"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
)

type answerWriter struct {
	res    *marchwarden.Result
	claims *Finder
	source []byte
	scrap  bytes.Buffer
}

type look uint8

const (
	asCode look = 1 << iota
	deleted
	emphasised
	strong
)

// textRun is a part of a block: text of one look, a marker, or the end of a line. Runs
// are flat, so that a sentence may begin and end within emphasis or a link.
type textRun struct {
	text        string
	look        look
	link        *h.Link
	aside       bool // said about the text, and no part of it
	marker      int
	start, stop int // of a marker in the source
	ends        bool
}

func (w *answerWriter) runs(n ast.Node, now textRun) []textRun {
	var out []textRun
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		out = append(out, w.inline(c, now)...)
	}
	return out
}

// inline is one node as runs that look and lead as the run that is given.
func (w *answerWriter) inline(n ast.Node, now textRun) []textRun {
	switch n := n.(type) {
	case *marker:
		return []textRun{{marker: n.number, start: n.start, stop: n.stop}}
	case *ast.Text:
		return w.words(n, now)
	case *ast.CodeSpan:
		now.look |= asCode
	case *ast.Emphasis:
		now.look |= []look{emphasised, strong}[min(n.Level, 2)-1]
	case *extast.Strikethrough:
		now.look |= deleted
	case *ast.Link:
		return w.link(w.runs(n, now), string(n.Destination), now)
	case *ast.AutoLink:
		return w.autolink(n, now)
	case *ast.Image:
		now.text = edged("[" + strings.TrimSuffix("image: "+spokenText(w.runs(n, now)), ": ") + "]")
		return []textRun{now}
	}
	return w.runs(n, now)
}

func (w *answerWriter) words(n *ast.Text, now textRun) []textRun {
	now.text = string(n.Segment.Value(w.source))
	if !n.IsRaw() {
		now.text = w.resolve(now.text)
	}
	now.text = edged(now.text)
	switch {
	case n.HardLineBreak():
		return []textRun{now, {ends: true}}
	case n.SoftLineBreak():
		now.text += " "
	}
	return []textRun{now}
}

// resolve gives what the parser's own answerWriter makes of a text, as text.
func (w *answerWriter) resolve(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	w.scrap.Reset()
	out := bufio.NewWriter(&w.scrap)
	gohtml.DefaultWriter.Write(out, []byte(s))
	_ = out.Flush() // to memory
	return html.UnescapeString(w.scrap.String())
}

// edged is plaintext.Fold with a space kept at either end.
func edged(s string) string {
	s = plaintext.Fold("|" + s + "|")
	return s[1 : len(s)-1]
}

// maxShown is how much of an address that is no link is shown, in characters.
const maxShown = 200

// link is a link with its host, or text with the address if it leads nowhere that a link may lead.
func (w *answerWriter) link(label []textRun, destination string, now textRun) []textRun {
	destination = w.resolve(destination)
	to, ok := h.Web(destination)
	if now.aside = true; !ok {
		if now.text = plaintext.Line(destination, maxShown); now.text == "" {
			return label
		}
		now.text = " (" + now.text + ")"
		return append(label, now)
	}
	if plaintext.Fold(spokenText(label)) == "" { // an invisible text is no label, also where a sentence ends within it
		label = slices.DeleteFunc(label, func(r textRun) bool { return r.marker == 0 && !r.ends && !r.aside })
		named := now
		named.text, named.aside = to.Address(), false
		label = append(label, named)
	}
	for i := range label {
		if label[i].marker == 0 && !label[i].ends && !label[i].aside {
			label[i].link = &to
		}
	}
	if spokenText(label) != to.Address() {
		now.text = " (" + locator.Host(to.Address()) + ")"
		label = append(label, now)
	}
	return label
}

// autolink is an address between angle brackets, which stay where it is no link.
func (w *answerWriter) autolink(n *ast.AutoLink, now textRun) []textRun {
	label := string(n.Label(w.source))
	if n.AutoLinkType == ast.AutoLinkURL {
		if _, ok := h.Web(label); ok {
			now.text = edged(label)
			return w.link([]textRun{now}, strings.ReplaceAll(strings.ReplaceAll(label, `\`, `\\`), "&", "&amp;"), textRun{})
		}
	}
	now.text = edged("<" + label + ">")
	return []textRun{now}
}

func spokenText(runs []textRun) string {
	var b strings.Builder
	for _, r := range runs {
		switch {
		case r.marker > 0:
			fmt.Fprintf(&b, "[%d]", r.marker)
		case r.ends:
			b.WriteByte(' ')
		case !r.aside:
			b.WriteString(r.text)
		}
	}
	return b.String()
}

// sentences are the runs of a block from one byte of the source to another.
func (w *answerWriter) sentences(runs []textRun, from, to int) h.Node {
	pieces := make([]Piece, len(runs))
	for i, r := range runs {
		if pieces[i].Marker = r.marker; !r.aside {
			pieces[i].Text = r.text
		}
	}
	var out []h.Node
	first := 0
	for _, end := range Ends(pieces) {
		own := runs[first:end]
		stop, next := to, to // of the text, and of the whole sentence
		for _, r := range own {
			if r.marker > 0 {
				stop, next = min(stop, r.start), r.stop
			}
		}
		own, claim := w.claim(own, string(w.source[from:max(from, stop)]))
		out = append(out, w.sentence(own, claim))
		first, from = end, next
	}
	return h.Join(out...)
}

// claim is the claim that a sentence is, or 0, and how the sentence is shown. Claims
// are plain text. A sentence that is one as it is written, but for its escapes, is
// shown like that, whatever Markdown would make of it.
func (w *answerWriter) claim(runs []textRun, source string) ([]textRun, int) {
	written := Plain(source, len(w.res.Citations))
	words := slices.DeleteFunc(slices.Clone(runs), func(r textRun) bool { return r.marker > 0 })
	rendered := plaintext.Fold(spokenText(words))
	if written != "" {
		if n := w.claims.Find(written); n > 0 {
			if written != rendered {
				runs = reworded(runs, written)
			}
			return runs, n
		}
	}
	if rendered == "" {
		return runs, 0
	}
	return runs, w.claims.Find(rendered)
}

// reworded is a sentence with another text before its markers, and the space that it had around it.
func reworded(runs []textRun, text string) []textRun {
	if strings.HasPrefix(runs[0].text, " ") {
		text = " " + text
	}
	out := []textRun{{text: text + " "}}
	for _, r := range runs {
		if r.marker > 0 {
			out = append(out, r)
		}
	}
	if strings.TrimLeft(runs[len(runs)-1].text, " ") == "" {
		out = append(out, textRun{text: runs[len(runs)-1].text})
	}
	return out
}

func (w *answerWriter) sentence(runs []textRun, claim int) h.Node {
	var cited []int
	blank := true
	for _, r := range runs {
		if r.marker > 0 {
			cited = append(cited, r.marker)
		} else if !r.aside && strings.TrimSpace(r.text) != "" {
			blank = false
		}
	}
	if blank || claim == 0 && len(cited) == 0 {
		return set(runs)
	}
	head, tail := trim(runs)
	body := set(runs)
	class, number, source := "sentence", h.Node{}, h.Node{}
	if claim > 0 {
		c := w.res.Claims[claim-1]
		verdict := Verdict(c.Support)
		class += " " + verdict
		number = h.Fill(` data-claim="{}"`, claim)
		body = h.Join(body, h.Text(" "), badge(verdict))
		for _, n := range c.Citations {
			if n >= 1 && n <= len(w.res.Citations) {
				cited = append(cited, n) // where it has no marker of its own
			}
		}
	}
	if len(cited) > 0 {
		source = h.Fill(` data-source="{}"`, cited[0])
	}
	return h.Join(head, h.Fill(`<span class="{}"{}{}>{}</span>`, class, number, source, body), tail)
}

// trim takes the space at either end of a sentence out of its runs.
func trim(runs []textRun) (head, tail h.Node) {
	first, last := &runs[0], &runs[len(runs)-1]
	if s, ok := strings.CutPrefix(first.text, " "); ok && !first.aside {
		first.text, head = s, h.Text(" ")
	}
	if s, ok := strings.CutSuffix(last.text, " "); ok {
		last.text, tail = s, h.Text(" ")
	}
	return head, tail
}

// set is runs as they are shown. What leads to the same place is one link.
func set(runs []textRun) h.Node {
	var out []h.Node
	for i := 0; i < len(runs); {
		to, first := runs[i].link, i
		var parts []h.Node
		for ; i < len(runs) && runs[i].link == to; i++ {
			parts = append(parts, runs[i].node())
		}
		if to != nil && plaintext.Fold(spokenText(runs[first:i])) != "" {
			parts = []h.Node{h.Away(*to, h.Join(parts...))}
		}
		out = append(out, parts...)
	}
	return h.Join(out...)
}

func (r textRun) node() h.Node {
	switch {
	case r.marker > 0:
		return h.Fill(`<a href="{}" class="cite" data-source="{}" aria-label="source {}">[{}]</a>`, h.Again("source", r.marker, "source"), r.marker, r.marker, r.marker)
	case r.ends:
		return h.Fill(`<br>`)
	case r.text == "":
		return h.Node{}
	case r.aside:
		return h.Fill(`<span class="host">{}</span>`, r.text)
	}
	out := h.Text(r.text)
	for i, form := range []h.Literal{`<code>{}</code>`, `<del>{}</del>`, `<em>{}</em>`, `<strong>{}</strong>`} {
		if r.look&(1<<i) != 0 {
			out = h.Fill(form, out)
		}
	}
	return out
}
