package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func rendered(t testing.TB, r *Report) (string, *html.Node) {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), doc
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func elements(doc *html.Node, names ...string) []*html.Node {
	var out []*html.Node
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && (len(names) == 0 || slices.Contains(names, n.Data)) {
			out = append(out, n)
		}
	}
	return out
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// allowed are the elements of a page and the attributes that they may have.
var allowed = map[string]string{
	"html": "lang", "head": "", "meta": "charset http-equiv content name", "title": "", "style": "", "body": "",
	"a": "href class rel aria-label data-source", "article": "id class tabindex", "bdi": "class title", "blockquote": "lang dir id class tabindex aria-label", "code": "", "dd": "", "details": "",
	"div": "class role aria-label tabindex", "dl": "", "dt": "", "footer": "", "h1": "lang dir", "h2": "id", "h3": "lang dir", "h4": "lang dir", "header": "", "li": "id lang dir", "main": "", "mark": "id", "meter": "value aria-label",
	"nav": "aria-label", "ol": "", "p": "lang dir class", "section": "id aria-labelledby", "span": "class lang dir data-source", "strong": "lang dir", "summary": "", "ul": "",
	"figcaption": "", "figure": "class", "table": "", "tbody": "", "td": "lang dir", "th": "scope lang dir", "thead": "", "tr": "",
	"svg": "role viewBox width", "text": "x y text-anchor", "rect": "class x y width height",
}

// inert fails if a page has anything that acts, or a link that it should not have.
func inert(t *testing.T, doc *html.Node) {
	t.Helper()
	ids := map[string]int{}
	var local []string
	for _, n := range elements(doc) {
		attrs, ok := allowed[n.Data]
		if !ok {
			t.Errorf("there is a <%s>", n.Data)
		}
		for _, a := range n.Attr {
			if !slices.Contains(strings.Fields(attrs), a.Key) {
				t.Errorf("<%s> has %s=%q", n.Data, a.Key, a.Val)
			}
			if a.Key == "id" {
				ids[a.Val]++
			}
		}
		if n.Data != "a" {
			continue
		}
		href := attribute(n, "href")
		switch {
		case strings.HasPrefix(href, "#"):
			local = append(local, href[1:])
		case !strings.HasPrefix(href, "https://") && !strings.HasPrefix(href, "http://"):
			t.Errorf("a link leads to %q", href)
		case attribute(n, "rel") != "noopener noreferrer nofollow":
			t.Errorf("the link to %q has rel=%q", href, attribute(n, "rel"))
		}
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("id %q is there %d times", id, n)
		}
	}
	for _, id := range local {
		if ids[id] == 0 {
			t.Errorf("a link leads to #%s, which is not there", id)
		}
	}
	for n := range doc.Descendants() {
		if n.Type == html.CommentNode {
			t.Errorf("there is a comment: %q", n.Data)
		}
	}
	if n := len(elements(doc, "style")); n != 1 {
		t.Errorf("there are %d style sheets", n)
	}
	if n := len(elements(elements(doc, "head")[0], "title")); n != 1 {
		t.Errorf("there are %d titles", n)
	}
}

// marksStored fails if what is marked is not what is stored.
func marksStored(t *testing.T, r *Report, doc *html.Node) {
	t.Helper()
	at := map[string]string{}
	for _, m := range elements(doc, "mark") {
		if id := attribute(m, "id"); id != "" {
			at[id] = textOf(m)
		}
	}
	n := 0
	for i, c := range r.Result.Citations {
		text := r.source(i).Text
		if text == "" {
			continue
		}
		n++
		want := strings.ReplaceAll(strings.ToValidUTF8(text[c.Span.Start:c.Span.End], "\uFFFD"), "\x00", "\uFFFD") // HTML has no NUL
		if got, ok := at["excerpt-"+string(rune('1'+i))]; !ok || got != want {
			t.Errorf("citation %d: marked is %q, stored is %q", i+1, got, want)
		}
	}
	if len(at) != n {
		t.Errorf("%d excerpts are marked, want %d", len(at), n)
	}
}

func TestHTMLIsInert(t *testing.T) {
	for _, p := range append([]string{""}, payloads...) {
		r := sample(t, func(s string) string { return s + p })
		if p != "" {
			before := sample(t, func(s string) string { return p + s })
			_, doc := rendered(t, before)
			inert(t, doc)
			marksStored(t, before, doc)
			before.Result.Blocks = hostileBlocks(p).Blocks
			_, doc = rendered(t, before)
			inert(t, doc)
		}
		page, doc := rendered(t, r)
		inert(t, doc)
		marksStored(t, r, doc)
		if strings.Contains(style, "url(") || strings.Contains(style, "@import") {
			t.Error("the style sheet loads something")
		}
		if strings.Count(page, "<style>") != 1 {
			t.Errorf("%q: the page has more than one <style>", p)
		}
		if t.Failed() {
			t.Fatalf("with %q", p)
		}
	}
}

func TestPolicy(t *testing.T) {
	_, doc := rendered(t, sample(t, plain))
	style := elements(doc, "style")[0].FirstChild.Data
	sum := sha256.Sum256([]byte(style))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	for _, m := range elements(doc, "meta") {
		if attribute(m, "http-equiv") == "Content-Security-Policy" {
			if got := attribute(m, "content"); got != want {
				t.Errorf("the policy is %q, want %q", got, want)
			}
			return
		}
	}
	t.Error("there is no policy")
}

func TestHTMLIsReadable(t *testing.T) {
	_, doc := rendered(t, sample(t, plain))
	if got := attribute(elements(doc, "html")[0], "lang"); got != "en" {
		t.Errorf("the language is %q", got)
	}
	for name, want := range map[string]int{"h1": 1, "main": 1, "nav": 1, "header": 1, "footer": 1} {
		if got := len(elements(doc, name)); got != want {
			t.Errorf("%d <%s>, want %d", got, name, want)
		}
	}
	if first := elements(doc, "a")[0]; attribute(first, "class") != "skip" || attribute(first, "href") != "#answer" {
		t.Error("the first link does not skip to the answer")
	}
	level := 0
	for _, n := range elements(doc, "h1", "h2", "h3") {
		now := int(n.Data[1] - '0')
		if now > level+1 {
			t.Errorf("heading %q skips a level", textOf(n))
		}
		if strings.TrimSpace(textOf(n)) == "" {
			t.Error("a heading is empty")
		}
		level = now
	}
	for _, n := range elements(doc, "details") {
		if n.FirstChild.Data != "summary" {
			t.Error("details without a summary")
		}
	}
	text := textOf(doc)
	for _, want := range []string{
		"When is the last frost", "0.82", "Independent origins", "partial", "unchecked", "two dates are given", "The other side", "15 May",
		"Not found in what was searched", "followed by question 2: somebody else may know", "Needs another kind of researcher", "frost models", "What of Logan?", "priority high",
		"last frost?", "after question 1", "4,039 of 20,000", "extractive/2", "Frost dates", "2026-11-14T09:30:00Z", "sha256:", "Ann Bee",
		"marchwarden verify 0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10", "v0.5.0", "This excerpt does not stand", "the trace could not be stored", "read recorded outcome", unchecked,
		"On 26 April", notAnAnswer, "it speaks of May",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestEverySentenceLeadsToItsSources follows the links of the answer.
func TestEverySentenceLeadsToItsSources(t *testing.T) {
	_, doc := rendered(t, sample(t, plain))
	var got []string
	for _, s := range elements(doc, "section") {
		if attribute(s, "id") != "answer" {
			continue
		}
		for _, n := range elements(s, "a", "span") {
			if n.Data == "a" {
				got = append(got, attribute(n, "href"))
			} else {
				got = append(got, attribute(n, "class"))
			}
		}
	}
	want := []string{"#source-1", "sentence supported", "#source-1", "#source-2", "verdict supported", "sentence partial", "#source-3", "verdict partial", "sentence unchecked", "#source-4", "verdict unchecked"}
	if !slices.Equal(got, want) {
		t.Errorf("the answer is %q, want %q", got, want)
	}
}

func TestSizeOfPage(t *testing.T) {
	r := sample(t, plain)
	r.Result.Citations, r.Sources = nil, nil
	for i := range 20 {
		text := string(rune('a'+i)) + strings.Repeat(" <b>&amp; \"quoted\" text of a page, with 日本語 in it", 700)
		r.Result.Citations = append(r.Result.Citations, marchwarden.Citation{Locator: "https://example.org/", Title: "T", RawExcerpt: text[15000:15450] + marchwarden.ExcerptCut,
			ContentHash: "sha256:" + strings.Repeat(string(rune('a'+i)), 64), Span: &marchwarden.Span{Start: 15000, End: 15450}})
		r.Sources = append(r.Sources, Source{Text: text})
	}
	page, _ := rendered(t, r)
	if len(page) > 1<<20 {
		t.Errorf("a page with 20 sources has %d bytes", len(page))
	}
}

func TestSameBytes(t *testing.T) {
	a, _ := rendered(t, sample(t, plain))
	b, _ := rendered(t, sample(t, plain))
	if a != b {
		t.Error("the same report gives other bytes")
	}
}
