package report

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// shown is the view of a result as it is, and as the content of a page.
func shown(t testing.TB, res *marchwarden.Result) (string, *html.Node) {
	t.Helper()
	body, err := AppBody(res)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(strings.NewReader("<!DOCTYPE html><html><head><title>x</title><style></style></head><body>" + body + "</body></html>"))
	if err != nil {
		t.Fatal(err)
	}
	return body, doc
}

func TestAppBodyIsInert(t *testing.T) {
	for _, p := range append([]string{""}, payloads...) {
		for _, plant := range []func(string) string{func(s string) string { return s + p }, func(s string) string { return p + s }} {
			r := sample(t, plant)
			_, doc := shown(t, r.Result)
			inert(t, doc)
			var quoted []string
			for _, n := range elements(doc, "blockquote") {
				quoted = append(quoted, textOf(n))
			}
			for i, c := range r.Result.Citations {
				if want := strings.ReplaceAll(strings.ToValidUTF8(c.RawExcerpt, "\uFFFD"), "\x00", "\uFFFD"); !slices.Contains(quoted, want) {
					t.Errorf("citation %d: the excerpt %q is not shown", i+1, want)
				}
			}
			if t.Failed() {
				t.Fatalf("with %q", p)
			}
		}
	}
}

// TestAppBodyIsTheReport says that the view is the report's HTML: all of it is on the
// page of a report that knows the result alone, and every section but those that tell
// of more than the result is on the page of one that knows all.
func TestAppBodyIsTheReport(t *testing.T) {
	for _, p := range append([]string{""}, payloads...) {
		r := sample(t, func(s string) string { return s + p })
		view, doc := shown(t, r.Result)
		page, _ := rendered(t, &Report{Result: r.Result})
		cut := strings.Index(view, "<nav ")
		if cut < 0 {
			t.Fatal("there is no list of contents")
		}
		for _, part := range []string{strings.TrimSuffix(view[:cut], "\n"), view[cut:]} {
			if part == "" || !strings.Contains(page, part) {
				t.Errorf("the page of the report does not hold %q", part)
			}
		}
		r.Problems = nil // of the record
		full, _ := rendered(t, r)
		same := 0
		for _, s := range elements(doc, "section") {
			id := attribute(s, "id")
			from := strings.Index(view, `<section id="`+id+`"`)
			section := view[from : from+strings.Index(view[from:], "</section>")]
			if strings.Contains(full, section) {
				same++
			} else if !slices.Contains([]string{"references", "sources", "cost", "check"}, id) {
				t.Errorf("the whole report does not hold the section %s", id)
			}
		}
		if same != 9 {
			t.Errorf("%d sections are the same as in the whole report", same)
		}
		if t.Failed() {
			t.Fatalf("with %q", p)
		}
	}
}

func TestAppBodyWithoutResult(t *testing.T) {
	if _, err := AppBody(nil); !errors.Is(err, marchwarden.CodeInvalid) {
		t.Errorf("the error is %v", err)
	}
	view, doc := shown(t, &marchwarden.Result{})
	inert(t, doc)
	if !strings.Contains(view, "No answer.") || !strings.Contains(view, "None cited.") {
		t.Errorf("an empty result is %q", view)
	}
}

func TestAppPage(t *testing.T) {
	page := string(AppPage())
	if page != string(AppPage()) {
		t.Error("the page has other bytes the second time")
	}
	if len(page) > 40<<10 {
		t.Errorf("the page has %d bytes", len(page))
	}
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	hash := func(element string) string {
		all := elements(doc, element)
		if len(all) != 1 || len(all[0].Attr) > 0 {
			t.Fatalf("there are %d <%s>, or they have attributes", len(all), element)
		}
		sum := sha256.Sum256([]byte(all[0].FirstChild.Data))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	want := "default-src 'none'; script-src " + hash("script") + "; style-src " + hash("style") + "; base-uri 'none'; form-action 'none'"
	policy := ""
	for _, n := range elements(doc) {
		if n.Data == "meta" && attribute(n, "http-equiv") == "Content-Security-Policy" {
			policy = attribute(n, "content")
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "style" || a.Key == "href" {
				t.Errorf("<%s> has %s=%q", n.Data, a.Key, a.Val)
			}
		}
	}
	if policy != want {
		t.Errorf("the policy is %q, want %q", policy, want)
	}
	if got := elements(doc, "script")[0].FirstChild.Data; got != appScript {
		t.Error("the script is not read as it was written")
	}
	if m := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(|fetch\(|XMLHttpRequest|import\(|localStorage|cookie|setTimeout|url\(|@import`).FindString(page); m != "" {
		t.Errorf("the page has %q", m)
	}
}

// TestAppKnowsItsHTML says that the script lets through every element and attribute of
// a view, and none that a report has not.
func TestAppKnowsItsHTML(t *testing.T) {
	from := strings.Index(appScript, "const allowed = {")
	table := appScript[from : from+strings.Index(appScript[from:], "};")]
	known := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+): "([a-z -]*)"`).FindAllStringSubmatch(table, -1) {
		known[m[1]] = m[2]
		for _, a := range strings.Fields(m[2]) {
			if !slices.Contains(strings.Fields(allowed[m[1]]), a) {
				t.Errorf("the script allows <%s %s>, which no report has", m[1], a)
			}
		}
	}
	if len(known) < 20 {
		t.Fatalf("only %d elements are found in %q", len(known), table)
	}
	res := sample(t, func(s string) string { return s + strings.Join(payloads, " ") }).Result
	res.Blocks = hostileBlocks("x").Blocks[:5] // but for charts, which are left out
	_, doc := shown(t, res)
	for _, n := range elements(elements(doc, "body")[0]) {
		attrs, ok := known[n.Data]
		if !ok {
			t.Errorf("the script drops <%s>", n.Data)
		}
		for _, a := range n.Attr {
			if !slices.Contains(strings.Fields(attrs), a.Key) {
				t.Errorf("the script drops <%s %s>", n.Data, a.Key)
			}
		}
	}
	body, _ := html.Parse(strings.NewReader(string(AppPage())))
	for _, n := range elements(body) {
		if id := attribute(n, "id"); id != "" && slices.ContainsFunc(elements(doc), func(o *html.Node) bool { return attribute(o, "id") == id }) {
			t.Errorf("the page and the view both have the id %q", id)
		}
	}
}
