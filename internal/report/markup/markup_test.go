package markup

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"
)

// read parses a piece of HTML as the content of a body.
func read(t interface{ Fatal(...any) }, n Node) *html.Node {
	doc, err := html.Parse(strings.NewReader("<!DOCTYPE html><html><head></head><body>" + n.String() + "</body></html>"))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func texts(doc *html.Node) (text string, elements []string) {
	var b strings.Builder
	for n := range doc.Descendants() {
		switch n.Type {
		case html.TextNode:
			b.WriteString(n.Data)
		case html.ElementNode:
			elements = append(elements, n.Data)
		case html.CommentNode:
			elements = append(elements, "a comment")
		}
	}
	return b.String(), elements
}

// carried is what HTML makes of a text.
func carried(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

var hostile = rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("<>&\"'/=-!\x00\r\n\t ab;#x\u202e\u200b\ufeff\u0085\x1b\U000E0041"))),
	rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))

func TestTextIsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := hostile.Draw(t, "text")
		for _, n := range []Node{Fill(`<p>{}</p>`, s), Fill(`<p>{}</p>`, Exact(s))} {
			text, elements := texts(read(t, n))
			if text != carried(s) {
				t.Fatalf("%q reads %q", s, text)
			}
			for _, e := range elements {
				if e != "html" && e != "head" && e != "body" && e != "p" && e != "bdi" {
					t.Fatalf("%q makes %s", s, e)
				}
			}
		}
	})
}

func TestAttributesAreText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := hostile.Draw(t, "text")
		paragraphs := 0
		for n := range read(t, Fill(`<p title="{}" aria-label="{}">x</p>`, s, s)).Descendants() {
			if n.Data != "p" {
				continue
			}
			paragraphs++
			if len(n.Attr) != 2 || n.Attr[0].Key != "title" || n.Attr[0].Val != carried(s) || n.Attr[1].Val != carried(s) {
				t.Fatalf("%q makes %q", s, n.Attr)
			}
		}
		if paragraphs != 1 {
			t.Fatalf("%q makes %d paragraphs", s, paragraphs)
		}
	})
}

func TestExactHidesNothing(t *testing.T) {
	got := Exact("a\u202eb\x1b\n\tc\u200bé").String()
	want := "a<bdi class=\"hidden-character\" title=\"U+202E\">\u202e</bdi>b<bdi class=\"hidden-character\" title=\"U+001B\">\x1b</bdi>\n\tc<bdi class=\"hidden-character\" title=\"U+200B\">\u200b</bdi>é"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWeb(t *testing.T) {
	for _, c := range []struct {
		address, want string
	}{
		{"https://example.org/a?b=c&d=e", "https://example.org/a?b=c&d=e"},
		{"http://example.org", "http://example.org/"},
		{"javascript:alert(1)", ""}, {"JaVaScRiPt:alert(1)", ""}, {" javascript:alert(1)", ""}, {"java\nscript:alert(1)", ""},
		{"data:text/html,x", ""}, {"vbscript:x", ""}, {"file:///etc/passwd", ""}, {"//evil.example", ""}, {"https:evil", ""},
		{"https://user:pass@example.org/", ""}, {"https://example.org\\@evil.example/", ""}, {"mailto:a@b.example", ""}, {"", ""},
	} {
		to, ok := Web(c.address)
		if ok != (c.want != "") || ok && to.href != c.want {
			t.Errorf("Web(%q) = %q, %v; want %q", c.address, to.href, ok, c.want)
		}
	}
	to, _ := Web(`https://example.org/"onclick="x`)
	if got := Away(to, Text("x")).String(); strings.Contains(got, `"onclick`) || !strings.Contains(got, `rel="noopener noreferrer nofollow"`) {
		t.Errorf("the link is %s", got)
	}
}

// TestPolicyOfScript says that a page allows its script and its style sheet as a reader
// of HTML sees them, whatever line ends the source has.
func TestPolicyOfScript(t *testing.T) {
	d := Document{Style: "a {}\r\nb {}", Script: "one();\r\ntwo();", Body: Fill(`<p role="status">x</p>`)}
	unix := Document{Style: "a {}\nb {}", Script: "one();\ntwo();", Body: d.Body}
	if d.String() != unix.String() || strings.Contains(d.String(), "\r") {
		t.Error("line ends make another page")
	}
	// the sums are those of printf 'one();\ntwo();' | openssl sha256 -binary | base64
	want := "default-src 'none'; script-src 'sha256-7CDB+2v1waloJ/wCG5+ZyHN2RhiqGEmQUOljJG2k2x0='; style-src 'sha256-ilRUdbEUDZDYgfJMA0IQvElMpsvxm7uJ12NSxdoCCLM='; base-uri 'none'; form-action 'none'"
	if got := d.Policy(); got != want {
		t.Errorf("the policy is %q, want %q", got, want)
	}
	if !strings.Contains(d.String(), `<p role="status">x</p><script>one();`+"\ntwo();</script>\n</body>") {
		t.Errorf("the page is %q", d.String())
	}
	d.Script = ""
	if strings.Contains(d.String(), "script") {
		t.Errorf("without a script the page is %q", d.String())
	}
}

func TestSource(t *testing.T) {
	if got := Source(7).Address(); got != "?source=7#source" {
		t.Errorf("the link is %s", got)
	}
}
