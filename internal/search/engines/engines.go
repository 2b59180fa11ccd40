// Package engines has the search engines of the web: Tavily, Brave Search, SearXNG and
// Wikipedia, a file each, and the limit that all who work for one engine of tasks share. It
// owns their protocols: what is asked, and how an answer becomes hits. It reads no page and
// asks for no answer of an engine's own: what is cited is fetched and checked by others.
package engines

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// Config says how to reach an engine. Tavily and Brave need a Key, SearXNG a BaseURL.
type Config struct {
	Key       string
	BaseURL   string           // "" is the service's own; a user and password in it are sent
	HTTP      *http.Client     // nil is a client of its own
	UserAgent string           // names the program and a way to reach who runs it; "" is "marchwarden"
	Timeout   time.Duration    // of one request; 0 is httpapi.DefaultTimeout
	Now       func() time.Time // for a range of dates that ends today; nil passes none on
}

// service is how to reach a service; field names the setting of its address.
func (c Config) service(name, base, field string) httpapi.Service {
	return httpapi.Service{Name: name, Base: base, BaseField: field, HTTP: c.HTTP, Timeout: c.Timeout, UserAgent: c.UserAgent, Secrets: []string{c.Key}}
}

// engine is a search.Engine over a service. It is safe for concurrent use.
type engine struct {
	api httpapi.Service
	// ask asks the service and gives what it found as it is. The query is one that
	// search.Clean made.
	ask func(ctx context.Context, api *httpapi.Service, q search.Query) ([]search.Hit, error)
}

// Name implements search.Engine.
func (e *engine) Name() string { return e.api.Name }

// Search implements search.Engine. Filter and dates are enforced on the hits, whatever
// the service makes of them.
func (e *engine) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	q, ok, err := search.Clean(q)
	if err != nil || !ok {
		return nil, err
	}
	found, err := e.ask(ctx, &e.api, q)
	return search.Tidy(found, q), err
}

// result is one of an answer, under the names that the services have for its parts.
type result struct {
	URL           string  `json:"url"`
	Title         string  `json:"title"`
	Content       string  `json:"content"`     // of Tavily, in Markdown, and of SearXNG
	Description   string  `json:"description"` // of Brave
	Snippet       string  `json:"snippet"`     // of Wikipedia, in HTML
	Score         float64 `json:"score"`
	PublishedDate string  `json:"published_date"` // of Tavily
	Published     string  `json:"publishedDate"`  // of SearXNG
	PageAge       string  `json:"page_age"`       // of Brave
	Timestamp     string  `json:"timestamp"`      // of the last edit, of Wikipedia
}

// hits makes hits of the results of an answer.
func hits(name string, list []json.RawMessage) ([]search.Hit, error) {
	results, err := httpapi.Items[result](name, list)
	if err != nil {
		return nil, err
	}
	found := make([]search.Hit, len(results))
	for i, r := range results {
		found[i] = search.Hit{Locator: r.URL, Title: r.Title, Snippet: cmp.Or(r.Content, r.Description), Score: r.Score, Published: cmp.Or(r.PublishedDate, r.Published, r.PageAge)}
	}
	return found, nil
}
