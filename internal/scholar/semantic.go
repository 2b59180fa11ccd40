package scholar

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// semanticPaper is the part of a record that is used.
type semanticPaper struct {
	External struct {
		DOI   string `json:"DOI"`
		ArXiv string `json:"ArXiv"`
	} `json:"externalIds"`
	Title     string   `json:"title"`
	Abstract  string   `json:"abstract"`
	Venue     string   `json:"venue"`
	Year      int      `json:"year"`
	Date      string   `json:"publicationDate"`
	Citations *int     `json:"citationCount"`
	Types     []string `json:"publicationTypes"`
	Authors   []struct {
		Name string `json:"name"`
	} `json:"authors"`
	PDF *struct {
		URL string `json:"url"`
	} `json:"openAccessPdf"`
}

// askSemantic looks a paper up by its arXiv id, else by its DOI.
func (s *Service) askSemantic(ctx context.Context, about names) (Work, error) {
	key := "DOI:" + about.doi
	if about.arxiv != "" {
		key = "arXiv:" + about.arxiv
	}
	parts := strings.Split(key, "/") // it takes no escaped slash
	for i, p := range parts {
		if p == "" || p == "." || p == ".." {
			return Work{}, errUnknown // nothing it could be asked by
		}
		parts[i] = url.PathEscape(p)
	}
	var p semanticPaper
	query := url.Values{"fields": {"title,abstract,authors,venue,year,publicationDate,publicationTypes,citationCount,externalIds,openAccessPdf"}}
	if err := s.semantic.GetJSON(ctx, "graph/v1/paper/"+strings.Join(parts, "/"), query, &p); err != nil {
		return Work{}, failed(err)
	}
	arxiv, _ := ParseID(p.External.ArXiv) // absent or odd is none
	doi, _ := ParseID(p.External.DOI)
	same := about.arxiv != "" && arxiv.arxiv == about.arxiv || about.doi != "" && doi.doi == about.doi || about.arxiv != "" && doi.arxiv == about.arxiv
	if !same {
		return Work{}, another("semanticscholar")
	}
	return p.work(arxiv, doi), nil
}

func (p *semanticPaper) work(arxiv, doi ID) Work {
	w := Work{
		DOI: doi.doi, ArXiv: arxiv.arxiv, Title: Line(p.Title, maxLine), Abstract: Line(p.Abstract, maxAbstract), Venue: Line(p.Venue, maxLine),
		Published: plaintext.Date(p.Date), Year: p.Year, Citations: p.Citations,
		InPrint: doi.doi != "" && (slices.Contains(p.Types, "JournalArticle") || slices.Contains(p.Types, "Conference")) && !strings.Contains(strings.ToLower(p.Venue), "arxiv"),
	}
	var authors []string
	for _, a := range p.Authors {
		authors = append(authors, a.Name)
	}
	w.Authors = lines(authors, maxAuthors)
	if p.PDF != nil {
		w.FullText = addresses(p.PDF.URL)
	}
	return w
}
