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
	braveMostResults = 20
	braveMostWords   = 42 // of 50; a filter takes up to 7
)

// NewBrave makes an engine over the Brave Search API. News, videos and summaries that the
// service also has are not asked for. A small filter is passed on as "site:" operators and
// the date range as it is.
func NewBrave(c Config) search.Engine {
	api := c.service("brave", cmp.Or(c.BaseURL, "https://api.search.brave.com"), "BRAVE_BASE_URL")
	api.Header, api.DeniedHint = http.Header{"X-Subscription-Token": {c.Key}}, "check BRAVE_API_KEY and the plan behind it"
	return &engine{api, func(ctx context.Context, api *httpapi.Service, q search.Query) ([]search.Hit, error) {
		words := strings.Fields(q.Text)
		ask := url.Values{
			"q":                {search.WithSites(strings.Join(words[:min(len(words), braveMostWords)], " "), q.Filter)},
			"count":            {strconv.Itoa(min(q.Limit, braveMostResults))},
			"text_decorations": {"false"},
			"result_filter":    {"web"},
		}
		if !q.Filter.Empty() {
			ask.Set("count", strconv.Itoa(braveMostResults))
		}
		if f := freshness(q, c.Now); f != "" {
			ask.Set("freshness", f)
		}
		var answer struct { // the part that is used; without web results there is no field for them
			Type string `json:"type"`
			Web  *struct {
				Results []json.RawMessage `json:"results"`
			} `json:"web"`
		}
		if err := api.GetJSON(ctx, "res/v1/web/search", ask, &answer); err != nil {
			return nil, err
		}
		switch {
		case answer.Web != nil:
			return hits(api.Name, answer.Web.Results)
		case answer.Type != "search":
			return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "%s: the answer is not one to a search", api.Name)
		}
		return nil, nil
	}}
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
