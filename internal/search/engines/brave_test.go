package engines

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searchtest"
)

func TestMain(m *testing.M) {
	datatest.Abreast(4) // faults are waited for
	goleak.VerifyTestMain(m)
}

const braveSecret = "BSA-s3cret/key+1"

func braveNow() time.Time { return time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC) }

// braveService answers as Brave does, but knows no operators.
func braveService(t *testing.T, docs map[string]string) string {
	return searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		q, count := r.FormValue("q"), 0
		fmt.Sscan(r.FormValue("count"), &count)
		switch {
		case r.URL.Path != "/res/v1/web/search" || q == "" || len([]rune(q)) > 400 || len(strings.Fields(q)) > 50 || count < 1 || count > 20:
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		case r.Header.Get("X-Subscription-Token") != braveSecret:
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var results []map[string]any
		for _, name := range searchtest.Match(docs, q) {
			results = append(results, map[string]any{"url": searchtest.URL(name), "title": name, "description": "<strong>" + docs[name] + "</strong>"})
		}
		a := map[string]any{"type": "search", "query": map[string]any{"original": q, "more_results_available": len(results) > count}}
		if len(results) > 0 {
			a["web"] = map[string]any{"type": "search", "results": results[:min(len(results), count)]}
		}
		json.NewEncoder(w).Encode(a)
	})
}

func TestBraveConformance(t *testing.T) {
	searchtest.RunFilter(t, func(t *testing.T, docs map[string]string) search.Engine {
		return NewBrave(Config{Key: braveSecret, BaseURL: braveService(t, docs), HTTP: searchtest.Client(t), Now: braveNow})
	}, searchtest.NotesHost, searchtest.OnNotesHost)
}

func TestBraveFaults(t *testing.T) {
	t.Parallel()
	searchtest.RunFaults(t, braveSecret, func(t *testing.T, base string, timeout time.Duration) search.Engine {
		return NewBrave(Config{Key: braveSecret, BaseURL: base, HTTP: searchtest.Client(t), Timeout: timeout})
	})
}

func TestBraveRequest(t *testing.T) {
	for _, tt := range []struct {
		filter, since, until string
		limit                int
		want                 url.Values
	}{
		{"", "", "", 7, url.Values{"q": {"utah soil"}, "count": {"7"}}},
		{"usu.edu", "2024-01-01", "2024-12-31", 7, url.Values{"q": {"utah soil site:usu.edu"}, "count": {"20"}, "freshness": {"2024-01-01to2024-12-31"}}},
		{"", "2024-01-01", "", 7, url.Values{"q": {"utah soil"}, "count": {"7"}, "freshness": {"2024-01-01to2026-06-15"}}},
		{"", "", "2024-12-31", 7, url.Values{"q": {"utah soil"}, "count": {"7"}, "freshness": {"1970-01-01to2024-12-31"}}},
	} {
		var got url.Values
		base := searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			got = r.URL.Query()
			io.WriteString(w, `{"type": "search"}`)
		})
		filter, err := marchwarden.ParseSourceFilter(tt.filter)
		if err != nil {
			t.Fatal(err)
		}
		q := search.Query{Text: "utah soil", Limit: tt.limit, Filter: filter, Since: tt.since, Until: tt.until}
		if hits, err := NewBrave(Config{Key: braveSecret, BaseURL: base, HTTP: searchtest.Client(t), Now: braveNow}).Search(t.Context(), q); err != nil || len(hits) != 0 {
			t.Errorf("%v, %v", hits, err)
		}
		tt.want.Set("text_decorations", "false")
		tt.want.Set("result_filter", "web")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	}
}

// TestBadToken: the service answers 422 to a key it does not know.
func TestBraveBadToken(t *testing.T) {
	base := searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprintf(w, `{"type": "ErrorResponse", "error": {"code": "SUBSCRIPTION_TOKEN_INVALID", "detail": "The provided subscription token %s is invalid.", "status": 422}}`,
			r.Header.Get("X-Subscription-Token"))
	})
	_, err := NewBrave(Config{Key: braveSecret, BaseURL: base, HTTP: searchtest.Client(t)}).Search(t.Context(), search.Query{Text: "soil"})
	if marchwarden.CodeOf(err) != marchwarden.CodeDenied || strings.Contains(err.Error(), braveSecret) || !strings.Contains(marchwarden.HintOf(err), "BRAVE_API_KEY") {
		t.Errorf("got %v, hint %q", err, marchwarden.HintOf(err))
	}
}
