// Package tavily searches the web with Tavily's search service, or a proxy that
// speaks its protocol. It owns that protocol: what is asked, and how an answer
// becomes hits. It reads no page and asks for no answer of Tavily's own: what is
// cited is fetched and checked by others.
package tavily

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// DefaultBaseURL is where the service is.
const DefaultBaseURL = "https://api.tavily.com"

const name = "tavily"

// mostResults is the most that one request may ask for.
const mostResults = 20

// Config says how to reach the service. Only Key is needed.
type Config struct {
	Key       string
	BaseURL   string        // "" is DefaultBaseURL
	HTTP      *http.Client  // nil is a client of its own
	UserAgent string        // "" is "marchwarden"
	Timeout   time.Duration // of one search; 0 is httpapi.DefaultTimeout
}

// Engine is a search.Engine over Tavily. It is safe for concurrent use.
type Engine struct{ api httpapi.Service }

// New makes an engine. Nothing is sent before the first search.
func New(c Config) *Engine {
	e := &Engine{httpapi.Service{
		Name: name, Base: cmp.Or(c.BaseURL, DefaultBaseURL), BaseField: "TAVILY_BASE_URL", HTTP: c.HTTP, Timeout: c.Timeout, UserAgent: c.UserAgent,
		Secrets: []string{c.Key}, DeniedHint: "check TAVILY_API_KEY and the plan behind it",
	}}
	if c.Key != "" {
		e.api.Header = http.Header{"Authorization": {"Bearer " + c.Key}}
	}
	return e
}

// Name implements search.Engine.
func (*Engine) Name() string { return name }

// question is the body of a request.
type question struct {
	Query             string   `json:"query"`
	SearchDepth       string   `json:"search_depth"`
	MaxResults        int      `json:"max_results"`
	IncludeDomains    []string `json:"include_domains,omitempty"`
	StartDate         string   `json:"start_date,omitempty"`
	EndDate           string   `json:"end_date,omitempty"`
	IncludeRawContent bool     `json:"include_raw_content"`
}

// answer is the part of a response that is used.
type answer struct {
	Results []json.RawMessage `json:"results"`
}

type result struct {
	URL           string  `json:"url"`
	Title         string  `json:"title"`
	Content       string  `json:"content"` // Markdown
	Score         float64 `json:"score"`
	PublishedDate string  `json:"published_date"`
}

// Search implements search.Engine. Domains of the filter and the date range are
// passed on; a filter with suffixes such as ".gov" is enforced on the hits alone.
func (e *Engine) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	q, ok, err := search.Clean(q)
	if err != nil || !ok {
		return nil, err
	}
	ask := question{Query: q.Text, SearchDepth: "basic", MaxResults: min(q.Limit, mostResults), StartDate: q.Since, EndDate: q.Until}
	if domains, plain := search.Domains(q.Filter); plain {
		ask.IncludeDomains = domains
	} else {
		ask.MaxResults = mostResults // some of them will not pass
	}
	var a answer
	if err := e.api.PostJSON(ctx, "search", ask, &a); err != nil {
		return nil, err
	}
	return hits(a, q)
}

// hits reads an answer.
func hits(a answer, q search.Query) ([]search.Hit, error) {
	results, err := httpapi.Items[result](name, a.Results)
	if err != nil {
		return nil, err
	}
	found := make([]search.Hit, len(results))
	for i, r := range results {
		found[i] = search.Hit{Locator: r.URL, Title: r.Title, Snippet: plain(r.Content), Score: r.Score, Published: r.PublishedDate}
	}
	return search.Tidy(found, q), nil
}

var (
	link    = regexp.MustCompile(`!?\[([^\[\]]*)\]\([^()\s]*(?:\s+"[^"]*")?\)`)
	marks   = regexp.MustCompile("\\*\\*|__|`+")
	heading = regexp.MustCompile(`(^|\s)(?:#{1,6}|>)\s+`)
	columns = regexp.MustCompile(`\s*(?:\|[\s:-]*)+`)
)

// plain takes the Markdown out of a snippet; Tavily writes pages that way.
func plain(s string) string {
	s = link.ReplaceAllString(s, "$1")
	s = marks.ReplaceAllString(s, "")
	s = columns.ReplaceAllString(s, " ")
	return heading.ReplaceAllString(s, "$1")
}
