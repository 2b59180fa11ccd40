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

// tavilyMostResults is the most that one request may ask for.
const tavilyMostResults = 20

// NewTavily makes an engine over Tavily's service, or a proxy that speaks its protocol.
// Domains of the filter and the date range are passed on, but for a filter with suffixes
// such as ".gov".
func NewTavily(c Config) search.Engine {
	api := c.service("tavily", cmp.Or(c.BaseURL, "https://api.tavily.com"), "TAVILY_BASE_URL")
	api.DeniedHint = "check TAVILY_API_KEY and the plan behind it"
	if c.Key != "" {
		api.Header = http.Header{"Authorization": {"Bearer " + c.Key}}
	}
	return &engine{api, askTavily}
}

// tavilyQuestion is the body of a request.
type tavilyQuestion struct {
	Query             string   `json:"query"`
	SearchDepth       string   `json:"search_depth"`
	MaxResults        int      `json:"max_results"`
	IncludeDomains    []string `json:"include_domains,omitempty"`
	ExcludeDomains    []string `json:"exclude_domains,omitempty"`
	StartDate         string   `json:"start_date,omitempty"`
	EndDate           string   `json:"end_date,omitempty"`
	IncludeRawContent bool     `json:"include_raw_content"`
}

func askTavily(ctx context.Context, api *httpapi.Service, q search.Query) ([]search.Hit, error) {
	ask := tavilyQuestion{Query: q.Text, SearchDepth: "basic", MaxResults: min(q.Limit, tavilyMostResults), StartDate: q.Since, EndDate: q.Until}
	only, not, plain := search.Domains(q.Filter)
	if ask.ExcludeDomains = not; plain {
		ask.IncludeDomains = only
	} else {
		ask.MaxResults = tavilyMostResults // some of them will not pass
	}
	var a tavilyAnswer
	if err := api.PostJSON(ctx, "search", ask, &a); err != nil {
		return nil, err
	}
	return a.hits(api.Name)
}

// tavilyAnswer is the part of a response that is used.
type tavilyAnswer struct {
	Results []json.RawMessage `json:"results"`
}

func (a tavilyAnswer) hits(name string) ([]search.Hit, error) {
	found, err := hits(name, a.Results)
	for i := range found {
		found[i].Snippet = tavilyPlain(found[i].Snippet)
	}
	return found, err
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
