package report

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/biblio"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
)

// Paper is what the record of a scholarly paper says for a bibliography.
type Paper struct {
	Authors []string
	More    int      // authors beyond those
	DOI     string   // of the published version, or ""
	Journal string   // where it was published, or ""
	PDF     blob.Ref // the stored full text, if it is one
}

// sourcePaper is the kind of source of the researcher that reads papers.
const sourcePaper = "arxiv"

// maxPaper bounds the record of a paper that is looked into.
const maxPaper = 4 << 20

// paperOf reads the raw form of a paper's page; nil if it is none, or has an unknown form.
func paperOf(ctx context.Context, blobs blob.Store, p fetch.Page) (*Paper, error) {
	if p.Source != sourcePaper || !p.Raw.Valid() || p.MediaType != "application/json" || p.RawBytes > maxPaper {
		return nil, nil
	}
	raw, err := blobs.Get(ctx, p.Raw)
	if err != nil {
		return nil, err
	}
	var rec struct {
		Preprint *struct {
			Authors []string `json:"authors"`
			More    int      `json:"more_authors"`
			DOI     string   `json:"doi"`
			Journal string   `json:"journal"`
		} `json:"arxiv"`
		Indexes *scholar.Work `json:"indexes"`
		Full    struct {
			Raw       blob.Ref `json:"raw"`
			MediaType string   `json:"media_type"`
		} `json:"full_text"`
	}
	if json.Unmarshal(raw, &rec) != nil {
		return nil, nil
	}
	paper := &Paper{}
	if rec.Full.MediaType == "application/pdf" {
		paper.PDF = rec.Full.Raw
	}
	if w := rec.Indexes; w != nil {
		paper.Authors, paper.DOI = w.Authors, w.DOI
		if w.InPrint {
			paper.Journal = w.Venue
		}
	}
	if a := rec.Preprint; a != nil {
		if len(a.Authors) > 0 {
			paper.Authors, paper.More = a.Authors, a.More
		}
		paper.DOI, paper.Journal = cmp.Or(paper.DOI, a.DOI), cmp.Or(paper.Journal, a.Journal)
	}
	return paper, nil
}

// Entries are the cited documents for a bibliography, each once, in the order in
// which they are first cited.
func (r *Report) Entries() []biblio.Entry {
	var out []biblio.Entry
	for _, ref := range r.references() {
		out = append(out, ref.Entry)
	}
	return out
}

// reference is a cited document, as people write it, and the numbers of its citations.
type reference struct {
	biblio.Entry
	text, address string
	cited         []int
}

// references are the cited documents in the order of their numbers. Two citations are of one document if
// they name the same paper, or the same locator but for the place in it.
func (r *Report) references() []reference {
	var out []reference
	for _, cited := range byDocument(r.Result, func(c marchwarden.Citation) string {
		if id, ok := scholar.ParseID(whole(c.Locator)); ok {
			return id.Locator()
		}
		return whole(c.Locator)
	}) {
		e := entry(r.Result.Citations[cited[0]-1], r.source(cited[0]-1))
		text, address := e.Reference()
		out = append(out, reference{e, text, address, cited})
	}
	return out
}

// byDocument are the numbers of the citations, those of one document together, in the order of the
// first of each.
func byDocument(res *marchwarden.Result, name func(marchwarden.Citation) string) (cited [][]int) {
	at := map[string]int{}
	for i, c := range res.Citations {
		n, seen := at[name(c)]
		if !seen {
			n, cited = len(cited), append(cited, nil)
			at[name(c)] = n
		}
		cited[n] = append(cited[n], i+1)
	}
	return cited
}

// entry describes one document.
func entry(c marchwarden.Citation, src Source) biblio.Entry {
	e := biblio.Entry{Title: c.Title, Published: c.Published, Locator: whole(c.Locator)}
	if c.FetchedAt != nil {
		e.Accessed = c.FetchedAt.UTC().Format(time.DateOnly)
	}
	if id, ok := scholar.ParseID(e.Locator); ok {
		return paperEntry(e, src, id)
	}
	e.Authors, e.MoreAuthors = biblio.Byline(src.Page.Author)
	if !strings.HasPrefix(c.Locator, c.Origin) { // a file of the user's has only itself for one
		e.Publisher = c.Origin
	}
	if at, ok := locator.Canonical(e.Locator); ok {
		e.URL, e.Locator = at, ""
	}
	return e
}

func paperEntry(e biblio.Entry, src Source, id scholar.ID) biblio.Entry {
	e.Locator = ""
	e.DOI, e.ArXiv, e.URL = id.DOI(), id.Versioned(), id.URL()
	if p := src.Paper; p != nil {
		e.Authors, e.MoreAuthors, e.Journal = biblio.People(p.Authors), p.More, p.Journal
		if doi, ok := scholar.ParseID(p.DOI); ok && doi.ArXiv() == "" {
			e.DOI = doi.DOI()
		}
	}
	if len(e.Authors) == 0 {
		e.Authors, e.MoreAuthors = biblio.Byline(src.Page.Author)
	}
	return e
}
