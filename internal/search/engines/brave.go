package engines

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// braveDefaultBaseURL is where the service is.
const braveDefaultBaseURL = "https://api.search.brave.com"

const braveName = "brave"

// What one request may ask for.
const (
	pageSize       = 20
	braveMostWords = 42 // of 50; a filter takes up to 7
	mostPages      = 3
)

// brave is a search.Engine over the Brave Search API, asked page by page. News, videos and
// summaries that the service also has are not asked for. It is safe for concurrent use.
type brave struct {
	api httpapi.Service
	now func() time.Time
}

// NewBrave makes an engine. Nothing is sent before the first search.
func NewBrave(c Config) search.Engine {
	return &brave{now: c.Now, api: httpapi.Service{
		Name: braveName, Base: cmp.Or(c.BaseURL, braveDefaultBaseURL), BaseField: "BRAVE_BASE_URL", HTTP: c.HTTP, Timeout: c.Timeout, UserAgent: c.UserAgent,
		Header: http.Header{"X-Subscription-Token": {c.Key}}, Secrets: []string{c.Key}, DeniedHint: "check BRAVE_API_KEY and the plan behind it",
	}}
}

// Name implements search.Engine.
func (*brave) Name() string { return braveName }

// braveAnswer is the part of a response that is used. A response without web results
// has no field for them.
type braveAnswer struct {
	Type  string `json:"type"`
	Query struct {
		More bool `json:"more_results_available"`
	} `json:"query"`
	Web *struct {
		Results []json.RawMessage `json:"results"`
	} `json:"web"`
}

type braveResult struct {
	URL         string `json:"url"`
	Title       string `json:"title"`
	Description string `json:"description"`
	PageAge     string `json:"page_age"`
}

// Search implements search.Engine. A small filter is passed on as "site:"
// operators and the date range as it is; both are enforced on the hits. A page
// after the first that fails ends the search with the hits so far and the error.
func (e *brave) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	q, ok, err := search.Clean(q)
	if err != nil || !ok {
		return nil, err
	}
	ask := url.Values{
		"q":                {search.WithSites(fewWords(q.Text), q.Filter)},
		"count":            {strconv.Itoa(min(q.Limit, pageSize))},
		"text_decorations": {"false"},
		"result_filter":    {"web"},
	}
	if !q.Filter.Empty() || q.Limit > pageSize {
		ask.Set("count", strconv.Itoa(pageSize))
	}
	if f := e.freshness(q); f != "" {
		ask.Set("freshness", f)
	}
	var found []search.Hit
	for page := range mostPages {
		if page > 0 {
			ask.Set("offset", strconv.Itoa(page)) // pages, not results
		}
		var a braveAnswer
		if err := e.api.GetJSON(ctx, "res/v1/web/search", ask, &a); err != nil {
			return search.Tidy(found, q), err
		}
		more, err := read(a)
		if err != nil {
			return search.Tidy(found, q), err
		}
		found = append(found, more...)
		if len(more) == 0 || !a.Query.More || q.Limit <= pageSize*(page+1) {
			break
		}
	}
	return search.Tidy(found, q), nil
}

// read gives the web results of an answer as they are.
func read(a braveAnswer) ([]search.Hit, error) {
	if a.Web == nil {
		if a.Type != "search" {
			return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "%s: the answer is not one to a search", braveName)
		}
		return nil, nil
	}
	results, err := httpapi.Items[braveResult](braveName, a.Web.Results)
	if err != nil {
		return nil, err
	}
	found := make([]search.Hit, len(results))
	for i, r := range results {
		found[i] = search.Hit{Locator: r.URL, Title: r.Title, Snippet: r.Description, Published: r.PageAge}
	}
	return found, nil
}

// freshness writes the date range as the service does. It has no open ranges.
func (e *brave) freshness(q search.Query) string {
	since, until := q.Since, q.Until
	if since == "" && until == "" {
		return ""
	}
	if until == "" {
		if e.now == nil {
			return ""
		}
		until = e.now().UTC().Format(time.DateOnly)
	}
	return cmp.Or(since, "1970-01-01") + "to" + until
}

// fewWords keeps a query within the service's count of words, with room for the
// operators of a filter.
func fewWords(text string) string {
	words := strings.Fields(text)
	return strings.Join(words[:min(len(words), braveMostWords)], " ")
}
