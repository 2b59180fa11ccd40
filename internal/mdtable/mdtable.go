// Package mdtable bounds the tables of Markdown. A parser fills every row of a table up
// to the length of its head, so that ten kilobytes, a wide head and many rows of one
// character, become millions of cells and hundreds of megabytes. Here a paragraph
// becomes a table only if it would have no more cells than bytes, as in every table that a person
// wrote; any other stays text.
//
// It owns that rule alone: what a table is, is goldmark's.
package mdtable

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Options are goldmark's extension of tables with the bound, for parsing alone.
func Options() []parser.Option {
	return []parser.Option{
		parser.WithParagraphTransformers(util.Prioritized(bounded{extension.NewTableParagraphTransformer()}, 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	}
}

// bounded makes tables of paragraphs that are not mostly made of nothing.
type bounded struct{ parser.ParagraphTransformer }

// few is how many cells any table may have.
const few = 1000

// Transform implements parser.ParagraphTransformer.
func (b bounded) Transform(n *ast.Paragraph, reader text.Reader, pc parser.Context) {
	lines, columns, size := n.Lines(), 0, 0
	for i := range lines.Len() {
		segment := lines.At(i)
		line := segment.Value(reader.Source())
		size += len(line)
		if len(bytes.Trim(line, "|-: \t\r\n")) == 0 { // the line below a head, which says how many columns there are
			columns = max(columns, bytes.Count(line, []byte{'|'})+1)
		}
	}
	if cells := columns * lines.Len(); cells > max(few, size) {
		return
	}
	b.ParagraphTransformer.Transform(n, reader, pc)
}
