// Package scholar knows papers by their identifiers and asks the public indexes of
// scholarly work about them: Crossref, OpenAlex and Semantic Scholar. It owns the
// one written form of an arXiv id and of a DOI, the protocols of the three
// indexes, what they agree on about one paper (Work), and a search engine over
// OpenAlex. It does not read papers, and it does not judge them: what a count of
// citations is worth is its caller's business.
//
// What an index does not know and what it did not answer are kept apart, and
// neither is ever written down as none.
package scholar

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

// Config says where the indexes are. The zero Config is the public ones, without
// a key.
type Config struct {
	CrossrefURL        string // "" is https://api.crossref.org
	OpenAlexURL        string // "" is https://api.openalex.org
	SemanticScholarURL string // "" is https://api.semanticscholar.org
	// Mailto is an address at which the indexes can reach who runs the program, which
	// Crossref and OpenAlex ask for and reward with better service; "" sends none.
	// It is in no error.
	Mailto             string
	OpenAlexKey        string // optional; in no error
	SemanticScholarKey string // optional; in no error
	HTTP               *http.Client
	UserAgent          string
	Timeout            time.Duration // of one request; 0 is ten seconds
}

// The names of the indexes, as people know them.
const (
	Crossref        = "Crossref"
	OpenAlex        = "OpenAlex"
	SemanticScholar = "Semantic Scholar"
)

// Service asks the indexes. It is safe for concurrent use.
type Service struct {
	crossref, openalex, semantic httpapi.Service
	mailto, openalexKey          string
}

// New makes a Service. Nothing is sent before the first question.
func New(c Config) *Service {
	api := func(name, base, usual, field, key string) httpapi.Service {
		return httpapi.Service{
			Name: name, Base: cmp.Or(base, usual), BaseField: field, HTTP: c.HTTP, UserAgent: c.UserAgent,
			MaxBytes: 8 << 20, // a paper may have thousands of authors
			Timeout:  cmp.Or(c.Timeout, 10*time.Second), Secrets: []string{c.Mailto, key},
		}
	}
	s := &Service{
		crossref: api("crossref", c.CrossrefURL, "https://api.crossref.org", "CROSSREF_URL", ""),
		openalex: api("openalex", c.OpenAlexURL, "https://api.openalex.org", "OPENALEX_URL", c.OpenAlexKey),
		semantic: api("semanticscholar", c.SemanticScholarURL, "https://api.semanticscholar.org", "SEMANTIC_SCHOLAR_URL", c.SemanticScholarKey),
		mailto:   c.Mailto, openalexKey: c.OpenAlexKey,
	}
	if c.OpenAlexKey != "" {
		s.openalex.DeniedHint = "check OPENALEX_API_KEY"
	}
	if c.SemanticScholarKey != "" {
		s.semantic.DeniedHint = "check SEMANTIC_SCHOLAR_API_KEY"
		s.semantic.Header = http.Header{"X-Api-Key": {c.SemanticScholarKey}}
	}
	return s
}

// Work is what the indexes say of one paper. All text is clean: one line, or
// paragraphs for the abstract, without control characters.
type Work struct {
	DOI       string   `json:"doi,omitempty"`   // of the published version; never the one that arXiv gives
	ArXiv     string   `json:"arxiv,omitempty"` // arXiv id without version
	Title     string   `json:"title,omitempty"`
	Authors   []string `json:"authors,omitempty"`
	Published string   `json:"published,omitempty"` // 2006-01-02, or "" when the day is not known
	Year      int      `json:"year,omitempty"`
	Venue     string   `json:"venue,omitempty"`
	// InPrint says that an index has the paper in a journal, a book or proceedings.
	InPrint bool `json:"in_print,omitempty"`
	// Citations is how many works cite the paper, and CountedBy who says so; nil is
	// unknown, which is not none.
	Citations *int   `json:"citations,omitempty"`
	CountedBy string `json:"counted_by,omitempty"`
	// Retracted says that an index knows of a retraction, a removal or a withdrawal;
	// Concern of an expression of concern or a partial retraction. Notice is the DOI
	// of the notice, where it is known, and NoticeBy who says so.
	Retracted bool   `json:"retracted,omitempty"`
	Concern   bool   `json:"concern,omitempty"`
	Notice    string `json:"notice,omitempty"`
	NoticeBy  string `json:"notice_by,omitempty"`
	// Retracts are the DOIs of works that this one, a notice, takes back.
	Retracts []string `json:"retracts,omitempty"`
	Abstract string   `json:"abstract,omitempty"`
	// FullText are addresses that an index gives for a free copy, best first. They
	// are untrusted: fetch them as any page.
	FullText []string `json:"full_text,omitempty"`
	// Asked is what became of every question, in a fixed order.
	Asked []Answer `json:"asked"`
}

// Answer is what one index said.
type Answer struct {
	Index string `json:"index"`
	Known bool   `json:"known"` // it has the paper
	// Code and Fault say why it did not answer; "" if it did.
	Code  marchwarden.Code `json:"code,omitempty"`
	Fault string           `json:"fault,omitempty"`
}

// errUnknown is an index that answered that it does not have the paper.
var errUnknown = errors.New("does not know the paper")

// Look asks all indexes about the paper with these IDs, of which the first arXiv
// id and the first DOI count, and merges what they say. An index that fails costs
// only what it knows: the Work says which, and Look returns no error for it. If
// none has the paper the error is CodeNotFound, unless one failed: then it is that
// one's code, for what is not answered is not missing. When ctx ends the error is
// CodeCanceled.
func (s *Service) Look(ctx context.Context, ids ...ID) (Work, error) {
	return look(ctx, nil, ids, question{Crossref, s.askCrossref}, question{OpenAlex, s.askOpenAlex}, question{SemanticScholar, s.askSemantic})
}

// Standing is Look without Semantic Scholar: it asks those alone that know whether
// a paper was retracted. An index for which skip has an error is not asked, and
// counts as having failed with it; a nil skip skips none.
func (s *Service) Standing(ctx context.Context, skip func(index string) error, ids ...ID) (Work, error) {
	return look(ctx, skip, ids, question{Crossref, s.askCrossref}, question{OpenAlex, s.askOpenAlex})
}

// look asks the given indexes, of which Crossref is the first.
func look(ctx context.Context, skip func(index string) error, ids []ID, all ...question) (Work, error) {
	var about names
	for _, id := range ids {
		switch {
		case id.arxiv != "" && about.arxiv == "":
			about.arxiv = id.arxiv
		case id.doi != "" && about.doi == "":
			about.doi = id.doi
		}
	}
	said := make([]Work, len(all))
	errs := make([]error, len(all))
	ask := func(i int) {
		if skip != nil {
			errs[i] = skip(all[i].index)
		}
		if errs[i] == nil {
			said[i], errs[i] = all[i].ask(ctx, about)
			said[i].CountedBy = all[i].index
		}
	}
	var g errgroup.Group
	for i := range all {
		if i > 0 || about.doi != "" { // Crossref has no DOIs of arXiv
			g.Go(func() error { ask(i); return nil })
		}
	}
	_ = g.Wait() // no question returns an error here
	if about.doi == "" {
		for _, x := range said[1:] {
			about.doi = cmp.Or(about.doi, x.DOI)
		}
		if about.doi != "" {
			ask(0) // for retractions, which it knows best
		} else {
			errs[0] = errUnknown
		}
	}
	if ctx.Err() != nil {
		return Work{}, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "the question about a paper was stopped")
	}
	w := merge(about, said)
	for i, q := range all {
		a := Answer{Index: q.index, Known: errs[i] == nil}
		if errs[i] != nil && !errors.Is(errs[i], errUnknown) {
			a.Code, a.Fault = marchwarden.CodeOf(errs[i]), Line(errs[i].Error(), 200)
		}
		w.Asked = append(w.Asked, a)
	}
	return w, verdict(w, errs)
}

// names are the identifiers of one paper.
type names struct{ arxiv, doi string }

// id is what to ask an index by that takes DOIs.
func (n names) id() ID {
	if n.doi != "" {
		return ID{doi: n.doi}
	}
	return ID{arxiv: n.arxiv}
}

// question asks one index.
type question struct {
	index string
	ask   func(context.Context, names) (Work, error)
}

// verdict is the error of a question that no index could answer.
func verdict(w Work, errs []error) error {
	if slices.ContainsFunc(w.Asked, func(a Answer) bool { return a.Known }) {
		return nil
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, errUnknown) {
			return err
		}
	}
	return marchwarden.Errorf(marchwarden.CodeNotFound, "no index knows the paper")
}

// failed makes a missing paper of a 404 and leaves other errors alone.
func failed(err error) error {
	if httpapi.Status(err) == http.StatusNotFound {
		return errUnknown
	}
	return err
}

// another is the error of an answer about some other paper.
func another(index string) error {
	return marchwarden.Errorf(marchwarden.CodeMalformed, "%s: the answer is about another paper", index)
}

// takenBack is how publishers mark the title of a paper that they took back.
var takenBack = regexp.MustCompile(`^(?i)\W*(?:retracted|withdrawn)(?:\s+(?:article|paper|chapter))?\s*[:\])–—-]`)

// merge joins what the indexes say, Crossref first, which has it from the
// publishers. Citations are OpenAlex's count, else Semantic Scholar's, else
// Crossref's: the first counts most widely.
func merge(about names, said []Work) Work {
	w := Work{ArXiv: about.arxiv} // a DOI counts once an index has the paper under it
	for _, x := range said {
		w.DOI, w.ArXiv = cmp.Or(w.DOI, x.DOI), cmp.Or(w.ArXiv, x.ArXiv)
		w.Title, w.Published, w.Venue = cmp.Or(w.Title, x.Title), cmp.Or(w.Published, x.Published), cmp.Or(w.Venue, x.Venue)
		w.Year, w.Abstract = cmp.Or(w.Year, x.Year), cmp.Or(w.Abstract, x.Abstract)
		w.InPrint, w.Concern = w.InPrint || x.InPrint, w.Concern || x.Concern
		if x.Retracted || takenBack.MatchString(x.Title) {
			w.Retracted = true
		}
		w.Notice, w.NoticeBy = cmp.Or(w.Notice, x.Notice), cmp.Or(w.NoticeBy, x.NoticeBy)
		w.Retracts = append(w.Retracts, x.Retracts...)
		if len(w.Authors) == 0 {
			w.Authors = x.Authors
		}
		for _, at := range x.FullText {
			if !slices.Contains(w.FullText, at) {
				w.FullText = append(w.FullText, at)
			}
		}
	}
	for _, x := range append(said[1:len(said):len(said)], said[0]) {
		if w.Citations == nil && x.Citations != nil && *x.Citations >= 0 {
			w.Citations, w.CountedBy = x.Citations, x.CountedBy
		}
	}
	if len(w.Retracts) > 0 { // a notice carries the title of what it takes back
		w.Retracted = slices.ContainsFunc(said, func(x Work) bool { return x.Retracted && x.Notice != "" })
	}
	w.Title = strings.TrimSpace(w.Title)
	return w
}
