package engines

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searchtest"
)

func searxngNow() time.Time { return time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC) }

// searxngService answers as an instance does whose engines know no operators.
func searxngService(t *testing.T, docs map[string]string) string {
	return searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.FormValue("q")
		if r.URL.Path != "/search" || r.FormValue("format") != "json" || q == "" || strings.HasPrefix(q, "!") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		results := []map[string]any{}
		for i, name := range searchtest.Match(docs, q) {
			results = append(results, map[string]any{
				"url": searchtest.URL(name), "title": name, "content": docs[name], "engine": "naive", "score": 4.0 / float64(i+1), "publishedDate": nil,
			})
		}
		json.NewEncoder(w).Encode(map[string]any{"query": q, "number_of_results": 0, "results": results, "answers": []any{}, "unresponsive_engines": []any{}})
	})
}

func TestSearxngConformance(t *testing.T) {
	searchtest.RunFilter(t, func(t *testing.T, docs map[string]string) search.Engine {
		return NewSearxng(Config{BaseURL: searxngService(t, docs), HTTP: searchtest.Client(t), Now: searxngNow})
	}, searchtest.NotesHost, searchtest.OnNotesHost)
}

func TestSearxngFaults(t *testing.T) {
	t.Parallel()
	const secret = "pass/w0rd+x"
	searchtest.RunFaults(t, secret, func(t *testing.T, base string, timeout time.Duration) search.Engine {
		base = strings.Replace(base, "://", "://someone:"+url.QueryEscape(secret)+"@", 1)
		return NewSearxng(Config{BaseURL: base, HTTP: searchtest.Client(t), Timeout: timeout})
	})
}

// searxngAsked returns the parameters that a query is sent with.
func searxngAsked(t *testing.T, q search.Query) url.Values {
	t.Helper()
	var got url.Values
	base := searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.URL.Query()
		if r.URL.Path != "/sub/search" {
			t.Errorf("path %s", r.URL.Path)
		}
		io.WriteString(w, `{"results": []}`)
	})
	if _, err := NewSearxng(Config{BaseURL: base + "/sub/", HTTP: searchtest.Client(t), Now: searxngNow}).Search(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSearxngRequest(t *testing.T) {
	for _, tt := range []struct {
		text, filter, since string
		want                url.Values
	}{
		{"utah soil", "", "", url.Values{"q": {"utah soil"}}},
		{"utah soil", ".gov", "2026-06-15", url.Values{"q": {"utah soil site:gov"}, "time_range": {"day"}}},
		{"utah soil", "usu.edu,.gov", "2026-05-20", url.Values{"q": {"utah soil (site:usu.edu OR site:gov)"}, "time_range": {"month"}}},
		{"utah soil", "a.b,c.d,e.f,g.h,i.j", "2025-06-20", url.Values{"q": {"utah soil"}, "time_range": {"year"}}},
		{"!!g :fr soil <9 !wp", "", "2020-01-01", url.Values{"q": {"g fr soil 9 wp"}}},
	} {
		filter, err := marchwarden.ParseSourceFilter(tt.filter)
		if err != nil {
			t.Fatal(err)
		}
		tt.want.Set("format", "json")
		if diff := cmp.Diff(tt.want, searxngAsked(t, search.Query{Text: tt.text, Filter: filter, Since: tt.since})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
	if got := searxngAsked(t, search.Query{Text: "!!! ?? ::"}); got != nil {
		t.Errorf("a query of punctuation was sent: %v", got)
	}
}

// searxngAnswers searches an instance that gives one answer.
func searxngAnswers(t *testing.T, answer string) ([]search.Hit, error) {
	base := searchtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	})
	return NewSearxng(Config{BaseURL: base, HTTP: searchtest.Client(t)}).Search(t.Context(), search.Query{Text: "soil", Limit: 5})
}

func TestSearxngHits(t *testing.T) {
	got, err := searxngAnswers(t, `{"results": [
		{"url": "https://a.example/", "title": "A", "content": "text &quot;x&quot;", "score": 3.5, "publishedDate": "2026-01-02T00:00:00"},
		{"url": "ftp://b.example/", "title": "B", "score": 2}], "unresponsive_engines": [["google", "timeout"]]}`)
	want := []search.Hit{{Locator: "https://a.example/", Title: "A", Snippet: `text "x"`, Score: 3.5, Published: "2026-01-02"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestSearxngEnginesBehind tells an instance that found nothing from one that could not
// look.
func TestSearxngEnginesBehind(t *testing.T) {
	_, err := searxngAnswers(t, `{"results": [], "unresponsive_engines": [["google", "CAPTCHA\u001b[31m"], ["bing", "timeout"], 3]}`)
	if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || !strings.Contains(err.Error(), "google CAPTCHA, bing timeout") {
		t.Errorf("got %v", err)
	}
}

// TestSearxngJSONOff is the usual mistake with a new instance.
func TestSearxngJSONOff(t *testing.T) {
	base := searchtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	_, err := NewSearxng(Config{BaseURL: base, HTTP: searchtest.Client(t)}).Search(t.Context(), search.Query{Text: "soil"})
	if marchwarden.CodeOf(err) != marchwarden.CodeDenied || !strings.Contains(marchwarden.HintOf(err), "search.formats") {
		t.Errorf("got %v, hint %q", err, marchwarden.HintOf(err))
	}
}
