package engines

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// NewSearxng makes an engine over one instance of SearXNG, which asks other search engines
// and needs no key; which ones is its operator's choice. A small filter is passed on as
// "site:" operators and a first date as the shortest range of the service that holds it.
func NewSearxng(c Config) search.Engine {
	api := c.service("searxng", c.BaseURL, "SEARXNG_URL")
	api.DeniedHint = "the instance may have JSON switched off: add json to search.formats in its settings.yml, or set SEARXNG_URL to another instance"
	return &engine{api, func(ctx context.Context, api *httpapi.Service, q search.Query) ([]search.Hit, error) {
		text := strings.TrimSpace(bangs.ReplaceAllString(q.Text, "$1"))
		if text == "" {
			return nil, nil
		}
		ask := url.Values{"format": {"json"}, "q": {search.WithSites(text, q.Filter)}}
		if r := timeRange(q.Since, c.Now); r != "" {
			ask.Set("time_range", r)
		}
		var answer struct { // the part that is used
			Results []json.RawMessage `json:"results"`
			// Each is a list of an engine's name and what happened to it.
			Unresponsive []json.RawMessage `json:"unresponsive_engines"`
		}
		if err := api.GetJSON(ctx, "search", ask, &answer); err != nil {
			return nil, err
		}
		found, err := hits(api.Name, answer.Results)
		if names := unresponsive(answer.Unresponsive); err == nil && len(found) == 0 && names != "" {
			return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: api.Name + ": the engines behind the instance did not answer: " + names,
				Hint: "look at the instance's own statistics, or give it other engines"}
		}
		return found, err
	}}
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
func timeRange(since string, now func() time.Time) string {
	from, err := time.Parse(time.DateOnly, since)
	if err != nil || now == nil {
		return ""
	}
	switch age := now().UTC().Sub(from); {
	case age <= 24*time.Hour:
		return "day"
	case age <= 30*24*time.Hour:
		return "month"
	case age <= 365*24*time.Hour:
		return "year"
	}
	return ""
}

// bangs are the instance's own commands in a query: "!g" picks an engine, "!!g" sends the
// caller away to it, ":fr" sets the language, "<9" the time limit.
var bangs = regexp.MustCompile(`(^|\s)[!:<?]+`)
