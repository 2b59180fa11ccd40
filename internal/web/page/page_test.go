package page

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// elements of a page, in their order.
func elements(t testing.TB, page []byte) []*html.Node {
	t.Helper()
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var out []*html.Node
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			out = append(out, n)
		}
	}
	return out
}

func attr(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func within(n *html.Node, names ...string) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.Type == html.ElementNode && slices.Contains(names, p.Data) {
			return true
		}
	}
	return false
}

func isFragment(page []byte) bool { return !bytes.Contains(page, []byte("<!DOCTYPE html>")) }

// TestPages holds every page to what readers of all kinds need, with a typical view
// and with an empty one.
func TestPages(t *testing.T) {
	for kind, all := range map[string][]show{"typical": typical(), "empty": empty()} {
		for _, p := range all {
			t.Run(kind+"/"+p.name, func(t *testing.T) {
				page := p.render()
				nodes := elements(t, page)
				checkIDs(t, nodes)
				checkForms(t, nodes, kind == "typical")
				checkTables(t, nodes)
				checkForeign(t, nodes)
				if !isFragment(page) {
					checkOutline(t, nodes)
				}
				for _, broken := range []string{"ZgotmplZ", "<no value>", "%!", "&amp;lt;", "NaN", "0001-01-01"} {
					if bytes.Contains(page, []byte(broken)) {
						t.Errorf("%q is in the page", broken)
					}
				}
			})
		}
	}
}

// checkIDs: ids are unique, and what is referred to is there.
func checkIDs(t *testing.T, nodes []*html.Node) {
	ids := map[string]bool{}
	for _, n := range nodes {
		if id, ok := attr(n, "id"); ok {
			if ids[id] {
				t.Errorf("id %q is there twice", id)
			}
			ids[id] = true
		}
	}
	for _, n := range nodes {
		for _, key := range []string{"for", "aria-labelledby", "aria-describedby"} {
			v, _ := attr(n, key)
			for _, id := range strings.Fields(v) {
				if !ids[id] {
					t.Errorf("<%s %s=%q> leads nowhere", n.Data, key, v)
				}
			}
		}
		if to, ok := attr(n, "href"); ok && strings.HasPrefix(to, "#") && !ids[to[1:]] {
			t.Errorf("the link %q leads nowhere", to)
		}
	}
}

// checkForms: every field has a name that people can read, and every change a token.
func checkForms(t *testing.T, nodes []*html.Node, filled bool) {
	labels := map[string]bool{}
	for _, n := range nodes {
		if id, ok := attr(n, "for"); ok && n.Data == "label" {
			labels[id] = strings.TrimSpace(text(n)) != ""
		}
	}
	for _, n := range nodes {
		kind, _ := attr(n, "type")
		if n.Data == "textarea" || n.Data == "select" || n.Data == "input" && kind != "hidden" {
			id, _ := attr(n, "id")
			if said, _ := attr(n, "aria-label"); said == "" && !labels[id] && !within(n, "label") {
				t.Errorf("<%s id=%q> has no label", n.Data, id)
			}
		}
		if n.Data == "button" && strings.TrimSpace(text(n)) == "" {
			t.Error("a button says nothing")
		}
		if n.Data != "form" {
			continue
		}
		method, _ := attr(n, "method")
		if method != "get" && method != "post" {
			t.Errorf("a form has method %q", method)
		}
		token := false
		for d := range n.Descendants() {
			if name, _ := attr(d, "name"); name == "csrf" {
				v, _ := attr(d, "value")
				token = v != "" || !filled
			}
		}
		if token != (method == "post") {
			t.Errorf("a form with method %s and csrf %v", method, token)
		}
	}
}

func checkTables(t *testing.T, nodes []*html.Node) {
	for _, n := range nodes {
		switch n.Data {
		case "table":
			if c := n.FirstChild; c == nil || c.Data != "caption" {
				t.Error("a table has no caption")
			}
		case "th":
			if _, ok := attr(n, "scope"); !ok {
				t.Errorf("a head %q has no scope", text(n))
			}
		case "img":
			if _, ok := attr(n, "alt"); !ok {
				t.Error("an image has no alt")
			}
		case "meter":
			if hidden, _ := attr(n, "aria-hidden"); hidden == "" {
				if said, _ := attr(n, "aria-label"); said == "" {
					t.Error("a meter has no name")
				}
			}
		}
	}
}

// checkForeign: a text of unknown language is of unknown direction, too.
func checkForeign(t *testing.T, nodes []*html.Node) {
	for _, n := range nodes {
		lang, ok := attr(n, "lang")
		dir, _ := attr(n, "dir")
		if n.Data != "html" && ok && (lang != "" || dir != "auto") {
			t.Errorf("<%s lang=%q dir=%q>", n.Data, lang, dir)
		}
	}
}

// checkOutline: one main part, one heading of the first level, no level left out.
func checkOutline(t *testing.T, nodes []*html.Node) {
	count := map[string]int{}
	last := 0
	for _, n := range nodes {
		if !within(n, "svg", "template") { // pictures have titles of their own
			count[n.Data]++
		}
		if len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6' && !within(n, "template") {
			level := int(n.Data[1] - '0')
			if level > last+1 {
				t.Errorf("heading %q of level %d comes after level %d", text(n), level, last)
			}
			last = level
		}
		if lang, _ := attr(n, "lang"); n.Data == "html" && lang != "en" {
			t.Errorf("the page is in %q", lang)
		}
	}
	for name, want := range map[string]int{"main": 1, "h1": 1, "title": 1} {
		if count[name] != want {
			t.Errorf("%d elements %s, want %d", count[name], name, want)
		}
	}
}

// TestEvidenceIsVerbatim holds the marked text to the excerpt, to the character.
func TestEvidenceIsVerbatim(t *testing.T) {
	for _, excerpt := range []string{"plain", "<b>bold</b> & \"quoted\"", "two\r\nlines\rand\n\n more ", "\n begins with a line", "\u202eright to left\u202c and \u200b nothing", "tab\t\u00a0\ufeff", strings.Repeat("long ", 100)} {
		e := Evidence{RunID: "x", Number: 3, Of: 3, Window: &report.Window{Before: "before\r\n", Excerpt: excerpt, After: "<after>"}}
		for name, p := range map[string]show{"panel": page("panel", e, panel), "answer": page("answer", Answer{Evidence: &e}, Answer.Page), "alone": page("panel", Evidence{Number: 1, Cited: marchwarden.Citation{RawExcerpt: excerpt}}, panel)} {
			var got []string
			for _, n := range elements(t, p.render()) {
				if id, _ := attr(n, "id"); id == "excerpt" {
					got = append(got, text(n))
				}
			}
			if !slices.Equal(got, []string{excerpt}) {
				t.Errorf("%s shows %q, want %q", name, got, excerpt)
			}
		}
	}
}

// TestWhatWasTyped is given back as it was, line breaks and all.
func TestWhatWasTyped(t *testing.T) {
	typed := "\n\nfirst </textarea><script>\nlast "
	for _, n := range elements(t, page("ask", Ask{Question: typed, Context: typed}, Ask.Page).render()) {
		if n.Data == "textarea" && text(n) != typed {
			t.Errorf("%q came back as %q", typed, text(n))
		}
	}
}

// TestFaultsStandAtTheirFields with the field marked as wrong, and in the summary.
func TestFaultsStandAtTheirFields(t *testing.T) {
	fields := []string{"question", "context", "depth", "token_budget", "max_sources", "researcher"}
	for _, field := range fields {
		a := sampleAsk()
		a.Faults = []Fault{{field, "it is wrong so", "do it right"}}
		page := string(page("ask", a, Ask.Page).render())
		if n := strings.Count(page, "it is wrong so"); n != 2 {
			t.Errorf("%s: said %d times, want at the field and in the summary", field, n)
		}
		for _, want := range []string{`id="` + field + `-fault"`, `href="#` + field + `"`, ` ` + field + `-fault"`} {
			if !strings.Contains(strings.ReplaceAll(page, `aria-describedby="`, `aria-describedby=" `), want) {
				t.Errorf("%s: %s is missing", field, want)
			}
		}
	}
}

// TestWeight keeps an answer with many citations light: page, style sheets, script and
// icon together.
func TestWeight(t *testing.T) {
	a := sampleAnswer(200, true)
	n := len(page("answer", a, Answer.Page).render())
	total := n
	for _, body := range Static {
		total += len(body)
	}
	t.Logf("200 citations: page %d, with all it loads %d bytes", n, total)
	if total > 300_000 {
		t.Errorf("a page of 200 citations weighs %d bytes, over 300,000", total)
	}
}

// TestNothingIsClaimed of what a run does not have: a confidence, an answer, a source.
func TestNothingIsClaimed(t *testing.T) {
	origins := []report.Fact{{Label: "Origins", Value: "0"}}
	for name, c := range map[string]struct {
		view       Answer
		want, lack []string
	}{
		"cut off": {Answer{ID: "a", Partial: true, View: report.View{Notices: []string{"cut off"}}, Can: Can{Resume: true}},
			[]string{"There is no answer yet"}, []string{"0.00", " sure (", "what there was by then", `id="confidence"`, `id="cost"`, `id="source"`, "Check the sources"}},
		"refused": {Answer{ID: "a", Body: h.Fill(`<p>No evidence was found.</p>`), Report: report.Report{Result: &marchwarden.Result{Confidence: .9}}, View: report.View{Factors: origins, Gaps: []report.GapGroup{{Words: "Not found", Gaps: []report.Gap{{Topic: "it"}}}}}, Can: Can{Check: true}},
			[]string{`id="gaps"`}, []string{"0.90", " sure (", "how likely", `id="source"`, "Check the sources"}},
		"cited": {Answer{ID: "a", Body: h.Fill(`<p>So.</p>`), Report: report.Report{Result: &marchwarden.Result{Confidence: .9}}, Grounds: "2 sentences <i>", View: report.View{Factors: origins, Sources: []report.SourceView{{Number: 1, Heading: "T"}}, Claims: claimsOf("supported", "partial")}, Can: Can{Check: true}},
			[]string{"2 sentences &lt;i&gt;<", "very sure (0.90)", "how likely", `id="source"`, "Check the sources"}, []string{"contradiction"}},
		"quoted": {Answer{ID: "a", Cost: new(float64), Body: h.Fill(`<p>So.</p>`), View: report.View{Sources: []report.SourceView{{Number: 1, Heading: "T"}}, Lead: "So <b>", LeadsTo: 1, Claims: claimsOf("quoted", "quoted")}},
			[]string{"no cost", `<strong lang="" dir="auto">So &lt;b&gt;</strong> <a class="cite"`, `tr class="quoted"`}, []string{"supported<", `id="closest"`}},
		"closest": {Answer{ID: "a", Body: h.Fill(`<p>Nothing says so.</p>`), View: report.View{Lead: "I don't know.", Closest: []report.SideView{{Heading: "<i>T", Locator: "a\x1b.md", Excerpt: "Near <script>\nit.", Facts: []string{"of \u202eit"}}, {Heading: "b.md", Locator: "b.md", Excerpt: "x"}}}},
			[]string{"I don&#39;t know.", "Closest passages (not an answer)", "&lt;i&gt;T", "Near &lt;script&gt;", ">b.md<"}, []string{"<script>\nit", "\x1b", "of \u202eit", "data-source"}},
	} {
		got := string(page("answer", c.view, Answer.Page).render())
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q is not there", name, w)
			}
		}
		for _, w := range c.lack {
			if strings.Contains(got, w) {
				t.Errorf("%s: %q is there", name, w)
			}
		}
	}
}

// TestPreview: a source that the reader did not choose stands beside the answer and covers nothing.
func TestPreview(t *testing.T) {
	e := sampleEvidence(2)
	for _, e.Preview = range []bool{false, true} {
		got := string(page("answer", Answer{ID: "a", Evidence: &e}, Answer.Page).render())
		if strings.Contains(got, `class="panel open"`) == e.Preview || strings.Contains(got, `data-preview="2"`) != e.Preview || strings.Contains(got, `class="close"`) == e.Preview {
			t.Errorf("with preview %v it is %s", e.Preview, got[strings.Index(got, "<aside"):][:600])
		}
	}
}

// TestWordings: the two of a passage do not run together.
func TestWordings(t *testing.T) {
	got := string(page("drift", Drift{ID: "a", Report: drift.Report{Sources: []drift.Source{{Title: "T", State: drift.Changed, Citations: []int{1}}}, Passages: []drift.Passage{{Citation: 1, State: drift.Altered, Excerpt: "roof is 515 metres", Now: "roof is 520 metres"}}}}, Drift.Page).render())
	if want := "<del>roof is 515 metres</del> <ins>roof is 520 metres</ins>"; !strings.Contains(got, want) {
		t.Errorf("%q is not in %s", want, got)
	}
}

// TestUnanswered: a run that cites nothing does not look like one that does.
func TestUnanswered(t *testing.T) {
	zero, free := marchwarden.Unit(0), 0.0
	for _, c := range []struct {
		entry run.Entry
		want  bool
	}{
		{run.Entry{Standing: run.Standing{Status: run.Complete}, Confidence: &zero}, true},
		{run.Entry{Standing: run.Standing{Status: run.Complete}, Confidence: &zero, Citations: 1}, false},
		{run.Entry{Standing: run.Standing{Status: run.Running}, CostUSD: &free}, false},
		{run.Entry{Standing: run.Standing{Status: run.Interrupted}, CostUSD: &free}, false},
		{run.Entry{Standing: run.Standing{Status: run.Planned}}, false},
	} {
		got := string(page("history", History{Entries: []run.Entry{c.entry}, Total: 1}, History.Page).render())
		if strings.Contains(got, "no answer") != c.want || strings.Contains(got, "not sure (0.00)") != (c.entry.Citations > 0) {
			t.Errorf("%+v is shown as %s", c.entry, got[strings.Index(got, `class="entry"`):][:400])
		}
		if strings.Contains(got, "$0.00") || strings.Contains(got, "7 ms") || strings.Contains(got, "0.01 s") {
			t.Errorf("%s: what is counted so far is said to be all", c.entry.Status)
		}
	}
}

func claimsOf(verdicts ...string) []report.ClaimView {
	var out []report.ClaimView
	for i, v := range verdicts {
		out = append(out, report.ClaimView{Number: i + 1, Text: "So.", Verdict: v})
	}
	return out
}

func TestLocal(t *testing.T) {
	for in, want := range map[string]string{"": "/", "/history?q=a": "/history?q=a", "//evil.example": "/", "https://evil.example": "/", "/\\evil.example": "/", "/\t/evil": "/", "javascript:x": "/"} {
		if got := h.Local(in).Address(); got != want {
			t.Errorf("local(%q) is %q, want %q", in, got, want)
		}
	}
}

func TestConcurrent(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, p := range typical() {
				_ = p.write(p.view)
			}
		})
	}
	wg.Wait()
}

// TestNoScriptNeeded: what the script does has a plain way in the page.
func TestNoScriptNeeded(t *testing.T) {
	for _, n := range elements(t, page("answer", sampleAnswer(7, true), Answer.Page).render()) {
		to, _ := attr(n, "href")
		if number, ok := attr(n, "data-source"); ok && n.Data == "a" && to != "?source="+number+"#source" {
			t.Errorf("source %s is reached by %q", number, to)
		}
	}
	run := page("run", Run{ID: "a", Live: sampleLive()}, Run.Page).render()
	if !regexp.MustCompile(`<noscript>.*href="/runs/a"`).Match(run) {
		t.Error("a run without script has no link to look again")
	}
}

// TestSourcesByDocument: what is cited from one document is on one card.
func TestSourcesByDocument(t *testing.T) {
	a := Answer{View: report.View{Sources: []report.SourceView{{Number: 1, Document: "a.md", Excerpt: "One."}, {Number: 2, Document: "b.md", Excerpt: "Two."}, {Number: 3, Document: "a.md", Heading: "A", Excerpt: "Three."}}, Documents: [][]int{{1, 3}, {2}}}}
	got := a.sources().String()
	if strings.Count(got, `<li class="source">`) != 2 || strings.Index(got, "Three.") > strings.Index(got, "Two.") {
		t.Errorf("the cards are %s", got)
	}
}

// TestPlainWords: outside the details no page of an answer speaks as the program does inside.
func TestPlainWords(t *testing.T) {
	for _, show := range []show{page("answer", sampleAnswer(7, true), Answer.Page), page("live", sampleLive(), Live.Node), page("ask", sampleAsk(), Ask.Page)} {
		for _, n := range elements(t, show.render()) {
			if within(n, "details", "head") {
				continue
			}
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				for _, word := range []string{"rihla", "authority", "recency", "origin", "extractive", "match"} {
					if c.Type == html.TextNode && strings.Contains(strings.ToLower(c.Data), word) {
						t.Errorf("%s says %q", show.name, c.Data)
					}
				}
			}
		}
	}
}
