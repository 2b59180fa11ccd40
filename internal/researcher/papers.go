package researcher

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
)

// extractor names the way from a record to a text; it changes with compose.
const extractor = "papers/1"

const maxLinks = 30

// PapersConfig is what the fetcher of papers works with. The caller closes what it passes in.
type PapersConfig struct {
	Store    blob.Store
	API      *scholar.Arxiv
	Scholar  *scholar.Service
	Web      fetch.Fetcher // fetches full texts, guarded, and stores where Store reads; nil leaves papers with their abstracts
	Site     string        // arXiv's web site, for full texts; "" is https://arxiv.org
	Patience time.Duration // how long a paper waits for its full text before it goes with its abstract; 0 is half a minute
	Now      func() time.Time
}

// Papers fetches papers by arXiv id and DOI. It is safe for concurrent use.
type Papers struct{ cfg PapersConfig }

var _ fetch.Refetcher = (*Papers)(nil)

// NewPapers makes the fetcher; it opens nothing.
func NewPapers(cfg PapersConfig) *Papers {
	cfg.Site = strings.TrimSuffix(cmp.Or(cfg.Site, "https://arxiv.org"), "/")
	cfg.Patience = cmp.Or(cfg.Patience, 30*time.Second)
	return &Papers{cfg}
}

// record is all that was found about one paper: the raw form of its page. Fields are only ever added.
type record struct {
	Paper     *scholar.Preprint `json:"arxiv,omitempty"`
	Work      *scholar.Work     `json:"indexes,omitempty"`
	APIFault  marchwarden.Code  `json:"arxiv_fault,omitempty"` // why arXiv did not say more; "" if it did or was not asked
	Full      *full             `json:"full_text,omitempty"`
	FullFault string            `json:"full_text_fault,omitempty"` // why there is no full text
}

type full struct {
	URL       string   `json:"url"`
	Raw       blob.Ref `json:"raw"`
	Text      blob.Ref `json:"text"`
	MediaType string   `json:"media_type"`
	Extractor string   `json:"extractor"`
}

// Fetch implements fetch.Fetcher for locators that scholar.ParseID reads. What is
// stored as the page's text is one document: what is known of the paper, its
// abstract, its full text. A paper that was taken back says so in its first line
// and in its title.
//
// An index or a full text that cannot be had costs the page only that, and its
// text says so. Beside the codes that fetch.Fetcher names, CodeMalformed tells
// that the one place that knows the paper answered badly.
func (p *Papers) Fetch(ctx context.Context, loc string) (fetch.Page, error) {
	page, err := p.fetch(ctx, loc)
	if err != nil {
		code := marchwarden.CodeOf(err)
		if ctx.Err() != nil {
			code = marchwarden.CodeCanceled
		}
		return fetch.Page{}, &marchwarden.Error{Code: code, Message: fmt.Sprintf("fetch %.300q", loc), Hint: marchwarden.HintOf(err), Err: err}
	}
	return page, nil
}

func (p *Papers) fetch(ctx context.Context, loc string) (fetch.Page, error) {
	id, ok := scholar.ParseID(loc)
	if !ok {
		return fetch.Page{}, marchwarden.Errorf(marchwarden.CodeDenied, "neither an arXiv id nor a DOI")
	}
	if !fetch.Allowed(ctx, id.Host()) {
		return fetch.Page{}, marchwarden.Errorf(marchwarden.CodeDenied, "%s is outside the source filter", id.Host())
	}
	gather := p.published
	if id.ArXiv() != "" {
		gather = p.preprint
	}
	r, text, err := gather(ctx, id)
	if err == nil && ctx.Err() != nil {
		err = marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "the reading of a paper was stopped")
	}
	if err != nil {
		return fetch.Page{}, err
	}
	return p.keep(ctx, loc, id, r, text)
}

// preprint gathers a paper of arXiv, by what the indexes know if arXiv's own record cannot be had.
func (p *Papers) preprint(ctx context.Context, id scholar.ID) (record, fetch.Page, error) {
	var r record
	paper, err := p.cfg.API.Paper(ctx, id)
	version := id
	switch code := marchwarden.CodeOf(err); {
	case err == nil:
		r.Paper, version = &paper, paper.ID
	case code == marchwarden.CodeNotFound || ctx.Err() != nil:
		return r, fetch.Page{}, err
	default:
		r.APIFault = code
	}
	var g sync.WaitGroup
	g.Go(func() { r.Work = p.known(ctx, id, r.Paper) })
	page, fault := p.fullText(ctx, p.places(version), nil)
	g.Wait()
	r.FullFault = fault
	if r.Paper == nil && (r.Work == nil || r.Work.Title == "") {
		return r, fetch.Page{}, err // what was read is unknown
	}
	return r, page, nil
}

func (p *Papers) published(ctx context.Context, id scholar.ID) (record, fetch.Page, error) {
	work, err := p.look(ctx, id)
	if err != nil {
		return record{}, fetch.Page{}, err
	}
	r := record{Work: work}
	var page fetch.Page
	if preprint, ok := scholar.ParseID(work.ArXiv); ok {
		page, r.FullFault = p.fullText(ctx, p.places(preprint), nil)
	}
	if !page.Text.Valid() {
		page, r.FullFault = p.fullText(ctx, work.FullText, lexicon.Terms(work.Title))
	}
	return r, page, nil
}

// known is what the indexes say of a preprint. The DOI of the published version is the authors' word, who can write
// down any: it is believed if what is published there looks like the preprint, or an index knows the two for one.
func (p *Papers) known(ctx context.Context, id scholar.ID, paper *scholar.Preprint) *scholar.Work {
	if paper != nil {
		if doi, ok := scholar.ParseID(paper.DOI); ok {
			if work, err := p.look(ctx, id, doi); err != nil || alike(paper, work) {
				return work
			}
		}
	}
	work, _ := p.look(ctx, id)
	return work
}

// alike reports whether two records are of one paper, by most words of the titles and the last name of an author.
func alike(paper *scholar.Preprint, work *scholar.Work) bool {
	if share(lexicon.Terms(paper.Title), lexicon.Terms(work.Title)) < titleShare || share(lexicon.Terms(work.Title), lexicon.Terms(paper.Title)) < titleShare {
		return false
	}
	last := func(names []string) []string {
		var out []string
		for _, n := range names {
			if f := strings.Fields(strings.ToLower(n)); len(f) > 0 {
				out = append(out, f[len(f)-1])
			}
		}
		return out
	}
	return len(paper.Authors) == 0 || len(work.Authors) == 0 || share(last(paper.Authors), last(work.Authors)) > 0
}

// titleShare is the part of a title's words from which a text counts as having it.
const titleShare = 0.6

// share is the part of the words that the others have; of no words, all.
func share(words, others []string) float64 {
	found := 0
	for _, w := range words {
		if slices.Contains(others, w) {
			found++
		}
	}
	if len(words) == 0 {
		return 1
	}
	return float64(found) / float64(len(words))
}

// look asks the indexes. The work is there even with an error, if only to say who was asked.
func (p *Papers) look(ctx context.Context, ids ...scholar.ID) (*scholar.Work, error) {
	work, err := p.cfg.Scholar.Look(ctx, ids...)
	return &work, err
}

// places are where arXiv has the full text: as a web page for newer papers, as PDF for nearly all.
func (p *Papers) places(id scholar.ID) []string {
	var out []string
	for _, form := range []string{"/html/", "/pdf/"} {
		if at, ok := locator.Canonical(p.cfg.Site + form + id.Versioned()); ok {
			out = append(out, at)
		}
	}
	return out
}

// minText is the shortest text, in bytes, that can be a paper's; below it is an error page or a notice.
const minText = 1000

// fullText fetches the first place that has a text, or says why none has. A page that does not begin with most words
// of title, where they are given, is not the paper: it may ask for a login.
func (p *Papers) fullText(ctx context.Context, places []string, title []string) (fetch.Page, string) {
	if p.cfg.Web == nil {
		return fetch.Page{}, "not asked for"
	}
	fault := "no free copy is known"
	patient, done := context.WithTimeout(ctx, p.cfg.Patience)
	defer done()
	for _, at := range places {
		page, err := p.cfg.Web.Fetch(patient, at)
		code := marchwarden.CodeOf(err)
		switch {
		case code == marchwarden.CodeCanceled:
			return fetch.Page{}, plain(marchwarden.CodeTimeout) // or the caller left, who looks himself
		case code == marchwarden.CodeRateLimited:
			return fetch.Page{}, plain(code) // another address of theirs would be no better
		case code == marchwarden.CodeNotFound:
			fault = "no free copy is known"
		case err != nil:
			fault = plain(code)
		case page.NonText || page.TextBytes < minText:
			fault = "no text could be read from it"
		case !p.begins(ctx, page, title):
			fault = "what is there is not the paper"
		default:
			return page, ""
		}
	}
	return fetch.Page{}, fault
}

// begins reports whether a text has most of the words in its beginning.
func (p *Papers) begins(ctx context.Context, page fetch.Page, words []string) bool {
	if len(words) == 0 {
		return true
	}
	const beginning = 8000
	text, err := p.cfg.Store.Get(ctx, page.Text)
	if err != nil {
		return false
	}
	return share(words, lexicon.Terms(strings.ToValidUTF8(string(text[:min(len(text), beginning)]), ""))) >= titleShare
}

// keep stores the record and the text made from it, and describes them.
func (p *Papers) keep(ctx context.Context, loc string, id scholar.ID, r record, page fetch.Page) (fetch.Page, error) {
	store := context.WithoutCancel(ctx)
	var body string
	if page.Text.Valid() {
		var err error
		if body, err = blob.Text(store, p.cfg.Store, page.Text); err != nil {
			return fetch.Page{}, fmt.Errorf("read the full text: %w", err)
		}
		r.Full = &full{URL: cmp.Or(page.URL, page.Locator), Raw: page.Raw, Text: page.Text, MediaType: page.MediaType, Extractor: page.Extractor}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return fetch.Page{}, marchwarden.Wrap(err, marchwarden.CodeInternal, "write the record")
	}
	a := about(id, r)
	out := fetch.Page{
		Locator: loc, URL: a.id.URL(), Source: "arxiv", Title: a.title, Author: a.byline(), Published: a.published, Origin: a.origin, Standing: standing(r),
		MediaType: "application/json", Extractor: extractor, Links: links(a, r, page.Links), FetchedAt: p.cfg.Now().UTC(),
	}
	if r.Full != nil {
		out.Also = []blob.Ref{r.Full.Raw, r.Full.Text}
	}
	return fetch.Keep(store, p.cfg.Store, out, raw, compose(a, r, body))
}

// links are the papers that a full text links to, as locators, after the notice that takes the paper back.
func links(a subject, r record, addresses []string) []string {
	var out []string
	add := func(id scholar.ID, ok bool) {
		at := id.Work().Locator()
		if ok && len(out) < maxLinks && at != a.origin && at != "doi:"+a.doi && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	if r.Work != nil {
		add(scholar.ParseID(r.Work.Notice))
	}
	for _, at := range addresses {
		add(scholar.ParseID(at))
	}
	return out
}

// Refetch implements fetch.Refetcher. A paper that comes without what it came with before,
// because a service did not answer, was not had: what it lacks is not lost.
func (p *Papers) Refetch(ctx context.Context, was fetch.Page) (fetch.Page, error) {
	page, err := p.Fetch(ctx, was.Locator)
	if err != nil {
		return fetch.Page{}, err
	}
	then, now := p.recorded(ctx, was), p.recorded(ctx, page)
	switch {
	case then.Full != nil && now.Full == nil:
		err = marchwarden.Errorf(marchwarden.CodeUnavailable, "its full text could not be had: %s", now.FullFault)
	case then.APIFault == "" && now.APIFault != "":
		err = marchwarden.Errorf(marchwarden.CodeUnavailable, "arXiv did not answer: %s", now.APIFault)
	}
	return page, err
}

// recorded is the record of a page; of a damaged one nothing is expected.
func (p *Papers) recorded(ctx context.Context, page fetch.Page) record {
	var r record
	raw, err := p.cfg.Store.Get(ctx, page.Raw)
	if err != nil || json.Unmarshal(raw, &r) != nil {
		return record{}
	}
	return r
}
