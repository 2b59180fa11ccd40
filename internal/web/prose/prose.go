// Package prose is an answer, and other Markdown, as HTML that is safe to put into a
// page and whose sentences lead to their citations.
//
// Text from outside stays text. Three things stand one behind the other: the parser
// knows no raw HTML and no reference definitions; what it found is written by package
// markup, in which only that package's own constants are markup; and a sanitizer with
// a list of what may pass has the last word. Nothing of it runs, loads
// or sends anything. A link leads to http or https, says to which host, and tells the
// other side nothing; an image is its description in brackets.
//
// What a sentence is, what a marker and which claim, is package answer's to say. The
// look of the classes is the page's.
//
//	prose.go   what there is to call
//	parse.go   Markdown, with markers in it
//	inline.go  the text of a block, as runs and sentences
//	block.go   paragraphs, lists, tables and the like
//	policy.go  what may pass
package prose

import (
	"html/template"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
)

// maxMarkdown is the longest text, in bytes, that is read as Markdown. Some inputs
// cost the parser quadratic time; at this length that is half a second. In what is
// longer, markup is text; markers are found in it all the same, and an answer that
// the gate wrote reads the same either way.
const maxMarkdown = 32 << 10

// Answer is the answer of a result. A sentence with markers, or with a claim, is
//
//	<span class="sentence partial" data-claim="2" data-source="1">text
//	<a href="?source=1#source" class="cite" data-source="1" aria-label="source 1">[1]</a>
//	<span class="verdict partial">partial</span></span>
//
// where the claim, its verdict and the word for it are there if the sentence is a
// claim, and data-source is its first citation. It is blocks, to be put into an
// element of the page; headings begin at h3. Equal results give equal bytes.
func Answer(res *marchwarden.Result) template.HTML {
	body := (&writer{res: res, claims: report.Claims(res.Claims)}).document(res.Answer)
	if body.Empty() {
		body = h.El(h.P, nil, h.Text(report.None))
	}
	return safe(body)
}

// safe is the only way out of this package.
func safe(n h.Node) template.HTML { return template.HTML(policy.Sanitize(n.String())) }

// plain is an answer in which markup is text.
func (w *writer) plain() h.Node {
	var out []h.Node
	for _, paragraph := range report.Sentences(w.res) {
		var parts []h.Node
		for i, s := range paragraph {
			if i > 0 {
				parts = append(parts, h.Text(" "))
			}
			runs := []run{{text: strings.TrimLeft(s.Text+" ", " ")}}
			for _, n := range s.Cited {
				runs = append(runs, run{marker: n})
			}
			parts = append(parts, w.sentence(runs, s.Claim))
		}
		out = append(out, h.El(h.P, h.Foreign(), parts...))
	}
	return h.Lines(out...)
}
