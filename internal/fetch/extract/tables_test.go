package extract

import (
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// cellsIn counts the cells of a document.
func cellsIn(t *testing.T, m goldmark.Markdown, src string) int {
	t.Helper()
	n := 0
	err := ast.Walk(m.Parser().Parse(text.NewReader([]byte(src))), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering && node.Kind() == extast.KindTableCell {
			n++
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTablesThatPeopleWrite(t *testing.T) {
	ours, theirs := goldmark.New(goldmark.WithParserOptions(boundedTables()...)), goldmark.New(goldmark.WithExtensions(extension.Table))
	for name, src := range map[string]string{
		"small":         "a | b\n--|--\n1 | 2\n",
		"long":          "|a|b|c|\n|-|-|-|\n" + strings.Repeat("|1|2|3|\n", 5000),
		"short rows":    "|a|b|c|d|e|f|\n|-|-|-|-|-|-|\n" + strings.Repeat("|x\n", 100),
		"empty cells":   "|a|b|c|d|\n|-|-|-|-|\n" + strings.Repeat("|||||\n", 2000),
		"a row too far": "|a|b|\n|-|-|\n|1|2|" + strings.Repeat("x|", 3000) + "\n|1|2|\n",
		"none":          "a | b, and a - c\n\n---\n",
		"two":           "|a|\n|-|\n|1|\n\ntext\n\n|b|c|\n|:-|-:|\n|2|3|\n",
	} {
		if got, want := cellsIn(t, ours, src), cellsIn(t, theirs, src); got != want {
			t.Errorf("%s: %d cells, want %d", name, got, want)
		}
	}
}

func TestTablesOfNothing(t *testing.T) {
	m := goldmark.New(goldmark.WithParserOptions(boundedTables()...))
	for name, src := range map[string]string{
		"wide head":  strings.Repeat("|a", 1500) + "\n" + strings.Repeat("|-", 1500) + "\n" + strings.Repeat("|b\n", 1500),
		"after text": "words\nmore\n" + strings.Repeat("|a", 1500) + "\n" + strings.Repeat("|-", 1500) + "\n" + strings.Repeat("b\n", 1500),
		"aligned":    strings.Repeat("|a", 900) + "\n" + strings.Repeat("| :-: ", 900) + "\n" + strings.Repeat("b\n", 9000),
		"in a list":  "- " + strings.Repeat("|a", 1500) + "\n  " + strings.Repeat("|-", 1500) + "\n" + strings.Repeat("  |b\n", 1500),
	} {
		if got := cellsIn(t, m, src); got > len(src) {
			t.Errorf("%s: %d bytes became %d cells", name, len(src), got)
		}
	}
}
