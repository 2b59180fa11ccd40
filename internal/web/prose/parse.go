package prose

import (
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/cells"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
)

// markdown is CommonMark with tables, deletions and markers. It has no HTML, which is
// text, and no link reference definitions: a line "[1]: https://…" in an answer must
// not turn its markers into links.
var markdown = parser.NewParser(append(cells.Options(),
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
		util.Prioritized(markers{}, 150), // before links, so that "[1](…)" is a marker
		util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300),
		util.Prioritized(parser.NewEmphasisParser(), 500),
		util.Prioritized(extension.NewStrikethroughParser(), 500),
	),
)...)

// parse reads Markdown with markers of so many citations.
func parse(source []byte, citations int) ast.Node {
	pc := parser.NewContext()
	pc.Set(citationsKey, citations)
	return markdown.Parse(text.NewReader(source), parser.WithContext(pc))
}

var citationsKey = parser.NewContextKey()

// marker is a marker of a citation.
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

// markers finds them.
type markers struct{}

// Trigger implements parser.InlineParser.
func (markers) Trigger() []byte { return []byte{'['} }

// Parse implements parser.InlineParser.
func (markers) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, segment := block.PeekLine()
	const longest = len("[123456789]")
	citations, _ := pc.Get(citationsKey).(int)
	n, size := report.Marker(string(line[:min(len(line), longest)]), citations)
	if n == 0 {
		return nil
	}
	block.Advance(size)
	return &marker{number: n, start: segment.Start, stop: segment.Start + size}
}
