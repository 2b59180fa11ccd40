// Package searxng searches the web with an instance of SearXNG, which asks other
// search engines and needs no key. It owns the instance's protocol: what is
// asked, and how an answer becomes hits. Which engines the instance asks, and how
// well, is its operator's business; an instance whose engines all failed is
// reported as a failure, not as an empty result.
package searxng

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

const name = "searxng"

// Config says where the instance is. Only BaseURL is needed.
type Config struct {
	BaseURL   string           // such as "http://localhost:8080"; a user and password in it are sent
	HTTP      *http.Client     // nil is a client of its own
	UserAgent string           // "" is "marchwarden"
	Timeout   time.Duration    // of one search; 0 is httpapi.DefaultTimeout
	Now       func() time.Time // for "within the last month"; nil passes no date on
}

// Engine is a search.Engine over one instance. It is safe for concurrent use.
type Engine struct {
	api httpapi.Service
	now func() time.Time
}

// New makes an engine. Nothing is sent before the first search.
func New(c Config) *Engine {
	return &Engine{now: c.Now, api: httpapi.Service{
		Name: name, Base: c.BaseURL, BaseField: "SEARXNG_URL", HTTP: c.HTTP, Timeout: c.Timeout, UserAgent: c.UserAgent,
		DeniedHint: "the instance may have JSON switched off: add json to search.formats in its settings.yml, or set SEARXNG_URL to another instance",
	}}
}

// Name implements search.Engine.
func (*Engine) Name() string { return name }

// answer is the part of a response that is used.
type answer struct {
	Results []json.RawMessage `json:"results"`
	// Each is a list of an engine's name and what happened to it.
	Unresponsive []json.RawMessage `json:"unresponsive_engines"`
}

type result struct {
	URL       string  `json:"url"`
	Title     string  `json:"title"`
	Content   string  `json:"content"`
	Score     float64 `json:"score"`
	Published string  `json:"publishedDate"`
}

// Search implements search.Engine. A small filter is passed on as "site:"
// operators and a first date as the shortest range of the service that holds it;
// both are enforced on the hits.
func (e *Engine) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	q, ok, err := search.Clean(q)
	if err != nil || !ok {
		return nil, err
	}
	text := withoutBangs(q.Text)
	if text == "" {
		return nil, nil
	}
	ask := url.Values{"format": {"json"}, "q": {search.WithSites(text, q.Filter)}}
	if r := e.timeRange(q.Since); r != "" {
		ask.Set("time_range", r)
	}
	var a answer
	if err := e.api.GetJSON(ctx, "search", ask, &a); err != nil {
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
	if names := unresponsive(a.Unresponsive); len(results) == 0 && names != "" {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: name + ": the engines behind the instance did not answer: " + names,
			Hint: "look at the instance's own statistics, or give it other engines"}
	}
	found := make([]search.Hit, len(results))
	for i, r := range results {
		found[i] = search.Hit{Locator: r.URL, Title: r.Title, Snippet: r.Content, Score: r.Score, Published: r.Published}
	}
	return search.Tidy(found, q), nil
}

// unresponsive names the engines that gave nothing, a few of them.
func unresponsive(list []json.RawMessage) string {
	const most, longest = 5, 60
	var names []string
	for _, raw := range list {
		var pair []string
		if json.Unmarshal(raw, &pair) != nil || len(pair) == 0 || len(names) == most {
			continue
		}
		said := []rune(search.PlainText(strings.Join(pair, " ")))
		names = append(names, string(said[:min(len(said), longest)]))
	}
	return strings.Join(names, ", ")
}

// timeRange is the shortest range of the service that begins at since or before,
// or "" if there is none. Its ranges end today.
func (e *Engine) timeRange(since string) string {
	from, err := time.Parse(time.DateOnly, since)
	if err != nil || e.now == nil {
		return ""
	}
	switch age := e.now().UTC().Sub(from); {
	case age <= 24*time.Hour:
		return "day"
	case age <= 30*24*time.Hour:
		return "month"
	case age <= 365*24*time.Hour:
		return "year"
	}
	return ""
}

// withoutBangs takes the instance's own commands out of a query: "!g" picks an
// engine, "!!g" sends the caller away to it, ":fr" sets the language, "<9" the
// time limit.
func withoutBangs(text string) string {
	words := strings.Fields(text)
	kept := words[:0]
	for _, w := range words {
		if w = strings.TrimLeft(w, "!:<?"); w != "" {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " ")
}
