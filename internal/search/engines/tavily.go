package engines

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"regexp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// tavilyDefaultBaseURL is where the service is.
const tavilyDefaultBaseURL = "https://api.tavily.com"

const tavilyName = "tavily"

// tavilyMostResults is the most that one request may ask for.
const tavilyMostResults = 20

// tavily is a search.Engine over Tavily's service, or a proxy that speaks its protocol. It is
// safe for concurrent use.
type tavily struct{ api httpapi.Service }

// NewTavily makes an engine. Nothing is sent before the first search.
func NewTavily(c Config) search.Engine {
	e := &tavily{httpapi.Service{
		Name: tavilyName, Base: cmp.Or(c.BaseURL, tavilyDefaultBaseURL), BaseField: "TAVILY_BASE_URL", HTTP: c.HTTP, Timeout: c.Timeout, UserAgent: c.UserAgent,
		Secrets: []string{c.Key}, DeniedHint: "check TAVILY_API_KEY and the plan behind it",
	}}
	if c.Key != "" {
		e.api.Header = http.Header{"Authorization": {"Bearer " + c.Key}}
	}
	return e
}

// Name implements search.Engine.
func (*tavily) Name() string { return tavilyName }

// tavilyQuestion is the body of a request.
type tavilyQuestion struct {
	Query             string   `json:"query"`
	SearchDepth       string   `json:"search_depth"`
	MaxResults        int      `json:"max_results"`
	IncludeDomains    []string `json:"include_domains,omitempty"`
	StartDate         string   `json:"start_date,omitempty"`
	EndDate           string   `json:"end_date,omitempty"`
	IncludeRawContent bool     `json:"include_raw_content"`
}

// tavilyAnswer is the part of a response that is used.
type tavilyAnswer struct {
	Results []json.RawMessage `json:"results"`
}

type tavilyResult struct {
	URL           string  `json:"url"`
	Title         string  `json:"title"`
	Content       string  `json:"content"` // Markdown
	Score         float64 `json:"score"`
	PublishedDate string  `json:"published_date"`
}

// Search implements search.Engine. Domains of the filter and the date range are
// passed on; a filter with suffixes such as ".gov" is enforced on the hits alone.
func (e *tavily) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	q, ok, err := search.Clean(q)
	if err != nil || !ok {
		return nil, err
	}
	ask := tavilyQuestion{Query: q.Text, SearchDepth: "basic", MaxResults: min(q.Limit, tavilyMostResults), StartDate: q.Since, EndDate: q.Until}
	if domains, plain := search.Domains(q.Filter); plain {
		ask.IncludeDomains = domains
	} else {
		ask.MaxResults = tavilyMostResults // some of them will not pass
	}
	var a tavilyAnswer
	if err := e.api.PostJSON(ctx, "search", ask, &a); err != nil {
		return nil, err
	}
	return tavilyHits(a, q)
}

// tavilyHits reads an answer.
func tavilyHits(a tavilyAnswer, q search.Query) ([]search.Hit, error) {
	results, err := httpapi.Items[tavilyResult](tavilyName, a.Results)
	if err != nil {
		return nil, err
	}
	found := make([]search.Hit, len(results))
	for i, r := range results {
		found[i] = search.Hit{Locator: r.URL, Title: r.Title, Snippet: tavilyPlain(r.Content), Score: r.Score, Published: r.PublishedDate}
	}
	return search.Tidy(found, q), nil
}

var (
	tavilyLink = regexp.MustCompile(`!?\[([^\[\]]*)\]\([^()\s]*(?:\s+"[^"]*")?\)`)
	marks      = regexp.MustCompile("\\*\\*|__|`+")
	heading    = regexp.MustCompile(`(^|\s)(?:#{1,6}|>)\s+`)
	columns    = regexp.MustCompile(`\s*(?:\|[\s:-]*)+`)
)

// tavilyPlain takes the Markdown out of a snippet; Tavily writes pages that way.
func tavilyPlain(s string) string {
	s = tavilyLink.ReplaceAllString(s, "$1")
	s = marks.ReplaceAllString(s, "")
	s = columns.ReplaceAllString(s, " ")
	return heading.ReplaceAllString(s, "$1")
}
