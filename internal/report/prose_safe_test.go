package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup/markuptest"
)

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

// find are the proseElements of a class, or with a name.
func find(doc *html.Node, what string) []*html.Node {
	var out []*html.Node
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && (n.Data == what || slices.Contains(strings.Fields(proseAttribute(n, "class")), what)) {
			out = append(out, n)
		}
	}
	return out
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
// is written apart from the answerWriter, to be held against it.
var proseElements = map[string]string{
	"a": "href class data-source aria-label rel", "bdi": "class title", "blockquote": "", "br": "", "code": "", "del": "", "div": "role aria-label tabindex class", "em": "",
	"h3": "lang dir", "h4": "lang dir", "h5": "lang dir", "h6": "lang dir", "hr": "", "li": "lang dir", "ol": "start", "p": "lang dir", "pre": "role aria-label tabindex",
	"span": "class data-claim data-source", "strong": "", "table": "", "tbody": "", "td": "lang dir", "th": "lang dir", "thead": "", "tr": "", "ul": "",
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
		if n.Type != html.ElementNode || !ok || n.Namespace != "" {
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
	to, ok := h.Web(href)
	if !ok || to.Address() != href {
		t.Errorf("a link leads to %q", href)
	}
	if proseAttribute(a, "rel") != "noopener noreferrer nofollow" {
		t.Errorf("the link to %q has rel=%q", href, proseAttribute(a, "rel"))
	}
	if strings.TrimSpace(proseSpoken(a)) == "" {
		t.Errorf("the link to %q has no text", href)
	}
	for p := a.Parent; p != nil; p = p.Parent {
		if p.Data == "a" {
			t.Error("there is a link in a link")
		}
	}
}

// proseSample is a result with a payload in its answer, its claims and its citations.
func proseSample(plant func(string) string) *marchwarden.Result {
	res := &marchwarden.Result{}
	for range 3 {
		res.Citations = append(res.Citations, marchwarden.Citation{Source: plant("web"), Locator: plant("https://example.org/"), Title: plant("Title"), RawExcerpt: plant("An excerpt."),
			Origin: plant("example.org"), Published: plant("2025"), ContentHash: plant("sha256:"), Authority: marchwarden.Authority(plant("high"))})
	}
	texts := []string{plant("The last frost is on 26 April."), plant("It was later in 1990."), plant("Nobody knows.")}
	for i, s := range []marchwarden.Support{marchwarden.Supported, marchwarden.Partial, marchwarden.Support(plant("great"))} {
		res.Claims = append(res.Claims, marchwarden.Claim{Text: texts[i], Citations: []int{i + 1, 99, -1}, Support: s})
	}
	res.Answer = texts[0] + " [1][2] " + texts[1] + " [3]\n\n- " + texts[2] + " [3] " + plant("The rest.")
	return res
}

func TestInert(t *testing.T) {
	for _, p := range append(markuptest.All(), strings.Join(markuptest.All(), "\n\n"), strings.Join(markuptest.All(), " ")) {
		for name, plant := range map[string]func(string) string{
			"behind":       func(s string) string { return s + " " + p },
			"before":       func(s string) string { return p + " " + s },
			"alone":        func(string) string { return p },
			"as blocks":    func(s string) string { return s + "\n\n" + p + "\n\n" + s },
			"in emphasis":  func(s string) string { return "**" + s + " *" + p + "* ~~" + p + "~~**" },
			"in a link":    func(s string) string { return "[" + s + p + "](https://example.org/)" },
			"as a target":  func(s string) string { return "[" + s + "](" + p + ") [x](<" + p + ">)" },
			"in a table":   func(s string) string { return "\n\n| a | b |\n|---|---|\n| " + s + " | " + p + " |\n\n" },
			"in a heading": func(s string) string { return "\n\n# " + p + "\n\n" + s },
			"as an image":  func(s string) string { return "![" + p + "](" + p + " \"" + p + "\")" + s },
			"too long":     func(s string) string { return s + " " + p + strings.Repeat(" ", maxMarkdown/4) },
		} {
			res := proseSample(plant)
			outs := []string{AnswerHTML(res).String(), Text(res.Answer)}
			proseInert(t, outs[0], 3)
			proseInert(t, outs[1], 0)
			if t.Failed() {
				t.Fatalf("%s, with %q: %s", name, p, outs)
			}
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
			got := find(proseInert(t, AnswerHTML(res).String(), 3), "sentence")
			if len(got) != len(texts) {
				t.Fatalf("%d sentences, want %d: %s", len(got), len(texts), AnswerHTML(res).String())
			}
			for i, n := range got {
				if said := proseSpoken(n, "cite", "verdict"); plaintext.Fold(said) != texts[i] || proseAttribute(n, "data-claim") != fmt.Sprint(i+1) {
					t.Fatalf("%q reads %q, as claim %s", texts[i], said, proseAttribute(n, "data-claim"))
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

// Text is Markdown without citations, as an answer is shown that has none.
func Text(markdown string) string {
	return (&answerWriter{res: &marchwarden.Result{Answer: markdown}, claims: Claims(nil)}).document(markdown).String()
}
