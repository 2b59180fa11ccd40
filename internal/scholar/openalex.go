package scholar

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// openalexWork is the part of a record that is used.
type openalexWork struct {
	DOI       string `json:"doi"` // as an address
	Title     string `json:"title"`
	Date      string `json:"publication_date"`
	Year      int    `json:"publication_year"`
	Type      string `json:"type"`
	Citations *int   `json:"cited_by_count"`
	Retracted bool   `json:"is_retracted"`
	Authors   []struct {
		Author struct {
			Name string `json:"display_name"`
		} `json:"author"`
	} `json:"authorships"`
	Abstract  json.RawMessage `json:"abstract_inverted_index"`
	Primary   *openalexPlace  `json:"primary_location"`
	Best      *openalexPlace  `json:"best_oa_location"`
	Locations []openalexPlace `json:"locations"`
}

// openalexPlace is where a work can be found.
type openalexPlace struct {
	Free   bool   `json:"is_oa"`
	Page   string `json:"landing_page_url"`
	PDF    string `json:"pdf_url"`
	Source *struct {
		Name string `json:"display_name"`
		Type string `json:"type"`
	} `json:"source"`
}

// openalexFields are what is asked for; a whole record is ten times as large.
const openalexFields = "doi,title,publication_date,publication_year,type,cited_by_count,is_retracted,authorships,abstract_inverted_index,primary_location,best_oa_location,locations"

// askOpenAlex looks a DOI up, of arXiv or of a publisher.
func (s *Service) askOpenAlex(ctx context.Context, about names) (Work, error) {
	var o openalexWork
	query := s.signed(url.Values{"select": {openalexFields}})
	if err := s.openalex.GetJSON(ctx, "works/"+url.PathEscape("doi:"+about.id().DOI()), query, &o); err != nil {
		return Work{}, failed(err)
	}
	if id, ok := ParseID(o.DOI); !ok || id.Work() != about.id() {
		return Work{}, another("openalex")
	}
	return o.work(), nil
}

// signed adds to a query who asks.
func (s *Service) signed(query url.Values) url.Values {
	if s.mailto != "" {
		query.Set("mailto", s.mailto)
	}
	if s.openalexKey != "" {
		query.Set("api_key", s.openalexKey)
	}
	return query
}

func (o *openalexWork) work() Work {
	w := Work{
		Title: Line(plainMarkup(o.Title), maxLine), Abstract: fromPositions(o.Abstract), Published: plaintext.Date(o.Date), Year: o.Year, Retracted: o.Retracted, Citations: o.Citations,
		ArXiv: o.arxiv(), FullText: o.fullText(),
	}
	if id, ok := ParseID(o.DOI); ok {
		w.DOI = id.doi
	}
	if o.Retracted {
		w.NoticeBy = OpenAlex
	}
	if strings.HasSuffix(w.Published, "-01-01") {
		w.Published = "" // it writes so when only the year is known
	}
	if o.Primary != nil && o.Primary.Source != nil {
		w.Venue = Line(o.Primary.Source.Name, maxLine)
		w.InPrint = w.DOI != "" && o.Type != "preprint" && slices.Contains([]string{"journal", "conference", "book series"}, o.Primary.Source.Type)
	}
	var authors []string
	for _, a := range o.Authors {
		authors = append(authors, a.Author.Name)
	}
	w.Authors = lines(authors, maxAuthors)
	return w
}

// arxiv is the arXiv id of the work, by its DOI or by where it can be found.
func (o *openalexWork) arxiv() string {
	for _, at := range append([]openalexPlace{{Page: o.DOI}}, o.Locations...) {
		if id, ok := ParseID(at.Page); ok && id.arxiv != "" {
			return id.arxiv
		}
	}
	return ""
}

// fullText are the addresses of free copies: the best one first, documents before
// the pages that lead to them.
func (o *openalexWork) fullText() []string {
	var pdfs, pages []string
	places := o.Locations
	if o.Best != nil {
		places = append([]openalexPlace{*o.Best}, places...)
	}
	for _, at := range places {
		if at.Free && (at.Source == nil || at.Source.Type != "metadata") {
			pdfs, pages = append(pdfs, at.PDF), append(pages, at.Page)
		}
	}
	return addresses(append(pdfs, pages...)...)
}

// addresses are those that can be fetched, each once, at most four.
func addresses(list ...string) []string {
	const most = 4
	var out []string
	for _, a := range list {
		if at, ok := locator.Canonical(strings.TrimSpace(a)); ok && !slices.Contains(out, at) && len(out) < most {
			out = append(out, at)
		}
	}
	return out
}

// Name implements search.Engine: a Service searches OpenAlex, which has the papers of
// nearly all publishers and of arXiv.
func (*Service) Name() string { return "openalex" }

// Search implements search.Engine. Papers that the query names come first. Hits
// are papers at doi.org, and at arxiv.org where that is their only place. If no
// paper has all of the words, the more telling half is tried once.
func (s *Service) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	return searchPapers(q, func(ids []ID, q search.Query) ([]search.Hit, error) {
		dois := make([]string, len(ids))
		for i, id := range ids {
			dois[i] = strings.NewReplacer("|", "", ",", "").Replace(id.DOI()) // which separate values and filters
		}
		return s.ask(ctx, "", "doi:"+strings.Join(dois, "|"), q)
	}, func(t Terms, q search.Query) ([]search.Hit, error) {
		return s.ask(ctx, searchText(t), dates(q), q)
	}, arxivHost, doiHost)
}

// searchText writes terms as its search takes them: words, and phrases in
// quotation marks.
func searchText(t Terms) string {
	var parts []string
	for _, p := range t.Phrases {
		parts = append(parts, `"`+p+`"`)
	}
	return strings.Join(slices.Concat(parts, t.Words, t.Authors), " ")
}

// dates are the filters for the bounds of a query.
func dates(q search.Query) string {
	var filters []string
	if q.Since != "" {
		filters = append(filters, "from_publication_date:"+q.Since)
	}
	if q.Until != "" {
		filters = append(filters, "to_publication_date:"+q.Until)
	}
	return strings.Join(filters, ",")
}

// ask makes one search.
func (s *Service) ask(ctx context.Context, text, filter string, q search.Query) ([]search.Hit, error) {
	query := url.Values{"select": {"doi,title,publication_date,type,is_retracted,abstract_inverted_index,locations"}, "per-page": {strconv.Itoa(q.Limit)}}
	if text != "" {
		query.Set("search", text)
	}
	if filter != "" {
		query.Set("filter", filter)
	}
	var a struct {
		Results []json.RawMessage `json:"results"`
	}
	if err := s.openalex.GetJSON(ctx, "works", s.signed(query), &a); err != nil {
		return nil, err
	}
	works, err := httpapi.Items[openalexWork]("openalex", a.Results)
	if err != nil {
		return nil, err
	}
	var found []search.Hit
	for _, o := range works {
		id, ok := ParseID(o.DOI)
		if arxiv := o.arxiv(); !ok && arxiv != "" {
			id, ok = ID{arxiv: arxiv}, true
		}
		if !ok {
			continue // nothing to fetch it by
		}
		w := o.work()
		title := w.Title
		if w.Retracted {
			title = MarkRetracted(title)
		}
		found = append(found, search.Hit{Locator: id.Work().Locator(), Title: title, Snippet: w.Abstract, Published: w.Published})
	}
	return found, nil
}

var _ search.Engine = (*Service)(nil)
