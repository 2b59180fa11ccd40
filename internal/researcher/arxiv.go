package researcher

// The researcher of scientific papers: engines that the caller chose, and the fetcher of papers, from an arXiv id or a DOI
// to one document. Package scholar speaks the protocols, and a guarded web fetcher downloads pages.

import (
	"context"
	"strings"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// ArxivName is the researcher's name in the network, in traces and in costs.
const ArxivName = "arxiv"

// ArxivScope says in a sentence what the researcher covers.
const ArxivScope = "scientific papers: arXiv preprints with their full text, and published work by DOI, with citation counts and retraction notices"

const guide = "Searches are of scientific papers, by title, abstract and author. Use a few content words of the field, not a sentence: every word must be in the paper. " +
	`A phrase may stand in "quotation marks"; author:NAME and title:WORD ask for these alone; an arXiv id (arXiv:1706.03762) or a DOI finds that paper.`

// ArxivConfig is what the researcher works with. The caller closes what it passes in.
type ArxivConfig struct {
	Lab
	Engine  search.Engine // gives locators that scholar.ParseID reads
	Fetcher fetch.Fetcher // takes those locators; *Papers is one
}

// NewArxiv makes the researcher that answers from papers; those that the question names are
// read whatever a search finds. It is safe for concurrent use.
func NewArxiv(cfg ArxivConfig) marchwarden.Researcher {
	where := "papers by " + cfg.Engine.Name()
	return Prepared{cfg.Lab, ArxivName, func(_ context.Context, req marchwarden.Request) (Setup, error) {
		// What the caller knows may come from private sources: only the question's own papers are asked for.
		var given []string
		for _, id := range scholar.InText(req.Question) {
			given = append(given, id.Locator())
		}
		return Setup{Where: where, Outside: true, Engine: cfg.Engine, Fetcher: cfg.Fetcher, Given: given, Library: []string{where}, Guide: guide}, nil
	}}
}

// Together is an engine that asks all engines at the same time and takes their
// hits in turn, the first engine's best first: an index of preprints and one of
// journals have different papers to say about one question. A title that was taken
// is not taken again: it is most often the other version of one paper. Its name is
// theirs joined by "+".
//
// An engine that fails costs only its own hits; the error that comes with the
// others' names it.
func Together(engines ...search.Engine) search.Engine {
	return together(engines)
}

type together []search.Engine

// Name implements search.Engine.
func (t together) Name() string { return search.Chain(t...).Name() }

// Search implements search.Engine.
func (t together) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	found := make([][]search.Hit, len(t))
	errs := make([]error, len(t))
	var g sync.WaitGroup
	for i, e := range t {
		g.Go(func() { found[i], errs[i] = e.Search(ctx, q) })
	}
	g.Wait()
	err := search.Failed(t, errs)
	if err != nil && ctx.Err() != nil {
		return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "%s: the search was stopped", t.Name())
	}
	return interleave(found, q.Limit), err
}

// interleave takes the hits in turn, each locator and each title once, at most limit if there is one.
func interleave(found [][]search.Hit, limit int) []search.Hit {
	var hits []search.Hit
	seen := map[string]bool{}
	for rank := 0; ; rank++ {
		more := false
		for _, list := range found {
			if rank >= len(list) {
				continue
			}
			more = true
			h := list[rank]
			title := strings.Join(lexicon.Terms(h.Title), " ")
			if seen[h.Locator] || title != "" && seen[title] || limit > 0 && len(hits) >= limit {
				continue
			}
			seen[h.Locator], seen[title] = true, true
			h.Score = 1 / float64(1+len(hits))
			hits = append(hits, h)
		}
		if !more {
			return hits
		}
	}
}
