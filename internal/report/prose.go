package report

import (
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mdtable"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
)

// This part is an answer as HTML that is safe to put into a page and whose sentences lead
// to their citations. Text from outside stays text: the parser knows no raw HTML and no
// reference definitions, and what it found is written by package markup, in which only
// constants of the source are markup. Nothing of it runs, loads or sends anything. A link
// leads to http or https, says to which host, and tells the other side nothing; an image is
// its description in brackets.
//
//	prose.go         what there is to call
//	prose_inline.go  the text of a block, as runs and sentences
//	prose_block.go   paragraphs, lists, tables and the like

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
