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

// What one request to Brave may ask for.
const (
	pageSize       = 20
	braveMostWords = 42 // of 50; a filter takes up to 7
	mostPages      = 3
)

// NewBrave makes an engine over the Brave Search API, asked page by page. News, videos and
// summaries that the service also has are not asked for. A small filter is passed on as
// "site:" operators and the date range as it is. A page after the first that fails ends the
// search with the hits so far and the error.
func NewBrave(c Config) search.Engine {
	api := c.service("brave", cmp.Or(c.BaseURL, "https://api.search.brave.com"), "BRAVE_BASE_URL")
	api.Header, api.DeniedHint = http.Header{"X-Subscription-Token": {c.Key}}, "check BRAVE_API_KEY and the plan behind it"
	return &engine{api, func(ctx context.Context, api *httpapi.Service, q search.Query) ([]search.Hit, error) {
		words := strings.Fields(q.Text)
		ask := url.Values{
			"q":                {search.WithSites(strings.Join(words[:min(len(words), braveMostWords)], " "), q.Filter)},
			"count":            {strconv.Itoa(min(q.Limit, pageSize))},
			"text_decorations": {"false"},
			"result_filter":    {"web"},
		}
		if !q.Filter.Empty() {
			ask.Set("count", strconv.Itoa(pageSize))
		}
		if f := freshness(q, c.Now); f != "" {
			ask.Set("freshness", f)
		}
		return bravePages(ctx, api, ask, q.Limit)
	}}
}

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

func bravePages(ctx context.Context, api *httpapi.Service, ask url.Values, limit int) (found []search.Hit, err error) {
	for page := range mostPages {
		if page > 0 {
			ask.Set("offset", strconv.Itoa(page)) // pages, not results
		}
		var a braveAnswer
		if err := api.GetJSON(ctx, "res/v1/web/search", ask, &a); err != nil {
			return found, err
		}
		if a.Web == nil {
			if a.Type != "search" {
				err = marchwarden.Errorf(marchwarden.CodeMalformed, "%s: the answer is not one to a search", api.Name)
			}
			return found, err
		}
		more, err := hits(api.Name, a.Web.Results)
		found = append(found, more...)
		if err != nil || len(more) == 0 || !a.Query.More || limit <= pageSize*(page+1) {
			return found, err
		}
	}
	return found, nil
}

// freshness writes the date range as the service does. It has no open ranges.
func freshness(q search.Query, now func() time.Time) string {
	until := q.Until
	if until == "" && q.Since != "" && now != nil {
		until = now().UTC().Format(time.DateOnly)
	}
	if until == "" {
		return ""
	}
	return cmp.Or(q.Since, "1970-01-01") + "to" + until
}
