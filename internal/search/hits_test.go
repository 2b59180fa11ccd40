package search_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searchtest"
)

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		" utah\r\n\tsoil\x00pH\u202e\u200b ": "utah soil pH",
		"\xff\xfesoil":                       "soil",
		"🍅":                                  "🍅",
		`"*(((`:                              "", "": "", "\x00": "", "\ufeff": "", "…—?!": "",
		strings.Repeat("word ", 200): strings.TrimSpace(strings.Repeat("word ", 80)),
		strings.Repeat("é", 500):     strings.Repeat("é", 400),
	} {
		q, ok, err := search.Clean(search.Query{Text: text})
		if ok != (want != "") || ok && q.Text != want || err != nil || q.Limit != 10 {
			t.Errorf("%.40q: %q, %v, %v", text, q.Text, ok, err)
		}
	}
	if _, _, err := search.Clean(search.Query{Text: "x", Since: "last week"}); marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
		t.Errorf("a date that is none: %v", err)
	}
	if q, _, _ := search.Clean(search.Query{Text: "x", Limit: 5000}); q.Limit != 50 {
		t.Errorf("limit %d", q.Limit)
	}
}

func TestHeaviest(t *testing.T) {
	words := strings.Fields("bb dddd a cc eeee")
	for n, want := range []string{"", "dddd", "dddd eeee", "bb dddd eeee", "bb dddd cc eeee", "bb dddd a cc eeee", "bb dddd a cc eeee"} {
		if got := strings.Join(search.Heaviest(words, n), " "); got != want {
			t.Errorf("the heaviest %d are %q, want %q", n, got, want)
		}
	}
}

func TestPlainText(t *testing.T) {
	for s, want := range map[string]string{
		`the <strong>best</strong>est <br/>soil`:            "the bestest soil",
		`a<script>alert(1)</script>b<!-- c > -->d`:          "a b d",
		`p < 0.05 and 3 > 2`:                                "p < 0.05 and 3 > 2",
		`&lt;b&gt;x&lt;/b&gt; &amp;lt;i&amp;gt;y &#x202e;z`: "x y z",
		`<<b>script>x`:               "x",
		`cut <span class="searchma`:  "cut",
		"line\none\u2028two\x1b[31m": "line one two",
	} {
		if got := search.PlainText(s); got != want {
			t.Errorf("PlainText(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestFilterWords(t *testing.T) {
	for _, tt := range []struct {
		filter  string
		domains []string
		plain   bool
		query   string
	}{
		{"", nil, true, "soil"},
		{"!nasa.gov", []string{"-nasa.gov"}, true, "soil -site:nasa.gov"},
		{".edu,!.gov,!a.edu,!b.edu", []string{"edu", "-a.edu", "-b.edu"}, false, "soil site:edu -site:a.edu -site:b.edu"},
		{"!a.b,!c.d,!e.f,!g.h,!i.j", []string{"-a.b", "-c.d", "-e.f", "-g.h", "-i.j"}, true, "soil"},
		{"nasa.gov", []string{"nasa.gov"}, true, "soil site:nasa.gov"},
		{".gov,Usu.edu", []string{"gov", "usu.edu"}, false, "soil (site:gov OR site:usu.edu)"},
		{"edu", []string{"edu"}, false, "soil site:edu"},
		{"bücher.example", []string{"xn--bcher-kva.example"}, true, "soil site:xn--bcher-kva.example"},
		{"a.b,c.d,e.f,g.h,i.j", []string{"a.b", "c.d", "e.f", "g.h", "i.j"}, true, "soil"},
		{strings.Repeat("a", 60) + "." + strings.Repeat("b", 60) + "." + strings.Repeat("c", 60) + "." + strings.Repeat("d", 60), nil, true, "soil"},
	} {
		f, err := marchwarden.ParseSourceFilter(tt.filter)
		if err != nil {
			t.Fatal(err)
		}
		domains, not, plain := search.Domains(f)
		for _, d := range not {
			domains = append(domains, "-"+d)
		}
		if diff := cmp.Diff(tt.domains, domains); diff != "" && tt.domains != nil || plain != tt.plain {
			t.Errorf("%q: plain %v\n%s", tt.filter, plain, diff)
		}
		if got := search.WithSites("soil", f); got != tt.query {
			t.Errorf("%q: query %q, want %q", tt.filter, got, tt.query)
		}
		if got := search.WithSites(strings.Repeat("soil ", 90), f); utf8.RuneCountInString(got) > search.MaxQuery && tt.query != "soil" {
			t.Errorf("%q: %d characters", tt.filter, len(got))
		}
		if got := search.WithSites("soil site:x.org", f); got != "soil site:x.org" {
			t.Errorf("%q: %q", tt.filter, got)
		}
	}
}

// TestTidy: whatever a service found, the hits keep the promises.
func TestTidy(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`(<|>|</|&lt;|&gt;|&amp;|b|script|!--|-->| |\x00){0,12}`))
	date := rapid.SampledFrom([]string{"", "2019-05-01", "2024-05-01T00:00:00", "2031-01-01", "soon"})
	hit := rapid.Custom(func(t *rapid.T) search.Hit {
		return search.Hit{
			Locator: rapid.StringMatching(`(https?|ftp)://[aA](\.gov|\.edu|\.com)(:80)?/[xy]?(\?utm_source=z)?(#f)?`).Draw(t, "locator"),
			Title:   text.Draw(t, "title"), Snippet: text.Draw(t, "snippet"), Score: rapid.Float64().Draw(t, "score"), Published: date.Draw(t, "date"),
		}
	})
	filter, err := marchwarden.ParseSourceFilter(".gov,a.edu")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		q := search.Query{Limit: rapid.IntRange(1, 6).Draw(rt, "limit"), Filter: filter, Since: "2020-01-01", Until: "2030-12-31"}
		found := rapid.SliceOf(hit).Draw(rt, "found")
		got := search.Tidy(found, q)
		searchtest.CheckWeb(t, got, q)
		if diff := cmp.Diff(got, search.Tidy(found, q)); diff != "" {
			rt.Fatalf("a second time:\n%s", diff)
		}
		if t.Failed() {
			rt.Fatalf("found %+v", found)
		}
	})
}
