package researcher

// The researcher of scientific papers: engines that the caller chose, and the fetcher of papers, from an arXiv id or a DOI
// to one document. Package scholar speaks the protocols, and a guarded web fetcher downloads pages.

import (
	"context"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
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
