package engines

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searchtest"
)

// wikipediaService answers as MediaWiki does, but to any of the words.
func wikipediaService(t *testing.T, docs map[string]string) string {
	return searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.FormValue("srsearch")
		if r.URL.Path != "/w/api.php" || r.FormValue("action") != "query" || r.FormValue("list") != "search" || r.FormValue("formatversion") != "2" || q == "" || len(q) > 300 {
			io.WriteString(w, `{"error": {"code": "badvalue", "info": "no such search"}}`)
			return
		}
		found := []map[string]any{}
		for _, name := range searchtest.Match(docs, q) {
			found = append(found, map[string]any{"ns": 0, "title": name, "snippet": `<span class="searchmatch">` + docs[name] + `</span>`, "timestamp": "2025-01-02T03:04:05Z"})
		}
		json.NewEncoder(w).Encode(map[string]any{"batchcomplete": true, "query": map[string]any{"search": found}})
	})
}

func TestWikipediaConformance(t *testing.T) {
	searchtest.RunFilter(t, func(t *testing.T, docs map[string]string) search.Engine {
		return NewWikipedia(Config{BaseURL: wikipediaService(t, docs), HTTP: searchtest.Client(t)})
	}, "wikipedia.org", func(loc string) bool { return strings.HasPrefix(loc, "https://en.wikipedia.org/wiki/") })
}

func TestWikipediaFaults(t *testing.T) {
	t.Parallel()
	searchtest.RunFaults(t, "", func(t *testing.T, base string, timeout time.Duration) search.Engine {
		return NewWikipedia(Config{BaseURL: base, HTTP: searchtest.Client(t), Timeout: timeout})
	})
}

// TestAPIErrors: the service reports errors with status 200.
func TestWikipediaAPIErrors(t *testing.T) {
	for code, want := range map[string]marchwarden.Code{
		"ratelimited": marchwarden.CodeRateLimited, "maxlag": marchwarden.CodeRateLimited, "readapidenied": marchwarden.CodeDenied, "internal_api_error_DBQueryError": marchwarden.CodeUnavailable,
	} {
		base := searchtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
			json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": code, "info": "<b>why</b>\x1b[31m" + strings.Repeat("x", 1000)}})
		})
		_, err := NewWikipedia(Config{BaseURL: base, HTTP: searchtest.Client(t)}).Search(t.Context(), search.Query{Text: "soil"})
		if marchwarden.CodeOf(err) != want || !strings.Contains(err.Error(), "wikipedia: error "+code+": why") || len(err.Error()) > 300 || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v, want %v", code, err, want)
		}
	}
}

func TestWikipediaHits(t *testing.T) {
	var agent string
	base := searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		agent = r.UserAgent()
		io.WriteString(w, `{"query": {"search": [
			{"title": "AC/DC", "snippet": "the <span class=\"searchmatch\">band</span> &amp; its &lt;i&gt;fans&lt;/i&gt;\nsince", "timestamp": "2025-05-01T00:00:00Z"},
			{"title": "What? 100% Über-\"x\"", "snippet": "", "timestamp": "2025-05-01T00:00:00Z"},
			{"title": "Forgotten", "snippet": "", "timestamp": "2019-05-01T00:00:00Z"},
			{"title": "@evil.example/", "snippet": ""},
			{"title": ""}, {"title": 3}
		]}}`)
	})
	e := NewWikipedia(Config{BaseURL: base, HTTP: searchtest.Client(t), UserAgent: "test/1 (test@example.org)"})
	got, err := e.Search(t.Context(), search.Query{Text: "Band", Since: "2024-01-01", Until: "2024-12-31"})
	want := []search.Hit{
		{Locator: "https://en.wikipedia.org/wiki/AC/DC", Title: "AC/DC", Snippet: "the band & its fans since", Score: 1},
		{Locator: "https://en.wikipedia.org/wiki/What%3F_100%25_%C3%9Cber-%22x%22", Title: `What? 100% Über-"x"`, Score: 0.5},
		{Locator: "https://en.wikipedia.org/wiki/@evil.example/", Title: "@evil.example/", Score: 1.0 / 3},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || agent != "test/1 (test@example.org)" {
		t.Errorf("%v, agent %q (-want +got):\n%s", err, agent, diff)
	}
	gov, err := marchwarden.ParseSourceFilter(".gov")
	if err != nil {
		t.Fatal(err)
	}
	agent = ""
	if hits, err := e.Search(t.Context(), search.Query{Text: "Band", Filter: gov}); len(hits) != 0 || err != nil || agent != "" {
		t.Errorf("a filter without Wikipedia: %v, %v, request by %q", hits, err, agent)
	}
}

func TestWikipediaLanguage(t *testing.T) {
	for base, want := range map[string]string{
		"":                              "en.wikipedia.org",
		"https://DE.wikipedia.org/":     "de.wikipedia.org",
		"https://nds-nl.wikipedia.org/": "nds-nl.wikipedia.org",
		"http://127.0.0.1:8080":         "en.wikipedia.org",
		"http://mirror":                 "en.wikipedia.org",
		"https://x.y.wikipedia.org":     "en.wikipedia.org",
		"://":                           "en.wikipedia.org",
	} {
		if got := language(base) + ".wikipedia.org"; got != want {
			t.Errorf("%s: articles at %s, want %s", base, got, want)
		}
	}
}

// TestFewerWords: no article has all of the words, and some have the telling ones.
func TestWikipediaFewerWords(t *testing.T) {
	var asked []string
	base := searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.FormValue("srsearch"))
		if len(asked) == 1 {
			io.WriteString(w, `{"query": {"search": []}}`)
			return
		}
		io.WriteString(w, `{"query": {"search": [{"title": "CRISPR gene editing"}]}}`)
	})
	e := NewWikipedia(Config{BaseURL: base, HTTP: searchtest.Client(t)})
	hits, err := e.Search(t.Context(), search.Query{Text: "What emerging startups in biotech are working on CRISPR gene therapy?", Limit: 5})
	want := []string{"emerging startups biotech working CRISPR gene therapy", "emerging startups CRISPR"}
	if diff := cmp.Diff(want, asked); diff != "" || err != nil || len(hits) != 1 {
		t.Errorf("%v, %v (-want +got):\n%s", hits, err, diff)
	}
	asked = nil
	if _, err := e.Search(t.Context(), search.Query{Text: "tomato"}); err != nil || len(asked) != 1 {
		t.Errorf("one word was asked %d times, %v", len(asked), err)
	}
}

func TestWikipediaKeywords(t *testing.T) {
	for question, want := range map[string]string{
		"What is the capital of Norway?":                        "capital Norway",
		"Who wrote \"Pride and Prejudice\" and when?":           "wrote Pride Prejudice",
		"How many people died of COVID-19 in the U.S.?":         "people died COVID-19 U.S",
		"Explain Newton's 2nd law, please":                      "Newton 2nd law",
		"insource:/x.*/ -cats intitle:\"dogs\" ~foo incategory": "insource x cats intitle dogs foo incategory",
		"what is it": "what is it",
		"AND OR NOT": "and or not",
		"量子コンピュータとは何ですか？":           "量子コンピュータとは何ですか",
		"US president list":         "US president",
		"C++ or C# templates c++":   "C++ C# templates",
		"?!.,;:-—… ((( ":            "",
		strings.Repeat("x", 10_000): strings.Repeat("x", mostBytes),
	} {
		if got := strings.Join(keywords(question, "en"), " "); got != want {
			t.Errorf("keywords(%.60q) = %q, want %q", question, got, want)
		}
	}
	if got := strings.Join(keywords("Was ist die Hauptstadt von Norwegen?", "de"), " "); got != "Was ist die Hauptstadt von Norwegen" {
		t.Errorf("German: %q", got)
	}
}

// TestAnyQuestion: whatever is asked fits the service and holds no operator.
func TestWikipediaAnyQuestion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := keywords(rapid.String().Draw(t, "question"), rapid.SampledFrom([]string{"en", "de"}).Draw(t, "language"))
		joined := strings.Join(words, " ")
		if len(joined) > 300 || len(words) > wikipediaMostWords || !utf8.ValidString(joined) || strings.ContainsAny(joined, "\"*?~!:/\\()[]{}<>|\n") {
			t.Fatalf("%q", joined)
		}
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") || w == "" }) {
			t.Fatalf("%q", words)
		}
		if len(words) > 1 && len(fewer(words)) >= len(words) {
			t.Fatalf("no fewer words than %q", words)
		}
	})
}
