package scholar

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searchtest"
)

// exchange is one recorded answer.
type exchange struct {
	status int
	body   []byte
}

var recordedDOI = regexp.MustCompile(`^https://(api\.crossref\.org/works/|api\.openalex\.org/works/https://doi\.org/|api\.semanticscholar\.org/graph/v1/paper/DOI:)([^?]+)`)

// recordings are real answers of the indexes about single DOIs, by "host doi".
func recordings(t *testing.T) map[string]exchange {
	out := map[string]exchange{}
	for _, f := range datatest.Files(t, "api/cassettes.tar.gz", func(name string) bool {
		return strings.HasSuffix(name, ".yaml") && (strings.Contains(name, "paper-qa/") || strings.Contains(name, "habanero/"))
	}) {
		var c struct {
			Interactions []struct {
				Request  struct{ URI string }
				Response struct {
					Status struct{ Code int }
					Body   struct{ String string }
				}
			}
		}
		if err := yaml.Unmarshal(f.Data, &c); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		for _, i := range c.Interactions {
			m := recordedDOI.FindStringSubmatch(i.Request.URI)
			if m == nil || strings.Contains(i.Request.URI, "/transform") || strings.Contains(i.Request.URI, "/agency") || strings.Contains(i.Request.URI, "select=") || strings.Contains(i.Request.URI, "fields=externalIds") {
				continue
			}
			doi, err := url.PathUnescape(m[2])
			if err != nil {
				t.Fatal(err)
			}
			host, _, _ := strings.Cut(m[1], "/")
			out[host+" "+strings.ToLower(doi)] = exchange{i.Response.Status.Code, unzipped(t, []byte(i.Response.Body.String))}
		}
	}
	if len(out) < 30 {
		t.Fatalf("%d recordings", len(out))
	}
	return out
}

func unzipped(t *testing.T, b []byte) []byte {
	if !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		return b
	}
	zr, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if b, err = io.ReadAll(zr); err != nil {
		t.Fatal(err)
	}
	return b
}

// replayed is a service whose far ends answer as recorded.
func replayed(t *testing.T, known map[string]exchange) *Service {
	base := searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		for prefix, host := range map[string]string{"/cr/works/": "api.crossref.org", "/oa/works/doi:": "api.openalex.org", "/s2/graph/v1/paper/DOI:": "api.semanticscholar.org"} {
			if doi, ok := strings.CutPrefix(path, prefix); ok {
				if e, ok := known[host+" "+strings.ToLower(doi)]; ok {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(e.status)
					_, _ = w.Write(e.body)
					return
				}
			}
		}
		http.NotFound(w, r)
	})
	return New(Config{CrossrefURL: base + "/cr", OpenAlexURL: base + "/oa", SemanticScholarURL: base + "/s2", HTTP: searchtest.Client(t)})
}

func TestRecordedPaper(t *testing.T) {
	s := replayed(t, recordings(t))
	id, _ := ParseID("doi:10.1073/PNAS.1414271111")
	w, err := s.Look(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.Abstract, "The inadequate mechanical properties of engineered tissues") || strings.Contains(w.Abstract, "<") || !strings.Contains(w.Abstract, "\n\n") {
		t.Errorf("abstract %q", w.Abstract)
	}
	n := 138
	want := Work{
		DOI: "10.1073/pnas.1414271111", Title: "Developing functional musculoskeletal tissues through hypoxia and lysyl oxidase-induced collagen cross-linking",
		Authors: w.Authors, Published: "2014-10-27", Year: 2014, Venue: "Proceedings of the National Academy of Sciences", InPrint: true,
		Citations: &n, CountedBy: OpenAlex, Abstract: w.Abstract, FullText: w.FullText,
		Asked: []Answer{{Index: Crossref, Known: true}, {Index: OpenAlex, Known: true}, {Index: SemanticScholar, Known: true}},
	}
	if diff := cmp.Diff(want, w); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(w.Authors) != 4 && len(w.Authors) != 5 || w.Authors[0] != "Eleftherios A. Makris" {
		t.Errorf("authors %q", w.Authors)
	}
	if len(w.FullText) == 0 || w.FullText[0] != "https://europepmc.org/articles/pmc4234579?pdf=render" {
		t.Errorf("full text at %q", w.FullText)
	}
}

// Every recorded paper is read, and no recorded answer is malformed.
func TestRecordedAll(t *testing.T) {
	known := recordings(t)
	s := replayed(t, known)
	looked := 0
	for key, e := range known {
		_, doi, _ := strings.Cut(key, " ")
		id, ok := ParseID(doi)
		if !ok || id.ArXiv() != "" || e.status != http.StatusOK {
			continue
		}
		looked++
		w, err := s.Look(t.Context(), id)
		if err != nil || w.Title == "" || w.Citations == nil || w.DOI != doi {
			t.Errorf("%s: %v %+v", doi, err, w)
		}
		for _, a := range w.Asked {
			if a.Fault != "" {
				t.Errorf("%s: %+v", doi, a)
			}
		}
		if w.Retracted || w.Concern { // all recorded notices are corrections
			t.Errorf("%s is taken for retracted", doi)
		}
	}
	if looked < 20 {
		t.Errorf("%d papers looked at", looked)
	}
	absent, _ := ParseID("10.1371/notarealdoi")
	if w, err := s.Look(t.Context(), absent); err == nil || w.Title != "" {
		t.Errorf("%+v, %v", w, err)
	}
}

// TestRecordedSearch has OpenAlex answer a search as it did.
func TestRecordedSearch(t *testing.T) {
	var body []byte
	for _, f := range datatest.Files(t, "api/cassettes.tar.gz", func(name string) bool { return strings.HasSuffix(name, "test_title_search[paper_attributes2].yaml") }) {
		var c struct {
			Interactions []struct {
				Request  struct{ URI string }
				Response struct{ Body struct{ String string } }
			}
		}
		if err := yaml.Unmarshal(f.Data, &c); err != nil {
			t.Fatal(err)
		}
		for _, i := range c.Interactions {
			if strings.HasPrefix(i.Request.URI, "https://api.openalex.org/works?filter=title.search") {
				body = unzipped(t, []byte(i.Response.Body.String))
			}
		}
	}
	var asked url.Values
	base := searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query()
		_, _ = w.Write(body)
	})
	e := New(Config{OpenAlexURL: base, HTTP: searchtest.Client(t), Mailto: "me@example.org"})
	hits, err := e.Search(t.Context(), search.Query{Text: `What is "augmenting large language models" with chemistry tools?`, Limit: 5, Since: "2020-01-01"})
	if err != nil || len(hits) != 2 || hits[0].Locator != "doi:10.1038/s42256-024-00832-8" || hits[1].Locator != "arxiv:2304.05376" || hits[0].Published == "" || len(hits[0].Snippet) < 100 {
		t.Errorf("%v %+v", err, hits)
	}
	if asked.Get("search") != `"augmenting large language models" chemistry tools` || asked.Get("filter") != "from_publication_date:2020-01-01" || asked.Get("mailto") != "me@example.org" {
		t.Errorf("asked %v", asked)
	}
}
