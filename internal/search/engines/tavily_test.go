package engines

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searchtest"
)

const tavilySecret = "tvly-s3cret/key+1"

// tavilyService answers as Tavily does, but knows no filter.
func tavilyService(t *testing.T, docs map[string]string) string {
	return searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		var q tavilyQuestion
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || r.Method != http.MethodPost || r.URL.Path != "/search" || r.Header.Get("Authorization") != "Bearer "+tavilySecret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if q.Query == "" || len([]rune(q.Query)) > 400 || strings.ContainsAny(q.Query, "\n\x00") {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"detail": {"error": "Query is missing or too long."}}`)
			return
		}
		results := []map[string]any{}
		for i, name := range searchtest.Match(docs, q.Query) {
			results = append(results, map[string]any{
				"url": searchtest.URL(name), "title": "About " + name, "content": docs[name], "score": 0.9 - float64(i)/100, "raw_content": nil,
			})
		}
		json.NewEncoder(w).Encode(map[string]any{"query": q.Query, "answer": nil, "images": []any{}, "results": results[:min(len(results), q.MaxResults)]})
	})
}

func TestTavilyConformance(t *testing.T) {
	searchtest.RunFilter(t, func(t *testing.T, docs map[string]string) search.Engine {
		return NewTavily(Config{Key: tavilySecret, BaseURL: tavilyService(t, docs), HTTP: searchtest.Client(t)})
	}, searchtest.NotesHost, searchtest.OnNotesHost)
}

func TestTavilyFaults(t *testing.T) {
	t.Parallel()
	searchtest.RunFaults(t, tavilySecret, func(t *testing.T, base string, timeout time.Duration) search.Engine {
		return NewTavily(Config{Key: tavilySecret, BaseURL: base, HTTP: searchtest.Client(t), Timeout: timeout})
	})
}

func TestTavilyRequest(t *testing.T) {
	for _, tt := range []struct {
		filter string
		limit  int
		want   string
	}{
		{"", 7, `{"query":"utah soil","search_depth":"basic","max_results":7,"start_date":"2024-01-01","end_date":"2024-12-31","include_raw_content":false}`},
		{"nasa.gov,bücher.example", 50, `{"query":"utah soil","search_depth":"basic","max_results":20,"include_domains":["nasa.gov","xn--bcher-kva.example"],"start_date":"2024-01-01","end_date":"2024-12-31","include_raw_content":false}`},
		{"nasa.gov,!spam.example,!.xyz", 3, `{"query":"utah soil","search_depth":"basic","max_results":20,"exclude_domains":["spam.example"],"start_date":"2024-01-01","end_date":"2024-12-31","include_raw_content":false}`},
		{"!spam.example", 7, `{"query":"utah soil","search_depth":"basic","max_results":7,"exclude_domains":["spam.example"],"start_date":"2024-01-01","end_date":"2024-12-31","include_raw_content":false}`},
		// One suffix, and no domain can be passed on: the others would be all there is.
		{"nasa.gov,.edu", 3, `{"query":"utah soil","search_depth":"basic","max_results":20,"start_date":"2024-01-01","end_date":"2024-12-31","include_raw_content":false}`},
	} {
		var got, agent string
		base := searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			got, agent = string(b), r.UserAgent()
			io.WriteString(w, `{"results": []}`)
		})
		filter, err := marchwarden.ParseSourceFilter(tt.filter)
		if err != nil {
			t.Fatal(err)
		}
		e := NewTavily(Config{Key: tavilySecret, BaseURL: base, HTTP: searchtest.Client(t), UserAgent: "test/1"})
		q := search.Query{Text: " utah\n\x07soil\u202e ", Limit: tt.limit, Filter: filter, Since: "2024-01-01", Until: "2024-12-31"}
		if hits, err := e.Search(t.Context(), q); err != nil || len(hits) != 0 {
			t.Errorf("%q: %v, %v", tt.filter, hits, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || agent != "test/1" {
			t.Errorf("%q: request (-want +got), agent %q:\n%s", tt.filter, agent, diff)
		}
	}
}

func TestTavilyHits(t *testing.T) {
	body := `{"results": [
		{"url": "https://A.example/x?utm_source=t#top", "title": "<b>Soils</b> &amp; water", "content": "# Title. **Bold** [text](http://evil.example/?q=1) | a | b |\n> said ![i](http://evil.example/p.png) \u202eend", "score": 0.5, "published_date": "Tue, 12 Nov 2024 03:49:00 GMT"},
		{"url": "https://a.example/x", "title": "the same", "content": "again", "score": 0.4},
		{"url": 12, "title": "bad item"},
		{"url": "javascript:alert(1)", "title": "not fetchable", "score": 0.9},
		{"url": "https://old.example/", "title": "too old", "score": 0.8, "published_date": "2020-01-01"},
		{"url": "https://b.example/", "title": null, "content": null, "score": 0.7}
	]}`
	var a tavilyAnswer
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatal(err)
	}
	got, err := a.hits("tavily")
	got = search.Tidy(got, search.Query{Limit: 5, Since: "2024-01-01"})
	if err != nil {
		t.Fatal(err)
	}
	want := []search.Hit{
		{Locator: "https://b.example/", Score: 0.7},
		{Locator: "https://a.example/x", Title: "Soils & water", Snippet: "Title. Bold text a b said i end", Score: 0.5, Published: "2024-11-12"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
}

// TestTavilyRecorded replays exchanges with the real service.
func TestTavilyRecorded(t *testing.T) {
	ours := func(name string) bool {
		return path.Base(path.Dir(name)) == "test_tavily" && path.Ext(name) == ".yaml"
	}
	for _, f := range datatest.Files(t, "api/cassettes.tar.gz", ours) {
		t.Run(path.Base(f.Name), func(t *testing.T) { replay(t, f.Data) })
	}
}

// recording is one file of exchanges.
type recording struct {
	Interactions []struct {
		Request struct {
			URI    string         `yaml:"uri"`
			Parsed map[string]any `yaml:"parsed_body"`
		} `yaml:"request"`
		Response struct {
			Parsed map[string]any `yaml:"parsed_body"`
		} `yaml:"response"`
	} `yaml:"interactions"`
}

func replay(t *testing.T, file []byte) {
	var rec recording
	if err := yaml.Unmarshal(file, &rec); err != nil || len(rec.Interactions) != 1 {
		t.Fatalf("%d exchanges: %v", len(rec.Interactions), err)
	}
	asked, answered := rec.Interactions[0].Request, rec.Interactions[0].Response.Parsed
	base := searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		var sent map[string]any
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		for _, field := range []string{"query", "include_domains", "search_depth"} {
			if got, want := fmt.Sprint(sent[field]), fmt.Sprint(asked.Parsed[field]); got != want {
				t.Errorf("%s is %s, recorded %s", field, got, want)
			}
		}
		json.NewEncoder(w).Encode(answered)
	})
	q := search.Query{Text: fmt.Sprint(asked.Parsed["query"]), Limit: 20}
	if domains, ok := asked.Parsed["include_domains"].([]any); ok {
		var err error
		if q.Filter, err = marchwarden.ParseSourceFilter(strings.Trim(fmt.Sprint(domains), "[]")); err != nil {
			t.Fatal(err)
		}
	}
	hits, err := NewTavily(Config{Key: tavilySecret, BaseURL: base, HTTP: searchtest.Client(t)}).Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(answered["results"].([]any)); len(hits) != want || want == 0 {
		t.Errorf("%d hits, recorded %d", len(hits), want)
	}
	for i, h := range hits {
		if h.Title == "" || h.Snippet == "" || h.Score <= 0 || i > 0 && h.Score > hits[i-1].Score || strings.Contains(h.Snippet, "**") {
			t.Errorf("hit %d: %+v", i, h)
		}
	}
}

// FuzzTavilyAnswer holds hits from any answer to the promises.
func FuzzTavilyAnswer(f *testing.F) {
	f.Add([]byte(`{"results": [{"url": "https://a.example/", "title": "<b>x", "content": "# y", "score": 1, "published_date": "2024-01-01"}]}`), "a.example")
	f.Add([]byte(`{"results": [{"url": "http://a.example/\u0000"}, {"url": "HTTP://B.example:80/?utm_x=1", "score": -1e300}, null, 7]}`), "")
	f.Add([]byte(`{"results": [{"url": "http://c.example", "title": "&lt;scr&#x69;pt&gt;<<b>i>", "content": "[a](b)[c"}]}`), ".example")
	f.Fuzz(func(t *testing.T, body []byte, filter string) {
		var a tavilyAnswer
		if json.Unmarshal(body, &a) != nil {
			return
		}
		allowed, _ := marchwarden.ParseSourceFilter(filter)
		got, err := a.hits("tavily")
		got = search.Tidy(got, search.Query{Limit: 4, Filter: allowed, Since: "2020-01-01"})
		if err != nil && marchwarden.CodeOf(err) != marchwarden.CodeMalformed {
			t.Fatal(err)
		}
		searchtest.CheckWeb(t, got, search.Query{Limit: 4, Filter: allowed, Since: "2020-01-01"})
	})
}
