package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup/markuptest"
)

// cite is a marker on a page.
func cite(n int) string {
	return fmt.Sprintf(`<a href="?source=%d#source" class="cite" data-source="%d" aria-label="source %d">[%d]</a>`, n, n, n, n)
}

func TestAnswer(t *testing.T) {
	const p = `<p lang="" dir="auto">`
	for _, c := range []struct {
		name, answer string
		claims       []marchwarden.Claim
		want         string
	}{
		{"a claim", "One. [1][2]", []marchwarden.Claim{{Text: "One.", Support: marchwarden.Supported}},
			p + `<span class="sentence supported" data-claim="1" data-source="1">One. ` + cite(1) + cite(2) + ` <span class="verdict supported">supported</span></span></p>`},
		{"a copied sentence", "One. [1]", []marchwarden.Claim{{Text: "One.", Support: marchwarden.Quoted}},
			p + `<span class="sentence quoted" data-claim="1" data-source="1">One. ` + cite(1) + ` <span class="verdict quoted">quoted</span></span></p>`},
		{"two in a line", "One. [2] Two. [3]", []marchwarden.Claim{{Text: "One.", Support: marchwarden.Partial}, {Text: "Two."}},
			p + `<span class="sentence partial" data-claim="1" data-source="2">One. ` + cite(2) + ` <span class="verdict partial">partial</span></span> ` +
				`<span class="sentence unchecked" data-claim="2" data-source="3">Two. ` + cite(3) + ` <span class="verdict unchecked">unchecked</span></span></p>`},
		{"said twice", "One. [1]\n\nOne. [2]", []marchwarden.Claim{{Text: "One.", Support: marchwarden.Supported}, {Text: "One.", Support: marchwarden.Unsupported}},
			p + `<span class="sentence supported" data-claim="1" data-source="1">One. ` + cite(1) + ` <span class="verdict supported">supported</span></span></p>` + "\n" +
				p + `<span class="sentence unsupported" data-claim="2" data-source="2">One. ` + cite(2) + ` <span class="verdict unsupported">unsupported</span></span></p>`},
		{"no claim", "One. [1] And so on", nil, p + `<span class="sentence" data-source="1">One. ` + cite(1) + `</span> And so on</p>`},
		{"no marker", "One.", []marchwarden.Claim{{Text: "One.", Support: marchwarden.Supported, Citations: []int{7, 2}}},
			p + `<span class="sentence supported" data-claim="1" data-source="2">One. <span class="verdict supported">supported</span></span></p>`},
		{"markers of nothing", "See [0], [4] and [99999999999]. [2]", nil, p + `<span class="sentence" data-source="2">See [0], [4] and [99999999999]. ` + cite(2) + `</span></p>`},
		{"a marker alone", "[1]", nil, p + cite(1) + `</p>`},
		{"escaped", `It costs \*5\* \[1\] in \<b\>. [1]`, nil, p + `<span class="sentence" data-source="1">It costs *5* [1] in &lt;b&gt;. ` + cite(1) + `</span></p>`},
		{"in code", "Use `a[1]` [2]\n\n    b[1]\n\n```\nc[1]\n```", nil, p + `<span class="sentence" data-source="2">Use <code>a[1]</code> ` + cite(2) + `</span></p>` + "\n" +
			`<pre role="group" aria-label="code" tabindex="0"><code>b[1]` + "\n" + `</code></pre>` + "\n" + `<pre role="group" aria-label="code" tabindex="0"><code>c[1]` + "\n" + `</code></pre>`},
		{"a marker that is a link", "One. [1](https://evil.example/)", nil, p + `<span class="sentence" data-source="1">One. ` + cite(1) + `</span>(https://evil.example/)</p>`},
		{"in a link", "[see [1] there](https://evil.example/)", nil, p + `<span class="sentence" data-source="1"><a href="https://evil.example/" rel="noopener noreferrer nofollow">see </a>` + cite(1) +
			`</span><a href="https://evil.example/" rel="noopener noreferrer nofollow"> there</a><span class="host"> (evil.example)</span></p>`},
		{"in emphasis", "**One. [1] Two.** [2]", []marchwarden.Claim{{Text: "One."}}, p + `<span class="sentence unchecked" data-claim="1" data-source="1"><strong>One. </strong>` + cite(1) +
			` <span class="verdict unchecked">unchecked</span></span> <span class="sentence" data-source="2"><strong>Two.</strong> ` + cite(2) + `</span></p>`},
		{"as it reads", "It is *so*. [1]", []marchwarden.Claim{{Text: "It is so.", Support: marchwarden.Supported}},
			p + `<span class="sentence supported" data-claim="1" data-source="1">It is <em>so</em>. ` + cite(1) + ` <span class="verdict supported">supported</span></span></p>`},
		{"as it is written", "It is *so*. [1]", []marchwarden.Claim{{Text: "It is *so*.", Support: marchwarden.Supported}},
			p + `<span class="sentence supported" data-claim="1" data-source="1">It is *so*. ` + cite(1) + ` <span class="verdict supported">supported</span></span></p>`},
		{"in a list", "3. One. [1]\n4. Two\n   - Three. [2]", nil, `<ol start="3">` + "\n" + `<li lang="" dir="auto"><span class="sentence" data-source="1">One. ` + cite(1) + "</span>\n</li>\n" +
			`<li lang="" dir="auto">Two` + "\n<ul>\n" + `<li lang="" dir="auto"><span class="sentence" data-source="2">Three. ` + cite(2) + "</span>\n</li>\n</ul>\n</li>\n</ol>"},
		{"in a heading", "# One [1]\n\n###### Two", nil, `<h3 lang="" dir="auto"><span class="sentence" data-source="1">One ` + cite(1) + "</span></h3>\n" + `<h6 lang="" dir="auto">Two</h6>`},
		{"in a table", "| a |\n|---|\n| One. [1] |", nil, `<div role="group" aria-label="table" tabindex="0" class="table"><table>` + "\n" + `<thead><tr><th lang="" dir="auto">a</th></tr></thead>` + "\n<tbody>\n" +
			`<tr><td lang="" dir="auto"><span class="sentence" data-source="1">One. ` + cite(1) + "</span></td></tr>\n</tbody>\n</table></div>"},
		{"in a quote", "> One\n> two. [1]\n\n---", []marchwarden.Claim{{Text: "One two."}}, "<blockquote>\n" + p + `<span class="sentence unchecked" data-claim="1" data-source="1">One two. ` + cite(1) +
			` <span class="verdict unchecked">unchecked</span></span></p>` + "\n</blockquote>\n<hr>"},
		{"definitions", "[1]: https://evil.example/\n\nOne. [1]", nil, p + cite(1) + `: https://evil.example/</p>` + "\n" + p + `<span class="sentence" data-source="1">One. ` + cite(1) + `</span></p>`},
		{"lines", "One  \ntwo\nthree. [1]", []marchwarden.Claim{{Text: "One two three."}}, p + `<span class="sentence unchecked" data-claim="1" data-source="1">One<br>two three. ` + cite(1) +
			` <span class="verdict unchecked">unchecked</span></span></p>`},
		{"nothing", " \n ", nil, "<p>No answer.</p>"},
	} {
		res := &marchwarden.Result{Answer: c.answer, Claims: c.claims, Citations: make([]marchwarden.Citation, 3)}
		if got := strings.TrimSuffix(AnswerHTML(res).String(), "\n"); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		proseInert(t, AnswerHTML(res).String(), 3)
	}
}

func TestText(t *testing.T) {
	const rel = ` rel="noopener noreferrer nofollow"`
	for md, want := range map[string]string{
		"[go](https://example.org/a?b=c&d=e)":         `<a href="https://example.org/a?b=c&amp;d=e"` + rel + `>go</a><span class="host"> (example.org)</span>`,
		"[https://good.example](https://bad.example)": `<a href="https://bad.example/"` + rel + `>https://good.example</a><span class="host"> (bad.example)</span>`,
		"<https://example.org/a>":                     `<a href="https://example.org/a"` + rel + `>https://example.org/a</a>`,
		"<https://example.org/?a=1&amp=2>":            `<a href="https://example.org/?a=1&amp;amp=2"` + rel + `>https://example.org/?a=1&amp;amp=2</a>`,
		"[](https://example.org/)":                    `<a href="https://example.org/"` + rel + `>https://example.org/</a>`,
		"[*a* b](https://example.org/)":               `<a href="https://example.org/"` + rel + `><em>a</em> b</a><span class="host"> (example.org)</span>`,
		"[a](https://аpple.example/)":                 `<a href="https://xn--pple-43d.example/"` + rel + `>a</a><span class="host"> (xn--pple-43d.example)</span>`,
		"[go](javascript:alert\\(1\\))":               `go<span class="host"> (javascript:alert(1))</span>`,
		"[go]()":                                      `go`,
		"[go](/path)":                                 `go<span class="host"> (/path)</span>`,
		"<javascript:x>":                              `&lt;javascript:x&gt;`,
		"<a@b.example>":                               `&lt;a@b.example&gt;`,
		"![a *b*](https://evil.example/p.png)":        `[image: a b]`,
		"![](https://evil.example/p.png)":             `[image]`,
		"[![a](p.png)](https://example.org/)":         `<a href="https://example.org/"` + rel + `>[image: a]</a><span class="host"> (example.org)</span>`,
		"<b>bold</b>":                                 `&lt;b&gt;bold&lt;/b&gt;`,
		"a\u202eb\u200bc &#x202e;d":                   `abc d`,
		"One. [1]":                                    `One. [1]`,
		"https://example.org/":                        `https://example.org/`,
		"~~a~~ `` b` ``":                              "<del>a</del> <code>b`</code>",
	} {
		if got := strings.TrimSpace((Text(md))); got != `<p lang="" dir="auto">`+want+`</p>` {
			t.Errorf("%q:\n got %s\nwant %s", md, got, want)
		}
	}
	if got := Text(""); got != "" {
		t.Errorf("nothing is %q", got)
	}
}

// TestLongAndDeep gives long texts of the kinds that parsers are slow at. The limit is
// for a busy machine; the times are for people.
func TestLongAndDeep(t *testing.T) {
	kinds := map[string]string{
		"words": "word ", "markers": "a [1] ", "brackets": "[", "closed": "[a](", "images": "![", "emphasis": "*a _b ", "stars": "*a**", "quotes": "> ", "lists": "- ", "code": "`a``", "angles": "<", "tags": "<a b='",
		"autolinks": "<https://a", "entities": "&amp", "tables": "|a", "rows": "a|b\n", "lines": "a\n\n", "deep lists": "\n1. - ", "tildes": "~~a~", "escapes": `\[`, "links": "[a](https://example.org/) ", "nul": "\x00", "bad": "\xff",
	}
	for name, unit := range kinds {
		for _, size := range []int{maxMarkdown, 1 << 20} {
			if size > maxMarkdown && (!datatest.Full() || !slices.Contains([]string{"words", "markers", "brackets"}, name)) {
				continue // beyond the limit all kinds are text
			}
			md := strings.Repeat(unit, size/len(unit))
			res := &marchwarden.Result{Answer: md, Citations: make([]marchwarden.Citation, 1)}
			began := time.Now()
			out := AnswerHTML(res)
			if took := time.Since(began); took > 500*time.Millisecond {
				t.Logf("%s, %d bytes: %v, %d bytes of HTML", name, size, took, len(out.String()))
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("%s, %d bytes: took %v", name, size, took)
			}
			if len(out.String()) > 120*size {
				t.Errorf("%s, %d bytes: %d bytes of HTML", name, size, len(out.String()))
			}
		}
	}
	// a head of many columns over many short rows
	md := strings.Repeat("|a", 4000) + "\n" + strings.Repeat("|-", 4000) + "\n" + strings.Repeat("|b\n", 4000)
	if out := Text(md); len(md) > maxMarkdown || strings.Contains(string(out), "<table") {
		t.Error("a table of 16 million cells is drawn")
	}
	// and many of them
	md = strings.Repeat(strings.Repeat("|a", 80)+"\n"+strings.Repeat("|-", 80)+"\n"+strings.Repeat("|b\n", 100)+"\n", 50)
	if n := strings.Count((Text(md)), "<table"); len(md) > maxMarkdown || n != 0 {
		t.Errorf("%d tables of 8,000 cells are drawn", n)
	}
	md = strings.Repeat(strings.Repeat("|a", 8)+"\n"+strings.Repeat("|-", 8)+"\n"+strings.Repeat("|b\n", 20)+"\n", 50)
	if n := strings.Count((Text(md)), "<table"); n != 50 {
		t.Errorf("%d of 50 small tables are drawn", n)
	}
	doc := proseInert(t, (Text(strings.Repeat("> ", 1000) + "deep")), 0)
	if n := len(find(doc, "blockquote")); n != maxDepth || plaintext.Fold(proseSpoken(doc)) != "deep" {
		t.Errorf("%d quotes are nested", n)
	}
	doc = proseInert(t, (Text(strings.Repeat("- ", 200) + "deep")), 0)
	if n := len(find(doc, "ul")); n != maxDepth || plaintext.Fold(proseSpoken(doc)) != "deep" {
		t.Errorf("%d lists are nested", n)
	}
}

// TestProseLongAnswer says that an answer as the gate writes them reads the same when it
// is too long to be proseRead as Markdown.
func TestProseLongAnswer(t *testing.T) {
	res := &marchwarden.Result{Citations: make([]marchwarden.Citation, 9)}
	var short, long strings.Builder
	size := 1 << 18
	if datatest.Full() {
		size = 1 << 20
	}
	for i := 0; long.Len() <= size; i++ {
		text := fmt.Sprintf("Sentence %d costs *5* <b>.", i)
		res.Claims = append(res.Claims, marchwarden.Claim{Text: text, Support: marchwarden.Partial})
		part := fmt.Sprintf("%s [%d][%d]%s", escaped(text), i%9+1, (i+1)%9+1, []string{" ", "\n\n"}[i%2])
		if long.WriteString(part); i < 100 {
			short.WriteString(part)
		}
	}
	res.Answer = long.String()
	whole := AnswerHTML(res).String()
	if n := len(find(proseInert(t, whole, 9), "sentence")); n != len(res.Claims) {
		t.Errorf("%d sentences, want %d", n, len(res.Claims))
	}
	res.Answer = short.String()
	if part := AnswerHTML(res).String(); !strings.HasPrefix(whole, part) {
		t.Errorf("the long answer begins %s\nthe short one is %s", whole[:500], part[:500])
	}
}

func TestProseSameBytes(t *testing.T) {
	for _, p := range markuptest.All() {
		res := proseSample(func(s string) string { return s + p })
		if first, again := AnswerHTML(res), AnswerHTML(res); first != again {
			t.Errorf("%q gives other bytes", p)
		}
	}
}

// FuzzAnswer says of whatever text that it stays proseInert, and of its markers that they
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
