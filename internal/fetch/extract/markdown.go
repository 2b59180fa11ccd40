package extract

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"go.yaml.in/yaml/v3"
)

// markdownParser is shared: a goldmark parser keeps no state between documents.
var markdownParser = goldmark.New(goldmark.WithParserOptions(boundedTables()...), goldmark.WithExtensions(extension.Linkify, extension.Strikethrough, extension.TaskList, extension.Footnote, extension.DefinitionList)).Parser()

// maxFrontMatter bounds the block of metadata at the start of a Markdown file.
const maxFrontMatter = 64 << 10

// readMarkdown takes the marks within lines out of Markdown and leaves the words, and the signs of headings and items. Wrapped lines of one paragraph are joined by a space, so that a sentence is on one line.
func readMarkdown(s source, doc *Document) error {
	markdown(s.text(), s.lines, doc)
	return nil
}

func markdown(src string, lines *Lines, doc *Document) {
	whole := withLineEnds(src)
	body := frontMatter(whole, doc)
	lines.below(src, whole, len(whole)-len(body))
	if markdownCost(body) > maxMarkdownCost {
		lines.copied()
		doc.Text, doc.Links = body, linksInText(body)
		return
	}
	w := &markdownWriter{src: []byte(body), lines: lines}
	w.blocks(markdownParser.Parse(text.NewReader(w.src)), 0)
	doc.Text = w.out.String()
	doc.Links = w.links
	doc.Title = cmp.Or(doc.Title, w.title)
}

// maxMarkdownCost is about a second of parsing. Costlier input is no prose; it is kept with its marks.
const maxMarkdownCost = 400e6

// markdownCost estimates the work of the parser, which is quadratic in the brackets of a paragraph and in the depth of quotes and lists of a line.
func markdownCost(src string) float64 {
	var cost, brackets float64
	for line := range strings.SplitSeq(src, "\n") {
		body := strings.TrimLeft(line, " \t>-*+")
		if strings.TrimSpace(line) == "" {
			brackets = 0
			continue
		}
		depth, more := float64(len(line)-len(body)), float64(strings.Count(body, "["))
		cost += depth*depth + more*(2*brackets+more) // the sum over a paragraph is the square of its brackets
		brackets += more
	}
	return cost
}

// frontMatter reads the metadata between two lines of "---" (YAML) or "+++" (TOML) at the start and returns what follows. Without a closing line there is none.
func frontMatter(src string, doc *Document) string {
	fence, rest, ok := strings.Cut(src, "\n")
	if fence = strings.TrimRight(fence, " \t"); !ok || fence != "---" && fence != "+++" {
		return src
	}
	for at := 0; at < len(rest) && at < maxFrontMatter; {
		line, _, _ := strings.Cut(rest[at:], "\n")
		end := min(at+len(line)+1, len(rest))
		if line = strings.TrimRight(line, " \t"); line == fence || fence == "---" && line == "..." {
			fields := frontMatterFields(rest[:at])
			doc.Title, doc.Author = fields["title"], first(fields, "author", "authors")
			doc.Published = first(fields, "date", "published")
			if doc.URL = absoluteURL(nil, fields["url"]); doc.URL == "" {
				doc.URL = fields["source"]
			}
			return rest[end:]
		}
		at = end
	}
	return src
}

func first(fields map[string]string, keys ...string) string {
	for _, k := range keys {
		if fields[k] != "" {
			return fields[k]
		}
	}
	return ""
}

// frontMatterFields reads the scalar fields, and lists of scalars as "a, b". What is not YAML is read line by line: people write `title: A: B` and mean it.
func frontMatterFields(block string) map[string]string {
	fields := make(map[string]string)
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(block), &root); err != nil || len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode {
		for line := range strings.SplitSeq(block, "\n") {
			if i := strings.IndexAny(line, ":="); i > 0 {
				fields[strings.ToLower(strings.TrimSpace(line[:i]))] = strings.Trim(strings.TrimSpace(line[i+1:]), `"'`)
			}
		}
		return fields
	}
	pairs := root.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		var values []string
		for _, v := range append([]*yaml.Node{pairs[i+1]}, pairs[i+1].Content...) {
			if v.Kind == yaml.ScalarNode && v.Tag != "!!null" {
				values = append(values, v.Value)
			}
		}
		if pairs[i+1].Kind != yaml.MappingNode {
			fields[strings.ToLower(pairs[i].Value)] = strings.Join(values, ", ")
		}
	}
	return fields
}

// markdownWriter walks a Markdown tree. Nesting beyond maxNesting is written as one line, so that hostile input cannot exhaust the stack.
type markdownWriter struct {
	src   []byte
	out   strings.Builder
	links []string
	title string
	lines *Lines
	marks []mark // of the text that inline gave last
	sign  string // of a heading or an item, before the next paragraph
}

const maxNesting = 256

// blocks writes the children of n, one paragraph or line each.
func (w *markdownWriter) blocks(n ast.Node, depth int) {
	if depth > maxNesting {
		w.paragraph(w.inline(n), "\n")
		return
	}
	for c, i := n.FirstChild(), 0; c != nil; c, i = c.NextSibling(), i+1 {
		switch c := c.(type) {
		case *ast.Heading:
			s := w.inline(c)
			if w.title == "" && c.Level == 1 {
				w.title = s
			}
			w.sign = strings.Repeat("#", c.Level) + " "
			w.paragraph(s, "\n\n")
			w.sign = ""
		case *ast.Paragraph, *extast.DefinitionTerm:
			w.paragraph(w.inline(c), "\n\n")
		case *ast.TextBlock: // the text of a tight list item
			w.paragraph(w.inline(c), "\n")
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			w.code(c.Lines())
		case *ast.HTMLBlock:
			raw := c.Lines().Value(w.src)
			if c.HasClosure() {
				raw = append(bytes.Clone(raw), c.ClosureLine.Value(w.src)...)
			}
			fragment, links := htmlFragment(string(raw))
			w.links = append(w.links, links...)
			w.marks = nil // which line a word of the markup stands on is not known
			w.paragraph(fragment, "\n\n")
		case *extast.Table:
			w.table(c)
		case *ast.ThematicBreak, *ast.LinkReferenceDefinition:
		case *ast.ListItem:
			w.sign = "- "
			if l, ok := n.(*ast.List); ok && l.IsOrdered() {
				w.sign = strconv.Itoa(l.Start+i) + ". "
			}
			w.blocks(c, depth+1)
			w.sign = ""
		default: // lists, quotes, footnotes: containers
			w.blocks(c, depth+1)
			if c.Kind() == ast.KindList && c.Parent().Kind() != ast.KindListItem {
				w.out.WriteString("\n")
			}
		}
	}
}

// paragraph writes a text for which w.marks hold the lines, after the sign that is due.
func (w *markdownWriter) paragraph(s, end string) {
	cut := len(s) - len(strings.TrimLeft(s, "\n"))
	if s = strings.Trim(s, "\n"); strings.TrimSpace(s) != "" {
		w.lines.mark(w.out.Len(), 0)
		if len(w.marks) > 0 {
			w.lines.mark(w.out.Len(), w.marks[0].line)
		}
		w.out.WriteString(w.sign)
		w.sign = ""
		for _, m := range w.marks {
			w.lines.mark(w.out.Len()+max(0, m.at-cut), m.line)
		}
		w.out.WriteString(s)
		w.out.WriteString(end)
	}
}

func (w *markdownWriter) code(lines *text.Segments) {
	w.marks = nil
	at := 0
	for _, s := range lines.Sliced(0, lines.Len()) {
		w.mark(at, s.Start)
		at += len(s.Value(w.src))
	}
	w.paragraph(string(lines.Value(w.src)), "\n\n")
}

// mark notes that the text from at on comes from the line of that place of the source.
func (w *markdownWriter) mark(at, from int) {
	if w.lines != nil {
		w.marks = appendMark(w.marks, mark{at, w.lines.line(from)})
	}
}

// table writes one line a row, cells apart by " | ". A row stands on one line of the source.
func (w *markdownWriter) table(t *extast.Table) {
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		var marks []mark
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, strings.ReplaceAll(w.inline(cell), "\n", " "))
			if len(marks) == 0 && len(w.marks) > 0 {
				marks = []mark{{0, w.marks[0].line}}
			}
		}
		w.marks = marks
		w.paragraph(strings.Join(cells, " | "), "\n")
	}
	w.out.WriteString("\n")
}

// inline gives the words of a block's text without marks, and notes the links it passes and, in w.marks, the lines.
func (w *markdownWriter) inline(n ast.Node) string {
	var b strings.Builder
	w.marks = nil
	if n.Type() == ast.TypeBlock && n.Lines().Len() > 0 {
		w.mark(0, n.Lines().At(0).Start)
	}
	// The walker's only errors are those of the function given to it, which has none.
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			w.mark(b.Len(), n.Segment.Start)
			b.Write(unescape(n.Value(w.src), n.IsRaw() || n.Parent().Kind() == ast.KindCodeSpan))
			if n.HardLineBreak() {
				b.WriteByte('\n')
			} else if n.SoftLineBreak() {
				b.WriteByte(' ')
			}
			if n.HardLineBreak() || n.SoftLineBreak() { // what comes next may be a link, which does not say where it stands
				w.mark(b.Len(), n.Segment.Start+bytes.IndexByte(w.src[n.Segment.Start:], '\n')+1)
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(w.src))
			w.links = append(w.links, string(n.URL(w.src)))
		case *ast.Link:
			w.links = append(w.links, string(n.Destination))
		case *ast.RawHTML:
			if tag := bytes.ToLower(n.Segments.Value(w.src)); bytes.HasPrefix(tag, []byte("<br")) {
				b.WriteByte('\n')
			}
		case *ast.Image, *extast.FootnoteLink, *extast.FootnoteBacklink, *extast.TaskCheckBox:
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	cut := b.Len() - len(strings.TrimLeftFunc(b.String(), unicode.IsSpace))
	for i := range w.marks {
		w.marks[i].at = max(0, w.marks[i].at-cut)
	}
	return strings.TrimSpace(b.String())
}

// unescape resolves backslash escapes and character references, which the tree leaves in place. An escaped "&" starts no reference.
func unescape(b []byte, raw bool) []byte {
	if raw || !bytes.ContainsAny(b, `\&`) {
		return b
	}
	var out []byte
	for len(b) > 0 {
		i := 0
		for i < len(b) && !(b[i] == '\\' && i+1 < len(b) && util.IsPunct(b[i+1])) {
			i++
		}
		out = append(out, util.ResolveEntityNames(util.ResolveNumericReferences(b[:i]))...)
		if i == len(b) {
			break
		}
		out = append(out, b[i+1])
		b = b[i+2:]
	}
	return out
}

// boundedTables are goldmark's tables with a bound. Its parser fills every row up to the length of
// the head, so that ten kilobytes, a wide head and many rows of one character, become millions of
// cells. Here a paragraph becomes a table only if it has no more cells than bytes, as every table
// that a person wrote; any other stays text.
func boundedTables() []parser.Option {
	return []parser.Option{
		parser.WithParagraphTransformers(util.Prioritized(bounded{extension.NewTableParagraphTransformer()}, 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	}
}

// bounded makes tables of paragraphs that are not mostly made of nothing.
type bounded struct{ parser.ParagraphTransformer }

// fewCells is how many cells any table may have.
const fewCells = 1000

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
	if cells := columns * lines.Len(); cells > max(fewCells, size) {
		return
	}
	b.ParagraphTransformer.Transform(n, reader, pc)
}
