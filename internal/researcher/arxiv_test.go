package researcher_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

const lemmings = "How many attention heads does the Lemming model have?"

// transformers is a world with one well-known preprint and its full text.
func transformers(t testing.TB) *paperWorld {
	w := newPaperWorld(t)
	w.papers = []string{entry("2101.00007v3", "The Lemming model", "We present Lemming, a model of attention.", "<arxiv:comment>15 pages</arxiv:comment>")}
	w.pages["/html/2101.00007v3"] = paperPage("The Lemming model", "Lemming is a model.", "The Lemming model has eleven attention heads in every layer.", filler,
		`References: <a href="https://arxiv.org/abs/1706.03762v5">[1]</a> <a href="https://doi.org/10.1038/Nature14539">[2]</a> <a href="https://arxiv.org/abs/2101.00007">self</a> <a href="https://evil.example/">x</a>`)
	w.works["/oa/works/doi:10.48550/arxiv.2101.00007"] = `{"doi": "https://doi.org/10.48550/arxiv.2101.00007", "title": "The Lemming model", "type": "preprint", "cited_by_count": 1234, "is_retracted": false}`
	return w
}

func TestAnswersFromTheFullText(t *testing.T) {
	l := newPaperLab(t, transformers(t))
	res := l.ask(t, marchwarden.Request{Question: lemmings})
	if len(res.Citations) == 0 || !strings.Contains(res.Answer, "eleven attention heads") {
		t.Fatalf("%s\n%+v", res.Answer, res.Gaps)
	}
	c := res.Citations[0]
	if c.Source != "arxiv" || c.Locator != "arxiv:2101.00007" || c.Title != "The Lemming model" {
		t.Errorf("%+v", c)
	}
	if res.ConfidenceFactors.SourceAuthority != marchwarden.MediumAuthority || res.ConfidenceFactors.Recency != marchwarden.Dated {
		t.Errorf("%+v", res.ConfidenceFactors)
	}
	api := 0
	for _, path := range l.world.asked() {
		if path == "/api/query" {
			api++
		}
	}
	if api > 3 {
		t.Errorf("%d requests to arXiv's API: what a search found is asked for again", api)
	}
}

func TestPageOfAPreprint(t *testing.T) {
	l := newPaperLab(t, transformers(t))
	text, page := l.read(t, "arxiv:2101.00007")
	want := pageOf{
		Title: "The Lemming model", Author: "Ada Example, Ben Example", Published: "2017-06-12", Origin: "arxiv:2101.00007", URL: "https://arxiv.org/abs/2101.00007v3",
		Standing: marchwarden.MediumAuthority, Links: []string{"arxiv:1706.03762", "doi:10.1038/nature14539"},
	}
	if diff := cmp.Diff(want, page); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	head := strings.Join([]string{
		"# The Lemming model", "Authors: Ada Example, Ben Example.", "Published: 2017-06-12; this is version 3 of 2023-08-02.", "Identifiers: arXiv:2101.00007v3.", "Subjects: cs.CL.", "Comment of the authors: 15 pages.",
		"Cited by: 1234 works, counts OpenAlex.", "Retraction: none known to OpenAlex.", "Full text: read from " + l.world.URL + "/html/2101.00007v3.", "## Abstract", "We present Lemming, a model of attention.", "## Full text", "",
	}, "\n\n")
	if !strings.HasPrefix(text, head) || !strings.Contains(text, "eleven attention heads") {
		t.Errorf("want %s\ngot %.900s", head, text)
	}
}

// The PDF is asked for where there is no web page of a paper; where there is
// neither, the abstract is what there is.
func TestAbstractOnly(t *testing.T) {
	w := transformers(t)
	delete(w.pages, "/html/2101.00007v3")
	l := newPaperLab(t, w)
	text, _ := l.read(t, "arxiv:2101.00007")
	if !strings.Contains(text, "Full text: not read, no free copy is known.") || !strings.Contains(text, "a model of attention") || strings.Contains(text, "## Full text") {
		t.Errorf("%s", text)
	}
	if asked := w.asked(); !slices.Contains(asked, "/html/2101.00007v3") || !slices.Contains(asked, "/pdf/2101.00007v3") {
		t.Errorf("%q", asked)
	}
}

func TestPDF(t *testing.T) {
	if testing.Short() {
		t.Skip("reading a PDF takes half a minute under the race detector")
	}
	w := transformers(t)
	delete(w.pages, "/html/2101.00007v3")
	pdf := datatest.Files(t, "pdf/py-pdf-samples.tar.gz", func(name string) bool { return strings.HasSuffix(name, "pdflatex-4-pages.pdf") })[0]
	w.pages["/pdf/2101.00007v3"] = string(pdf.Data)
	w.patience = 5 * time.Minute // the race detector makes reading PDFs slow
	text, _ := newPaperLab(t, w).read(t, "arxiv:2101.00007")
	if !strings.Contains(text, "Full text: read from "+w.URL+"/pdf/2101.00007v3.") || len(text) < 3000 {
		t.Errorf("%.1200s", text)
	}
}

// A full text that does not come in time costs only itself.
func TestSlowFullText(t *testing.T) {
	w := transformers(t)
	w.slow, w.patience = "/html/2101.00007v3", 100*time.Millisecond
	text, _ := newPaperLab(t, w).read(t, "arxiv:2101.00007")
	if !strings.Contains(text, "Full text: not read, timeout.") || !strings.Contains(text, "Cited by: 1234") {
		t.Errorf("%s", text)
	}
}

// Indexes that fail cost a paper what they know, and the text says who.
func TestIndexesDown(t *testing.T) {
	w := transformers(t)
	w.fail = map[string]int{"oa": http.StatusTooManyRequests, "s2": http.StatusServiceUnavailable}
	l := newPaperLab(t, w)
	text, page := l.read(t, "arxiv:2101.00007")
	for _, want := range []string{"Cited by: unknown.", "Retraction: unknown.", "Not answered by: OpenAlex (rate limited), Semantic Scholar (unavailable).", "eleven attention heads"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %.800s", want, text)
		}
	}
	if page.Standing != marchwarden.MediumAuthority {
		t.Errorf("%+v", page)
	}
	if res := l.ask(t, marchwarden.Request{Question: lemmings}); !strings.Contains(res.Answer, "eleven") {
		t.Errorf("%s", res.Answer)
	}
}

// A paper is read by what the indexes know when arXiv's API does not answer.
func TestAPIDown(t *testing.T) {
	w := transformers(t)
	w.fail = map[string]int{"api": http.StatusServiceUnavailable}
	w.pages["/html/2101.00007"] = w.pages["/html/2101.00007v3"]
	l := newPaperLab(t, w)
	text, page := l.read(t, "arxiv:2101.00007")
	if page.Title != "The Lemming model" || page.URL != "https://arxiv.org/abs/2101.00007" || !strings.Contains(text, "Not answered by: arXiv (unavailable).") || !strings.Contains(text, "eleven") {
		t.Errorf("%+v\n%.600s", page, text)
	}
	w.works = nil
	w.fail["oa"], w.fail["s2"] = 500, 500
	if _, err := l.papers.Fetch(t.Context(), "arxiv:2101.00009"); marchwarden.CodeOf(err) == marchwarden.CodeNotFound || err == nil {
		t.Errorf("%v", err)
	}
}

// article of a journal, with its preprint.
const mice = `{"message": {"DOI": "10.1000/Mice", "type": "journal-article", "title": ["On the sleep of mice"], "author": [{"given": "Cid", "family": "Example"}], "container-title": ["Journal of Mice"],
	"issued": {"date-parts": [[2024, 5, 6]]}, "abstract": "<jats:p>Mice sleep for <jats:italic>twelve</jats:italic> hours a day.</jats:p>", "is-referenced-by-count": 60%s}}`

func TestPublishedPaper(t *testing.T) {
	w := newPaperWorld(t)
	w.works["/cr/works/10.1000/mice"] = strings.ReplaceAll(mice, "%s", "")
	w.found = []string{`{"doi": "https://doi.org/10.1000/mice", "title": "On the sleep of mice", "publication_date": "2024-05-06"}`}
	l := newPaperLab(t, w)
	res := l.ask(t, marchwarden.Request{Question: "How many hours a day do mice sleep?"})
	if len(res.Citations) == 0 || res.Citations[0].Locator != "doi:10.1000/mice" || !strings.Contains(res.Answer, "twelve hours") || res.ConfidenceFactors.SourceAuthority != marchwarden.HighAuthority {
		t.Errorf("%s\n%+v\n%+v", res.Answer, res.Citations, res.Gaps)
	}
	text, page := l.read(t, "doi:10.1000/mice")
	want := pageOf{Title: "On the sleep of mice", Author: "Cid Example", Published: "2024-05-06", Origin: "doi:10.1000/mice", URL: "https://doi.org/10.1000/mice", Standing: marchwarden.HighAuthority}
	if diff := cmp.Diff(want, page); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, text)
	}
}

// The preprint and the article of one paper have one origin, and the article's
// text comes from arXiv.
func TestOneOriginForAllVersions(t *testing.T) {
	w := transformers(t)
	w.works["/cr/works/10.1000/lemming"] = `{"message": {"DOI": "10.1000/lemming", "type": "proceedings-article", "title": ["The Lemming model"]}}`
	w.works["/s2/graph/v1/paper/DOI:10.1000/lemming"] = `{"externalIds": {"DOI": "10.1000/Lemming", "ArXiv": "2101.00007"}, "title": "The Lemming model", "citationCount": 49}`
	w.pages["/html/2101.00007"] = w.pages["/html/2101.00007v3"]
	l := newPaperLab(t, w)
	_, preprint := l.read(t, "arxiv:2101.00007v3")
	text, article := l.read(t, "doi:10.1000/lemming")
	if preprint.Origin != "arxiv:2101.00007" || article.Origin != preprint.Origin || article.Standing != marchwarden.MediumAuthority || !strings.Contains(text, "eleven") || !strings.Contains(text, "Identifiers: arXiv:2101.00007, doi:10.1000/lemming.") {
		t.Errorf("%+v\n%+v\n%.500s", preprint, article, text)
	}
}

// The authors of a preprint may name any DOI. It lends them nothing unless what is
// published there looks like the preprint, or an index knows the two for one.
func TestBorrowedDOI(t *testing.T) {
	const famous = `{"message": {"DOI": "10.1000/famous", "type": "journal-article", "title": ["A structure for deoxyribose nucleic acid"], "author": [{"given": "A", "family": "Watson"}], "is-referenced-by-count": 20000}}`
	const own = `{"message": {"DOI": "10.1000/famous", "type": "journal-article", "title": ["The Lemming Model of Attention"], "author": [{"given": "A.", "family": "Example"}], "is-referenced-by-count": 50}}`
	const linked = `{"externalIds": {"ArXiv": "2101.00007", "DOI": "10.1000/famous"}, "title": "The Lemming model", "citationCount": 20000}`
	for name, tt := range map[string]struct {
		crossref, semantic string
		standing           marchwarden.Authority
		identifiers        string
	}{
		"borrowed":             {famous, "", marchwarden.MediumAuthority, "Identifiers: arXiv:2101.00007v3, and by its authors doi:10.1000/famous."},
		"their own":            {own, "", marchwarden.HighAuthority, "Identifiers: arXiv:2101.00007v3, doi:10.1000/famous."},
		"known to be the same": {famous, linked, marchwarden.HighAuthority, "Identifiers: arXiv:2101.00007v3, doi:10.1000/famous."},
		"known to nobody":      {"", "", marchwarden.MediumAuthority, "Identifiers: arXiv:2101.00007v3, and by its authors doi:10.1000/famous."},
	} {
		w := transformers(t)
		w.papers = []string{entry("2101.00007v3", "The Lemming model", "We present Lemming.", "<arxiv:doi>10.1000/famous</arxiv:doi>")}
		delete(w.works, "/oa/works/doi:10.48550/arxiv.2101.00007")
		w.works["/cr/works/10.1000/famous"] = tt.crossref
		w.works["/s2/graph/v1/paper/arXiv:2101.00007"] = tt.semantic
		text, page := newPaperLab(t, w).read(t, "arxiv:2101.00007")
		if page.Title != "The Lemming model" || page.Standing != tt.standing || !strings.Contains(text, tt.identifiers) {
			t.Errorf("%s: %+v\n%.500s", name, page, text)
		}
	}
}

// What stands at an address that an index gives is taken for the paper only if it
// looks like it.
func TestFreeCopies(t *testing.T) {
	for name, tt := range map[string]struct {
		page string
		want string
	}{
		"the paper": {paperPage("On the sleep of mice", "On the sleep of mice. We kept forty mice.", filler), "We kept forty mice"},
		"a login":   {paperPage("Sign in", "Sign in to read this article. Choose your institution.", filler), "Full text: not read, what is there is not the paper."},
		"a stub":    {paperPage("On the sleep of mice", "Buy this article."), "Full text: not read, no text could be read from it."},
		"nothing":   {"", "Full text: not read, no free copy is known."},
	} {
		w := newPaperWorld(t)
		w.works["/oa/works/doi:10.1000/mice"] = `{"doi": "https://doi.org/10.1000/mice", "title": "On the sleep of mice", "best_oa_location": {"is_oa": true, "landing_page_url": "` + w.URL + `/copy"}}`
		w.pages["/copy"] = tt.page
		if text, _ := newPaperLab(t, w).read(t, "doi:10.1000/mice"); !strings.Contains(text, tt.want) {
			t.Errorf("%s: %.700s", name, text)
		}
	}
}

func TestRetractedPapers(t *testing.T) {
	w := newPaperWorld(t)
	w.works["/cr/works/10.1000/mice"] = strings.ReplaceAll(mice, "%s", `, "updated-by": [{"DOI": "10.1000/sorry", "type": "retraction"}]`)
	w.papers = []string{entry("2101.00008v2", "A proof", "We prove it.", "<arxiv:comment>This paper has been withdrawn by the authors</arxiv:comment>")}
	w.found = []string{`{"doi": "https://doi.org/10.1000/mice", "title": "On the sleep of mice", "is_retracted": true}`}
	l := newPaperLab(t, w)
	text, page := l.read(t, "doi:10.1000/mice")
	if !strings.HasPrefix(text, "RETRACTED: this paper was taken back, says Crossref (notice doi:10.1000/sorry).\n") || page.Title != "RETRACTED: On the sleep of mice" || page.Standing != marchwarden.LowAuthority ||
		!slices.Equal(page.Links, []string{"doi:10.1000/sorry"}) {
		t.Errorf("%+v\n%.400s", page, text)
	}
	text, page = l.read(t, "arxiv:2101.00008")
	if !strings.HasPrefix(text, "RETRACTED: this paper was withdrawn from arXiv.\n") || page.Title != "RETRACTED: A proof" || page.Standing != marchwarden.LowAuthority {
		t.Errorf("%+v\n%.400s", page, text)
	}
	w.papers = nil
	res := newPaperLab(t, w).ask(t, marchwarden.Request{Question: "How many hours a day do mice sleep?"})
	if len(res.Citations) == 0 || !strings.HasPrefix(res.Citations[0].Title, "RETRACTED: ") || res.ConfidenceFactors.SourceAuthority != marchwarden.LowAuthority {
		t.Errorf("%+v", res.Citations)
	}
}

// Papers that the question names are read though no search finds them; what the
// context names is not.
func TestPapersInTheQuestion(t *testing.T) {
	w := newPaperWorld(t)
	w.works["/cr/works/10.1000/mice"] = strings.ReplaceAll(mice, "%s", "")
	l := newPaperLab(t, w)
	res := l.ask(t, marchwarden.Request{Question: "How many hours do mice sleep, by https://doi.org/10.1000/MICE?", Context: "From a private file: see doi:10.1000/salary-of-alice"})
	if len(res.Citations) == 0 || res.Citations[0].Locator != "doi:10.1000/mice" {
		t.Errorf("%+v\n%+v", res.Citations, res.Gaps)
	}
	if slices.ContainsFunc(w.asked(), func(path string) bool { return strings.Contains(path, "salary") }) {
		t.Errorf("%q", w.asked())
	}
}

// A source filter holds for papers by the host they count as being at.
func TestSourceFilter(t *testing.T) {
	w := transformers(t)
	w.works["/cr/works/10.1000/mice"] = strings.ReplaceAll(mice, "%s", "")
	w.found = []string{`{"doi": "https://doi.org/10.1000/mice", "title": "On the sleep of mice"}`}
	l := newPaperLab(t, w)
	for filter, want := range map[string]string{"arxiv.org": "arxiv:2101.00007", "doi.org": "doi:10.1000/mice", "nasa.gov": ""} {
		res := l.ask(t, marchwarden.Request{Question: "What is said about attention, and about the sleep of mice?", Constraints: &marchwarden.Constraints{SourceFilter: filter}})
		if want == "" && len(res.Citations) > 0 {
			t.Errorf("%s: %+v", filter, res.Citations)
		}
		for _, c := range res.Citations {
			if c.Locator != want {
				t.Errorf("%s: %s was cited", filter, c.Locator)
			}
		}
		if want != "" && len(res.Citations) == 0 {
			t.Errorf("%s: no citation: %+v", filter, res.Gaps)
		}
	}
}

func TestRefusals(t *testing.T) {
	l := newPaperLab(t, transformers(t))
	filter, err := marchwarden.ParseSourceFilter("nasa.gov")
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx  context.Context
		loc  string
		code marchwarden.Code
	}{
		{t.Context(), "https://evil.example/", marchwarden.CodeDenied},
		{t.Context(), "file:///etc/passwd", marchwarden.CodeDenied},
		{t.Context(), "", marchwarden.CodeDenied},
		{t.Context(), "arxiv:2101.99999", marchwarden.CodeNotFound},
		{t.Context(), "doi:10.1000/none", marchwarden.CodeNotFound},
		{fetch.Within(t.Context(), filter), "arxiv:2101.00007", marchwarden.CodeDenied},
		{gone, "arxiv:2101.00007", marchwarden.CodeCanceled},
		{gone, "doi:10.1000/none", marchwarden.CodeCanceled},
	} {
		if _, err := l.papers.Fetch(tt.ctx, tt.loc); !errors.Is(err, tt.code) {
			t.Errorf("%q: %v, want %v", tt.loc, err, tt.code)
		}
	}
}

// Services that send nonsense lose nothing but what they know.
func TestHostileServices(t *testing.T) {
	for name, body := range map[string]string{
		"deep": strings.Repeat("[", 100_000), "types": `{"doi": 7, "title": {}}`, "huge": `{"doi": "https://doi.org/10.48550/arxiv.2101.00007", "title": "` + strings.Repeat("x", 9<<20) + `"}`,
		"controls": `{"doi": "https://doi.org/10.48550/arxiv.2101.00007", "title": "\u001b[2J\u202e", "cited_by_count": -5, "abstract_inverted_index": {"a": [99999999]}}`,
	} {
		w := transformers(t)
		w.works["/oa/works/doi:10.48550/arxiv.2101.00007"] = body
		w.works["/s2/graph/v1/paper/arXiv:2101.00007"] = body
		text, page := newPaperLab(t, w).read(t, "arxiv:2101.00007")
		if page.Title != "The Lemming model" || !strings.Contains(text, "Cited by: unknown.") || !strings.Contains(text, "eleven") || strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("%s: %+v\n%.600s", name, page, text)
		}
	}
	w := transformers(t)
	w.papers = []string{"<id>http://arxiv.org/abs/2101.00007v3</id><title>&bomb;</title>"}
	res := newPaperLab(t, w).ask(t, marchwarden.Request{Question: lemmings})
	if !slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool {
		return g.Category == marchwarden.AccessDenied && strings.Contains(g.Detail, "arxiv")
	}) {
		t.Errorf("%+v", res.Gaps)
	}
}
