package drift

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
)

// Papers asks the indexes of papers and arXiv whether papers were taken back. It sends names of
// papers and nothing else.
type Papers struct {
	ArXiv   *scholar.Arxiv
	Indexes *scholar.Service
}

const (
	// mostFailures is how often a service may fail before it is left alone.
	mostFailures = 2
	// mostInList is how many papers arXiv is asked for at once.
	mostInList = 50
)

// Retracted are those of the locators that name papers which were taken back, each with what is
// known of it. What no service answered is left out: it is not known.
func (p Papers) Retracted(ctx context.Context, locators []string) map[string]string {
	found, withdrawn, failures := map[string]string{}, p.withdrawn(ctx, locators), map[string]int{}
	skip := func(index string) error {
		if failures[index] >= mostFailures {
			return context.Canceled
		}
		return ctx.Err()
	}
	for _, loc := range locators {
		id, ok := paperOf(loc)
		if !ok {
			continue
		}
		work, _ := p.Indexes.Standing(ctx, skip, id.Work()) // the work says which index failed
		for _, a := range work.Asked {
			if a.Code != "" {
				failures[a.Index]++
			}
		}
		switch comment, taken := withdrawn[id.Work()]; {
		case work.Retracted && work.Notice == "" && work.NoticeBy != "":
			found[loc] = "retracted, says " + work.NoticeBy
		case work.Retracted:
			found[loc] = strings.TrimSpace("retracted " + work.Notice)
		case taken:
			found[loc] = scholar.Line("withdrawn, says arXiv: "+comment, 300)
		}
	}
	return found
}

// withdrawn are the papers that their authors took back from arXiv, with what they say. They are looked up
// together: arXiv takes one question every three seconds.
func (p Papers) withdrawn(ctx context.Context, locators []string) map[scholar.ID]string {
	var ids []scholar.ID
	for _, loc := range locators {
		if id, ok := paperOf(loc); ok && id.ArXiv() != "" {
			ids = append(ids, id.Work())
		}
	}
	taken := map[scholar.ID]string{}
	for part := range slices.Chunk(ids, mostInList) {
		papers, _ := p.ArXiv.Papers(ctx, part...) // what arXiv did not say is not known
		for _, paper := range papers {
			if paper.Withdrawn() {
				taken[paper.ID.Work()] = paper.Comment
			}
		}
	}
	return taken
}

// publisher is how publishers put a DOI into the path of an article: behind a word
// for what follows, and at the path's end but for the form of the article.
var publisher = regexp.MustCompile(`^(?:/[^/]+)?/(?:doi|articles?|chapter|book)(?:/(?:abs|full|fullHtml|pdf|epdf|pdfdirect|pdfplus|epub|book))?/(10\.[0-9]{4,9}/[^/]+?)(?:/(?:full|abstract|pdf|html|meta))?/?$`)

// paperOf is the paper that a locator names, or whose DOI its address surely holds.
func paperOf(loc string) (scholar.ID, bool) {
	if id, ok := scholar.ParseID(loc); ok {
		return id, true
	}
	address, ok := locator.Canonical(loc)
	if !ok {
		return scholar.ID{}, false
	}
	u, err := url.Parse(address)
	if err != nil {
		return scholar.ID{}, false
	}
	found := u.Query().Get("id") // as in journals.plos.org/plosone/article?id=10.1371/…
	if m := publisher.FindStringSubmatch(u.Path); m != nil {
		found = m[1]
	}
	if !strings.HasPrefix(found, "10.") || strings.HasSuffix(strings.ToLower(found), ".pdf") || strings.HasSuffix(strings.ToLower(found), ".html") {
		return scholar.ID{}, false
	}
	return scholar.ParseID(found)
}
