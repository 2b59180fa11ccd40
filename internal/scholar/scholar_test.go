package scholar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searchtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secretKey = "s2-s3cret/key+1"
	secretBox = "someone+private@example.org"
)

// catalogue answers searches as OpenAlex does, but to any of the words.
func catalogue(t *testing.T, docs map[string]string) string {
	return searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.FormValue("search")
		if r.URL.Path != "/works" || q == "" || r.FormValue("api_key") != secretKey {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		results := []map[string]any{}
		for _, name := range searchtest.Match(docs, q) {
			index := map[string][]int{}
			for i, word := range strings.Fields(docs[name]) {
				index[word] = append(index[word], i)
			}
			results = append(results, map[string]any{"doi": "https://doi.org/10.5555/" + name, "title": "About " + name, "publication_date": "2024-03-04", "abstract_inverted_index": index})
		}
		json.NewEncoder(w).Encode(map[string]any{"meta": map[string]any{"count": len(results)}, "results": results})
	})
}

func TestEngineConformance(t *testing.T) {
	searchtest.RunFilter(t, func(t *testing.T, docs map[string]string) search.Engine {
		return New(Config{OpenAlexURL: catalogue(t, docs), OpenAlexKey: secretKey, HTTP: searchtest.Client(t)})
	}, "doi.org", func(loc string) bool { return strings.HasPrefix(loc, "doi:10.5555/") })
}

func TestEngineFaults(t *testing.T) {
	searchtest.RunFaults(t, secretKey, func(t *testing.T, base string, timeout time.Duration) search.Engine {
		return New(Config{OpenAlexURL: base, OpenAlexKey: secretKey, Mailto: secretBox, HTTP: searchtest.Client(t), Timeout: timeout})
	})
}

// newIndexes is a service of which all three indexes answer from one table, by
// path: with a body, or with a status such as "!429".
func newIndexes(t *testing.T, answers map[string]string) *Service {
	base := searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[r.URL.Path]
		switch {
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "Resource not found.")
		case strings.HasPrefix(body, "!"):
			var status int
			fmt.Sscanf(body, "!%d", &status)
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"message": "not for %s or %s"}`, r.Header.Get("X-Api-Key"), r.URL.Query().Get("mailto"))
		default:
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, body)
		}
	})
	return New(Config{CrossrefURL: base + "/cr", OpenAlexURL: base + "/oa", SemanticScholarURL: base + "/s2", Mailto: secretBox, SemanticScholarKey: secretKey, HTTP: searchtest.Client(t)})
}

func mustID(t *testing.T, s string) ID {
	t.Helper()
	id, ok := ParseID(s)
	if !ok {
		t.Fatalf("%q is no paper", s)
	}
	return id
}

// A retraction that Crossref knows is found for a preprint of which only Semantic
// Scholar knows the article.
func TestRetractionByWayOfThePreprint(t *testing.T) {
	x := newIndexes(t, map[string]string{
		"/s2/graph/v1/paper/arXiv:2101.00001": `{"externalIds": {"ArXiv": "2101.00001", "DOI": "10.1155/2022/1"}, "title": "A study", "citationCount": 7, "publicationTypes": null, "openAccessPdf": null}`,
		"/cr/works/10.1155/2022/1":            `{"message": {"DOI": "10.1155/2022/1", "type": "journal-article", "title": ["A study"], "updated-by": [{"DOI": "10.1155/2023/9", "type": "retraction", "source": "retraction-watch"}]}}`,
	})
	w, err := x.Look(t.Context(), mustID(t, "arxiv:2101.00001v3"))
	n := 7
	want := Work{
		DOI: "10.1155/2022/1", ArXiv: "2101.00001", Title: "A study", InPrint: true, Citations: &n, CountedBy: SemanticScholar,
		Retracted: true, Notice: "10.1155/2023/9", NoticeBy: Crossref,
		Asked: []Answer{{Index: Crossref, Known: true}, {Index: OpenAlex}, {Index: SemanticScholar, Known: true}},
	}
	if diff := cmp.Diff(want, w); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestNotices(t *testing.T) {
	for name, tt := range map[string]struct {
		crossref, openalex           string
		retracted, concern, retracts bool
	}{
		"correction":                  {crossref: `"updated-by": [{"DOI": "10.1/x", "type": "correction"}]`},
		"concern":                     {crossref: `"updated-by": [{"DOI": "10.1000/x", "type": "expression_of_concern"}]`, concern: true},
		"removal":                     {crossref: `"updated-by": [{"DOI": "10.1000/x", "type": "removal"}, {"type": "correction"}]`, retracted: true},
		"openalex":                    {openalex: `"is_retracted": true`, retracted: true},
		"title":                       {crossref: `"title": ["RETRACTED ARTICLE: On mice"]`, retracted: true},
		"about them":                  {crossref: `"title": ["Retracted articles and their citations"]`},
		"a notice":                    {crossref: `"title": ["Retraction: On mice"], "update-to": [{"DOI": "10.1000/mice", "type": "retraction"}]`, retracts: true},
		"a notice with the old title": {crossref: `"title": ["RETRACTED: On mice"], "update-to": [{"DOI": "10.1000/mice", "type": "retraction"}]`, retracts: true},
	} {
		answers := map[string]string{}
		if tt.crossref != "" {
			answers["/cr/works/10.1000/a"] = `{"message": {"DOI": "10.1000/A", ` + tt.crossref + `}}`
		}
		if tt.openalex != "" {
			answers["/oa/works/doi:10.1000/a"] = `{"doi": "https://doi.org/10.1000/a", ` + tt.openalex + `}`
		}
		w, err := newIndexes(t, answers).Look(t.Context(), mustID(t, "doi:10.1000/a"))
		if err != nil || w.Retracted != tt.retracted || w.Concern != tt.concern || (len(w.Retracts) > 0) != tt.retracts {
			t.Errorf("%s: %v %+v", name, err, w)
		}
	}
}

// One index that fails costs what it knows, and nothing is made up for it.
func TestFailingIndexes(t *testing.T) {
	good := `{"doi": "https://doi.org/10.1000/a", "title": "On mice", "cited_by_count": 3}`
	for _, bad := range []string{"!429", "!503", "!500", "!403", `{"message": null}`, `[]`, `{"message": {"DOI": 3}}`, `{"message": {"DOI": "10.1000/another"}}`, `<html>`, strings.Repeat(`{"message":`, 20000), `{"message": {"DOI": "10.1000/a", "author": "nobody"}}`} {
		x := newIndexes(t, map[string]string{"/oa/works/doi:10.1000/a": good, "/cr/works/10.1000/a": bad, "/s2/graph/v1/paper/DOI:10.1000/a": "!429"})
		w, err := x.Look(t.Context(), mustID(t, "doi:10.1000/a"))
		if err != nil || w.Title != "On mice" || w.Citations == nil || *w.Citations != 3 || w.Asked[0].Fault == "" || w.Asked[0].Known || w.Asked[2].Code != marchwarden.CodeRateLimited {
			t.Errorf("%.40s: %v %+v", bad, err, w)
		}
		if all := fmt.Sprintf("%+v", w); strings.Contains(all, secretKey) || strings.Contains(all, secretBox) {
			t.Errorf("a secret is in %s", all)
		}
	}
}

// What no index knows is not found; what an index did not answer is not.
func TestUnknownPapers(t *testing.T) {
	if _, err := newIndexes(t, nil).Look(t.Context(), mustID(t, "doi:10.1000/a")); !errors.Is(err, marchwarden.CodeNotFound) {
		t.Errorf("%v", err)
	}
	w, err := newIndexes(t, map[string]string{"/s2/graph/v1/paper/DOI:10.1000/a": "!429"}).Look(t.Context(), mustID(t, "doi:10.1000/a"))
	if marchwarden.CodeOf(err) != marchwarden.CodeRateLimited || len(w.Asked) != 3 {
		t.Errorf("%v %+v", err, w)
	}
	for _, leak := range []string{secretKey, secretBox} {
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, w, err), leak) {
			t.Errorf("a secret is in %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newIndexes(t, nil).Look(ctx, mustID(t, "doi:10.1000/a")); !errors.Is(err, marchwarden.CodeCanceled) {
		t.Errorf("%v", err)
	}
}

// A DOI that looks like a path stays one part of it.
func TestOddDOIs(t *testing.T) {
	for _, doi := range []string{"10.1000/../../admin", "10.1000/a//b", "10.1002/(sici)1097<1::aid>3.0", "10.1000/100%25", "10.1000/a#b"} {
		asked := make(chan string, 10)
		base := searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked <- r.URL.EscapedPath()
			http.NotFound(w, r)
		})
		s := New(Config{CrossrefURL: base + "/cr", OpenAlexURL: base + "/oa", SemanticScholarURL: base + "/s2", HTTP: searchtest.Client(t)})
		if _, err := s.Look(t.Context(), mustID(t, doi)); !errors.Is(err, marchwarden.CodeNotFound) {
			t.Errorf("%s: %v", doi, err)
		}
		close(asked)
		if len(asked) == 0 {
			t.Errorf("%s: nobody was asked", doi)
		}
		for path := range asked {
			if !strings.HasPrefix(path, "/cr/works/10.") && !strings.HasPrefix(path, "/oa/works/doi:10.") && !strings.HasPrefix(path, "/s2/graph/v1/paper/DOI:10.") {
				t.Errorf("%s: asked for %s", doi, path)
			}
		}
	}
}

func TestFromPositions(t *testing.T) {
	for in, want := range map[string]string{
		`{"world": [1], "Hello": [0, 2]}`:      "Hello world Hello",
		`{"b": [1], "a": [1], "z": [0]}`:       "z a",
		`{"a": [-1, 999999999], "b": [4]}`:     "b",
		`{"<jats:p>Mice": [0], "&amp;": [1]}`:  "Mice &",
		`{"a\u001b[31m": [0], "b\u202e": [1]}`: "a b",
		`{"a": "0"}`:                           "", `[1]`: "", `null`: "", ``: "", `{"a": [1.5]}`: "",
	} {
		if got := fromPositions(json.RawMessage(in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	many := make([]string, 6000)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	if got := fromPositions(json.RawMessage(`{"word": [` + strings.Join(many, ",") + `]}`)); utf8.RuneCountInString(got) > maxAbstract+1 {
		t.Errorf("%d characters", len(got))
	}
}

func TestPlainMarkup(t *testing.T) {
	for in, want := range map[string]string{
		"<jats:title>Abstract</jats:title>\n <jats:p>One <jats:italic>two</jats:italic>\n three.</jats:p><jats:p>p &lt; 0.05</jats:p>": "Abstract\n\nOne two three.\n\np < 0.05",
		"plain\n\n\n\x00text\x1b[2J": "plain\n\ntext",
		"<p>a<b":                     "a<b",
		"":                           "",
	} {
		if got := plainMarkup(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		got := plainMarkup(rapid.String().Draw(t, "markup"))
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b\r\u202e") || strings.TrimSpace(got) != got {
			t.Fatalf("%q", got)
		}
	})
}

// Standing asks those who know of retractions, and of them only those who are not
// to be skipped.
func TestStanding(t *testing.T) {
	answers := map[string]string{
		"/cr/works/10.1000/a":                     `{"message": {"DOI": "10.1000/a", "title": ["On soils"], "updated-by": [{"DOI": "10.1000/notice", "type": "retraction"}]}}`,
		"/oa/works/doi:10.1000/a":                 `{"doi": "https://doi.org/10.1000/a", "title": "On soils", "is_retracted": true}`,
		"/s2/graph/v1/paper/DOI:10.1000/a":        "!500",
		"/oa/works/doi:10.48550/arxiv.2101.00001": `{"doi": "https://doi.org/10.48550/arxiv.2101.00001", "title": "On soils"}`,
	}
	s := newIndexes(t, answers)
	w, err := s.Standing(t.Context(), nil, mustID(t, "doi:10.1000/a"))
	if err != nil || !w.Retracted || w.Notice != "10.1000/notice" || !cmp.Equal(w.Asked, []Answer{{Index: Crossref, Known: true}, {Index: OpenAlex, Known: true}}) {
		t.Errorf("%+v, %v", w, err)
	}
	skip := func(index string) error {
		if index == OpenAlex {
			return nil
		}
		return marchwarden.Errorf(marchwarden.CodeTimeout, "too slow")
	}
	w, err = s.Standing(t.Context(), skip, mustID(t, "doi:10.1000/a"))
	if err != nil || !w.Retracted || w.Notice != "" || w.Asked[0].Known || w.Asked[0].Code != marchwarden.CodeTimeout || !w.Asked[1].Known {
		t.Errorf("%+v, %v", w, err)
	}
	if w, err = s.Standing(t.Context(), nil, mustID(t, "arxiv:2101.00001")); err != nil || w.Retracted || w.Asked[0].Known || !w.Asked[1].Known {
		t.Errorf("%+v, %v", w, err)
	}
}
