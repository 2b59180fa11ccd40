package report

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup/markuptest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// wired is the report of the contract's own samples.
func wired(t testing.TB) *marchwarden.Result {
	t.Helper()
	data, err := os.ReadFile("../../testdata/wire/report.result.json")
	if err != nil {
		t.Fatal(err)
	}
	res, err := marchwarden.DecodeResult(data)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// outline is blocks in short: their types, texts, markers and verdicts.
func outline(blocks []marchwarden.Block) []string {
	var out []string
	claim := func(c marchwarden.Claim) string { return marked(c.Text, c.Citations) + "|" + string(c.Support) }
	for _, b := range blocks {
		switch b.Type {
		case marchwarden.Heading:
			out = append(out, fmt.Sprintf("h%d %s", b.Level, b.Text))
		case marchwarden.Paragraph:
			var said []string
			for _, c := range b.Claims {
				said = append(said, claim(c))
			}
			out = append(out, "p "+strings.Join(said, " / "))
		case marchwarden.List:
			for _, c := range b.Items {
				out = append(out, fmt.Sprintf("li %v %s", b.Ordered, claim(c)))
			}
		case marchwarden.TableBlock:
			out = append(out, "table "+strings.Join(b.Columns, ", "))
			for _, row := range b.Rows {
				var cells []string
				for _, c := range row {
					cells = append(cells, marked(c.Text, c.Citations))
				}
				out = append(out, "row "+strings.Join(cells, ", "))
			}
		default:
			out = append(out, string(b.Type))
		}
	}
	return out
}

// Markdown of earlier versions and of others is read as blocks.
func TestMarkdownAsBlocks(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		claims       []marchwarden.Claim
		want         []string
	}{
		{"claims", "One. [1][2] Two. [3]\n\nThree. [1]", []marchwarden.Claim{{Text: "One.", Support: marchwarden.Supported}, {Text: "Two."}, {Text: "Three.", Support: marchwarden.Partial}},
			[]string{"p One. [1][2]|supported / Two. [3]|unchecked", "p Three. [1]|partial"}},
		{"escapes", `It costs \*5\* \[1\] in \<b\>. [1]`, []marchwarden.Claim{{Text: "It costs *5* [1] in <b>.", Support: marchwarden.Quoted}}, []string{"p It costs *5* [1] in <b>. [1]|quoted"}},
		{"markers of nothing", "See [0] and [4] and [99999999999]. [2]", nil, []string{"p See [0] and [4] and [99999999999]. [2]|"}},
		{"no markers", "No stored document answers this.", nil, []string{"p No stored document answers this.|"}},
		{"a claim without its markers", "One.", []marchwarden.Claim{{Text: "One.", Support: marchwarden.Supported, Citations: []int{7, 2}}}, []string{"p One. [2]|supported"}},
		{"text behind", "One. [1] And so on", []marchwarden.Claim{{Text: "One."}}, []string{"p One. [1]|unchecked / And so on|"}},
		{"as it is written", "It is *so*. [1]", []marchwarden.Claim{{Text: "It is *so*.", Support: marchwarden.Supported}}, []string{"p It is *so*. [1]|supported"}},
		{"as it reads", "It **is** *so*, `a_b`. [1]", []marchwarden.Claim{{Text: "It is so, a_b.", Support: marchwarden.Supported}}, []string{"p It is so, a_b. [1]|supported"}},
		{"headings", "# One [1]\n\n###### Two ##\nThree\n=====\ntext", nil, []string{"h1 One", "h3 Two", "h2 Three", "p text|"}},
		{"lists", "- One. [1]\n  more\n- Two. [2] Three. [3]\n   1. deep\n2) next\n\nafter", []marchwarden.Claim{{Text: "Two.", Support: marchwarden.Supported}, {Text: "Three.", Support: marchwarden.Partial}},
			[]string{"li false One. more [1]|", "li false Two. Three. [2][3]|partial", "li true deep|", "li true next|", "p after|"}},
		{"a table", "| a | b \\| c |\n|---|:-:|\n| One. [1] | |\n| x |", nil, []string{"table a, b | c", "row One. [1], ", "row x, "}},
		{"quotes, rules and code", "> One\n> two. [1]\n\n---\n\n```\n# x\n- y\n```", nil, []string{"p One two. [1]|", "p # x - y|"}},
		{"links and images", "[go](https://a.example/) ![p](x.png) <https://b.example/> [https://c.example/](https://c.example/) [1](https://evil.example/)", nil,
			[]string{"p go (https://a.example/) [image: p] https://b.example/ https://c.example/ [1]| / (https://evil.example/)|"}},
		{"stars", "2 * 3 * 4 and snake_case_name &amp; x", nil, []string{"p 2 * 3 * 4 and snake_case_name & x|"}},
		{"nothing", " \n\n ", nil, nil},
	} {
		res := &marchwarden.Result{Answer: c.answer, Claims: c.claims, Citations: make([]marchwarden.Citation, 3)}
		if diff := cmp.Diff(c.want, outline(Blocks(res))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// What a result's own blocks say is bounded and cleaned.
func TestOwnBlocks(t *testing.T) {
	res := wired(t)
	if diff := cmp.Diff([]string{"p Rye ripens at 2,400 metres. [1]|supported", "h2 Yields", "li true Barley gave 4.2 tonnes a hectare in 2024. [2]|quoted", "table Grain, Yield",
		"row Barley [2], 4.2 tonnes a hectare [2]", "row Rye [1], ", "quote", "chart"}, outline(Blocks(res))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"table , tonnes a hectare", "row barley [2], 4.2", "row oats [2], 3.1"}, outline([]marchwarden.Block{verify.Figures(res.Blocks[5])})); diff != "" {
		t.Error(diff)
	}
	res.Blocks = []marchwarden.Block{{Type: "video", Text: "x"}, {Type: marchwarden.Heading, Level: 99, Text: "a\n\u202eb"}, {Type: marchwarden.Heading, Text: " "}, {Type: marchwarden.Quote, Citation: 9},
		{Type: marchwarden.Paragraph, Claims: []marchwarden.Claim{{Text: "c\td", Citations: []int{-1, 2, 2, 9}, Support: "great"}, {}}},
		{Type: marchwarden.TableBlock, Columns: []string{"a", "b"}, Rows: [][]marchwarden.Cell{{{Text: "1", Citations: []int{3}}, {Text: "2"}, {Text: "3"}}, {}}}, {Type: marchwarden.TableBlock},
		{Type: marchwarden.Chart, Kind: "pie", Series: []marchwarden.Series{{Labels: []string{"a", "b"}, Values: []float64{1}}}}, {Type: marchwarden.Chart}}
	if diff := cmp.Diff([]string{"h3 a b", "p c d [2]|unchecked", "table a, b", "row 1, 2", "row , ", "chart"}, outline(Blocks(res))); diff != "" {
		t.Error(diff)
	}
}

// cite is a marker on a page.
func cite(n int) string {
	return fmt.Sprintf(`<a href="?source=%d#source" class="cite" data-source="%d" aria-label="source %d">[%d]</a>`, n, n, n, n)
}

func TestAnswerHTML(t *testing.T) {
	got := AnswerHTML(wired(t)).String()
	for _, want := range []string{
		`<p lang="" dir="auto"><span class="sentence supported" data-source="1">Rye ripens at 2,400 metres. ` + cite(1) + ` <span class="verdict supported">supported</span></span></p>`,
		`<h3 lang="" dir="auto">Yields</h3>`, `<ol><li lang="" dir="auto"><span class="sentence quoted" data-source="2">Barley gave`,
		`<tr><th scope="col" lang="" dir="auto">Grain</th><th scope="col" lang="" dir="auto">Yield</th></tr>`,
		`<tr><th scope="row" lang="" dir="auto"><span class="sentence" data-source="1">Rye ` + cite(1) + `</span></th><td lang="" dir="auto">–</td></tr>`,
		`<blockquote lang="" dir="auto">Rye ripens at 2,400 metres in the Great Basin. ` + cite(1) + `</blockquote>`, `<svg role="img"`, `<rect class="series-1"`, `>4.2</text>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	proseInert(t, got, 2)
	if got := AnswerHTML(&marchwarden.Result{}).String(); got != "<p>No answer.</p>" {
		t.Errorf("nothing is %q", got)
	}
}

func TestChart(t *testing.T) {
	res := wired(t)
	res.Blocks = []marchwarden.Block{{Type: marchwarden.Chart, Kind: "line", Series: []marchwarden.Series{{Name: "a", Labels: []string{"2023", "2024", "2025"}, Values: []float64{-1, 1e300, -1e300}}, {Labels: []string{"x"}, Values: []float64{0}}}}}
	got := AnswerHTML(res).String()
	if proseInert(t, got, 2); strings.Count(got, "<rect") != 4 || strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
		t.Errorf("%s", got)
	}
	res.Blocks[0].Series[0].Values = []float64{1e308, -1e308}
	if got := AnswerHTML(res).String(); strings.Contains(got, "<svg") || !strings.Contains(got, "1e+308") {
		t.Errorf("numbers too far apart: %s", got)
	}
}

// hostileBlocks plants a text in every place of an answer.
func hostileBlocks(p string) *marchwarden.Result {
	claim := marchwarden.Claim{Text: p, Citations: []int{1, 99, -1}, Support: marchwarden.Support(p)}
	cells := []marchwarden.Cell{{Text: p, Citations: []int{2, 7}}, {Text: p}}
	series := []marchwarden.Series{{Name: p, Labels: []string{p, "b"}, Values: []float64{1, -2}}}
	return &marchwarden.Result{Citations: []marchwarden.Citation{{RawExcerpt: p}, {RawExcerpt: p}, {}}, Blocks: []marchwarden.Block{{Type: marchwarden.Heading, Level: 1, Text: p}, {Type: marchwarden.Paragraph, Claims: []marchwarden.Claim{claim, claim}},
		{Type: marchwarden.List, Items: []marchwarden.Claim{claim}}, {Type: marchwarden.TableBlock, Columns: []string{p, p}, Rows: [][]marchwarden.Cell{cells, nil}}, {Type: marchwarden.Quote, Citation: 2},
		{Type: marchwarden.Chart, Kind: p, Citation: 1, Series: series}, {Type: marchwarden.Chart, Kind: "line", Series: series}, {Type: marchwarden.BlockType(p), Text: p}}}
}

func TestInert(t *testing.T) {
	for _, p := range append(markuptest.All(), strings.Join(markuptest.All(), "\n\n"), strings.Join(markuptest.All(), " ")) {
		blocks := hostileBlocks(p)
		proseInert(t, AnswerHTML(blocks).String(), 3)
		for _, answer := range []string{"One. [1] " + p + " [2]", p, "- " + p + " [3]", "# " + p, "| a | b |\n|---|---|\n| " + p + " | [1] |", "[x](" + p + ") ![" + p + "](y) **" + p + "**"} {
			proseInert(t, AnswerHTML(&marchwarden.Result{Answer: answer, Citations: make([]marchwarden.Citation, 3), Claims: []marchwarden.Claim{{Text: p}}}).String(), 3)
		}
		screen := screenOf(t, term.Style{Width: 80}, blocks, Options{})
		if at := firstControl(screen); at >= 0 {
			t.Errorf("control character at %d", at)
		}
		if t.Failed() {
			t.Fatalf("with %q", p)
		}
	}
}

// TestSentencesSurvive says that the text of an answer in which every markup is
// escaped reads as it was meant, sentence by sentence, each as its claim.
func TestSentencesSurvive(t *testing.T) {
	check := func(t testing.TB, texts []string) {
		res := &marchwarden.Result{Citations: make([]marchwarden.Citation, 3)}
		var paragraphs []string
		for i, s := range texts {
			res.Claims = append(res.Claims, marchwarden.Claim{Text: s, Support: marchwarden.Supported})
			paragraphs = append(paragraphs, fmt.Sprintf("%s [%d]", escaped(s), i%3+1))
		}
		for _, between := range []string{" ", "\n\n", "\n"} {
			res.Answer = strings.Join(paragraphs, between)
			var got []marchwarden.Claim
			for _, b := range Blocks(res) {
				got = append(got, b.Claims...)
			}
			if len(got) != len(texts) {
				t.Fatalf("%d sentences, want %d: %+v", len(got), len(texts), got)
			}
			for i, c := range got {
				if c.Text != texts[i] || c.Support != marchwarden.Supported || !slices.Equal(c.Citations, []int{i%3 + 1}) {
					t.Fatalf("%q reads %+v", texts[i], c)
				}
			}
		}
	}
	for _, p := range markuptest.All() {
		check(t, []string{plaintext.Fold("A " + p), plaintext.Fold("B " + p + "."), "C."})
	}
	rapid.Check(t, func(rt *rapid.T) {
		var texts []string
		for i := range rapid.IntRange(1, 5).Draw(rt, "sentences") {
			texts = append(texts, plaintext.Fold(fmt.Sprintf("%d%s", i, rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("[]()!*_~`<>&#|\\-+:. 1a\"'")))).Draw(rt, "text"))))
		}
		check(t, texts)
	})
}

// escaped is a text with every character of markup escaped.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < 0x80 && strings.ContainsRune("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// TestLongAnswer reads a long answer with as many claims as sentences.
func TestLongAnswer(t *testing.T) {
	var b strings.Builder
	res := &marchwarden.Result{Citations: make([]marchwarden.Citation, 9)}
	for i := range 50_000 {
		text := fmt.Sprintf("Sentence %d.", i)
		res.Claims = append(res.Claims, marchwarden.Claim{Text: text})
		fmt.Fprintf(&b, "%s [%d] ", text, i%9+1)
	}
	res.Answer = b.String()
	if all := Blocks(res); len(all) != 1 || len(all[0].Claims) != len(res.Claims) || all[0].Claims[49_999].Text != "Sentence 49999." {
		t.Fatalf("%d paragraphs", len(all))
	}
}

func TestVerdict(t *testing.T) {
	for s, want := range map[marchwarden.Support]string{"supported": "supported", "partial": "partial", "unsupported": "unsupported", "unchecked": "unchecked", "": "unchecked", "<b>": "unchecked"} {
		if got := Verdict(s); got != want {
			t.Errorf("Verdict(%q) = %q, want %q", s, got, want)
		}
	}
}

// FuzzAnswer says of whatever text that it stays inert, and of its markers that they
// lead to sources.
func FuzzAnswer(f *testing.F) {
	for _, p := range markuptest.All() {
		f.Add(p)
		f.Add("One. [1] **" + p + " [2]** | [3]\n\n- " + p)
	}
	f.Fuzz(func(t *testing.T, md string) {
		res := &marchwarden.Result{Answer: md, Citations: make([]marchwarden.Citation, 3), Claims: []marchwarden.Claim{{Text: md}, {Text: "One.", Support: marchwarden.Supported, Citations: []int{2}}}}
		proseInert(t, AnswerHTML(res).String(), 3)
	})
}

// proseRead is what a reader of HTML makes of a piece of a page.
func proseRead(t testing.TB, piece string) *html.Node {
	t.Helper()
	body := &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body}
	nodes, err := html.ParseFragment(strings.NewReader(piece), body)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		body.AppendChild(n)
	}
	return body
}

func proseAttribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// proseSpoken is the text of a node without what the program adds to it.
func proseSpoken(n *html.Node, without ...string) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		if n.Data == "br" {
			b.WriteString(" ")
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if !slices.Contains(without, strings.Split(proseAttribute(c, "class")+" ", " ")[0]) || proseAttribute(c, "class") == "" {
				walk(c)
			}
		}
	}
	walk(n)
	return b.String()
}

// proseElements are what may be on a page and the attributes that they may have. The list
// is written apart from what writes, to be held against it.
var proseElements = map[string]string{
	"a": "href class data-source aria-label", "bdi": "class title", "blockquote": "lang dir", "div": "role aria-label tabindex class", "details": "", "summary": "", "figure": "class", "figcaption": "",
	"h3": "lang dir", "h4": "lang dir", "li": "lang dir", "ol": "", "p": "lang dir", "span": "class data-source", "table": "", "tbody": "", "td": "lang dir", "th": "lang dir scope", "thead": "", "tr": "", "ul": "",
	"svg": "role viewBox width", "title": "", "text": "x y text-anchor", "rect": "class x y width height",
}

// proseInert fails if a piece of a page has anything that acts or loads, or a link that it
// should not have.
func proseInert(t testing.TB, piece string, citations int) *html.Node {
	t.Helper()
	doc := proseRead(t, piece)
	for n := range doc.Descendants() {
		if n.Type == html.TextNode {
			continue
		}
		attrs, ok := proseElements[n.Data]
		if n.Type != html.ElementNode || !ok || n.Namespace != "" && n.Namespace != "svg" {
			t.Errorf("there is a node %q of type %d", n.Data, n.Type)
		}
		for _, a := range n.Attr {
			if !slices.Contains(strings.Fields(attrs), a.Key) || a.Namespace != "" {
				t.Errorf("<%s> has %s=%q", n.Data, a.Key, a.Val)
			}
		}
		if n.Data == "a" {
			leads(t, n, citations)
		}
	}
	return doc
}

// leads checks one link.
func leads(t testing.TB, a *html.Node, citations int) {
	t.Helper()
	href := proseAttribute(a, "href")
	if proseAttribute(a, "class") == "cite" {
		n := 0
		if _, err := fmt.Sscanf(href, "?source=%d#source", &n); err != nil || n < 1 || n > citations || proseAttribute(a, "data-source") != fmt.Sprint(n) || proseSpoken(a) != fmt.Sprintf("[%d]", n) {
			t.Errorf("a marker %q leads to %q of %d", proseSpoken(a), href, citations)
		}
		return
	}
	t.Errorf("a link leads to %q", href)
}
