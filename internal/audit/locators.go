package audit

import (
	"net/url"
	"regexp"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
)

// name is what a locator names: a paper, or an address, of which the paper is known
// where the address surely says so.
type name struct {
	kind    Kind
	paper   scholar.ID
	address string
}

// nameOf reads a locator. Links to arXiv and to doi.org are the papers they lead to.
func nameOf(loc string) name {
	if id, ok := scholar.ParseID(loc); ok {
		if id.ArXiv() != "" {
			return name{kind: ArXiv, paper: id}
		}
		return name{kind: DOI, paper: id}
	}
	if at, ok := locator.Canonical(loc); ok {
		id, _ := inAddress(at)
		return name{kind: URL, paper: id, address: at}
	}
	return name{kind: Other}
}

// publisher is how publishers put a DOI into the path of an article: behind a word
// for what follows, and at the path's end but for the form of the article.
var publisher = regexp.MustCompile(`^(?:/[^/]+)?/(?:doi|articles?|chapter|book)(?:/(?:abs|full|fullHtml|pdf|epdf|pdfdirect|pdfplus|epub|book))?/(10\.[0-9]{4,9}/[^/]+?)(?:/(?:full|abstract|pdf|html|meta))?/?$`)

// inAddress is the paper whose DOI an address holds, if it is certain where the DOI
// ends.
func inAddress(address string) (scholar.ID, bool) {
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
