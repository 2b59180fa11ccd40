package drift_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searchtest"
)

// registries are Crossref, OpenAlex and arXiv on loopback.
type registries struct {
	down bool

	mu    sync.Mutex
	asked map[string]int // guarded by mu
}

func (r *registries) ServeHTTP(out http.ResponseWriter, req *http.Request) {
	service, rest, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	r.mu.Lock()
	r.asked[service]++
	r.mu.Unlock()
	out.Header().Set("Content-Type", "application/json")
	doi := strings.TrimPrefix(strings.TrimPrefix(rest, "works/"), "doi:")
	switch {
	case r.down:
		out.WriteHeader(http.StatusForbidden)
	case service == "crossref" && strings.HasSuffix(doi, "/bad"):
		fmt.Fprintf(out, `{"status": "ok", "message": {"DOI": %q, "title": ["On soils"], "type": "journal-article", "updated-by": [{"DOI": "10.1000/notice", "type": "retraction"}]}}`, doi)
	case service == "crossref" && strings.HasSuffix(doi, "/good"):
		fmt.Fprintf(out, `{"status": "ok", "message": {"DOI": %q, "title": ["On soils"], "type": "journal-article"}}`, doi)
	case service == "openalex" && strings.HasSuffix(doi, "2101.00008"):
		fmt.Fprintf(out, `{"doi": %q, "is_retracted": true}`, "https://doi.org/"+doi)
	case service == "arxiv":
		io.WriteString(out, `<?xml version='1.0' encoding='UTF-8'?><feed xmlns:arxiv="http://arxiv.org/schemas/atom" xmlns="http://www.w3.org/2005/Atom"><title>arXiv Query</title>
<entry><id>http://arxiv.org/abs/2101.00008v1</id><title>On soils</title></entry>
<entry><id>http://arxiv.org/abs/2101.00009v2</id><title>On soils</title><arxiv:comment>This paper has been withdrawn by the authors due to an error</arxiv:comment></entry></feed>`)
	default:
		out.WriteHeader(http.StatusNotFound)
		io.WriteString(out, `{"error": "not found"}`)
	}
}

func (r *registries) open(t *testing.T) drift.Papers {
	r.asked = map[string]int{}
	base, client := searchtest.Serve(t, r.ServeHTTP), searchtest.Client(t)
	return drift.Papers{
		Indexes: scholar.New(scholar.Config{CrossrefURL: base + "/crossref", OpenAlexURL: base + "/openalex", SemanticScholarURL: base + "/semantic", HTTP: client}),
		ArXiv: scholar.NewArxiv(scholar.ArxivConfig{BaseURL: base + "/arxiv", HTTP: client, Now: time.Now, Pace: time.Nanosecond,
			Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}),
	}
}

// Of many locators those are told that were taken back.
func TestRetracted(t *testing.T) {
	var r registries
	got := r.open(t).Retracted(t.Context(), []string{"doi:10.1000/good", "doi:10.1000/bad", "arxiv:2101.00008", "arxiv:2101.00009v1", "https://publisher.example/doi/full/10.1000/bad", "https://example.org/there", "notes.txt", "doi:10.1000/none"})
	want := map[string]string{"doi:10.1000/bad": "retracted 10.1000/notice", "arxiv:2101.00008": "retracted, says OpenAlex", "https://publisher.example/doi/full/10.1000/bad": "retracted 10.1000/notice",
		"arxiv:2101.00009v1": "withdrawn, says arXiv: This paper has been withdrawn by the authors due to an error"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r.asked["arxiv"] != 1 || r.asked["semantic"] != 0 {
		t.Errorf("asked %v", r.asked)
	}
}

// What no service answers is not known, and a service that fails is left alone.
func TestRetractedUnknown(t *testing.T) {
	r := registries{down: true}
	var locators []string
	for i := range 20 {
		locators = append(locators, fmt.Sprintf("doi:10.1000/%d", i))
	}
	if got := r.open(t).Retracted(t.Context(), locators); len(got) != 0 || r.asked["crossref"] > 2 || r.asked["openalex"] > 2 {
		t.Errorf("%v, asked %v", got, r.asked)
	}
}
