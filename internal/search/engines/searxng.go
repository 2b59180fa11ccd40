package engines

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

const searxngName = "searxng"

// searxng is a search.Engine over one instance of SearXNG, which asks other search engines and
// needs no key. Which engines the instance asks is its operator's choice. It is safe for
// concurrent use.
type searxng struct {
	api httpapi.Service
	now func() time.Time
}

// NewSearxng makes an engine. Nothing is sent before the first search.
func NewSearxng(c Config) search.Engine {
	return &searxng{now: c.Now, api: httpapi.Service{
		Name: searxngName, Base: c.BaseURL, BaseField: "SEARXNG_URL", HTTP: c.HTTP, Timeout: c.Timeout, UserAgent: c.UserAgent,
		DeniedHint: "the instance may have JSON switched off: add json to search.formats in its settings.yml, or set SEARXNG_URL to another instance",
	}}
}

// Name implements search.Engine.
func (*searxng) Name() string { return searxngName }

// searxngAnswer is the part of a response that is used.
type searxngAnswer struct {
	Results []json.RawMessage `json:"results"`
	// Each is a list of an engine's name and what happened to it.
	Unresponsive []json.RawMessage `json:"unresponsive_engines"`
}

type searxngResult struct {
	URL       string  `json:"url"`
	Title     string  `json:"title"`
	Content   string  `json:"content"`
	Score     float64 `json:"score"`
	Published string  `json:"publishedDate"`
}

// Search implements search.Engine. A small filter is passed on as "site:"
// operators and a first date as the shortest range of the service that holds it;
// both are enforced on the hits.
func (e *searxng) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
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
	var a searxngAnswer
	if err := e.api.GetJSON(ctx, "search", ask, &a); err != nil {
		return nil, err
	}
	return searxngHits(a, q)
}

// searxngHits reads an answer.
func searxngHits(a searxngAnswer, q search.Query) ([]search.Hit, error) {
	results, err := httpapi.Items[searxngResult](searxngName, a.Results)
	if err != nil {
		return nil, err
	}
	if names := unresponsive(a.Unresponsive); len(results) == 0 && names != "" {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: searxngName + ": the engines behind the instance did not answer: " + names,
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
func (e *searxng) timeRange(since string) string {
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
