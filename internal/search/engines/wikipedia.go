package engines

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

const wikipediaName = "wikipedia"

// wikipedia is a search.Engine over one Wikipedia by its public API, which needs no key. It is
// safe for concurrent use.
type wikipedia struct {
	api      httpapi.Service
	language string
}

var languageCode = regexp.MustCompile(`^[a-z]{2,12}(-[a-z]{2,12}){0,2}$`)

// NewWikipedia makes an engine. Nothing is sent before the first search.
func NewWikipedia(c Config) search.Engine {
	var lang string
	if u, err := url.Parse(c.BaseURL); err == nil {
		if sub, ok := strings.CutSuffix(strings.ToLower(u.Hostname()), ".wikipedia.org"); ok {
			lang = sub
		}
	}
	if !languageCode.MatchString(lang) {
		lang = "en"
	}
	return &wikipedia{language: lang, api: httpapi.Service{
		Name: wikipediaName, Base: cmp.Or(c.BaseURL, "https://"+lang+".wikipedia.org"), BaseField: "WIKIPEDIA_URL", HTTP: c.HTTP, Timeout: c.Timeout,
		UserAgent: c.UserAgent, DeniedHint: "Wikipedia refuses programs without a User-Agent that names them, and some networks",
	}}
}

// Name implements search.Engine.
func (*wikipedia) Name() string { return wikipediaName }

// host is where the articles are.
func (e *wikipedia) host() string { return e.language + ".wikipedia.org" }

// wikipediaAnswer is the part of a response that is used. Errors come with status 200.
type wikipediaAnswer struct {
	Query *struct {
		Search []json.RawMessage `json:"search"`
	} `json:"query"`
	Error *struct {
		Code string `json:"code"`
		Info string `json:"info"`
	} `json:"error"`
}

type wikipediaResult struct {
	Title     string `json:"title"`
	Snippet   string `json:"snippet"`   // HTML
	Timestamp string `json:"timestamp"` // of the last edit
}

// Search implements search.Engine. The question is reduced to its content words;
// if no article has all of them, the most telling half is tried once more.
// Articles have no date of publication: one whose last edit lies before q.Since
// is left out, and hits have no date.
func (e *wikipedia) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	q, ok, err := search.Clean(q)
	if err != nil || !ok || !q.Filter.Allows(e.host()) {
		return nil, err
	}
	words := keywords(q.Text, e.language)
	if len(words) == 0 {
		return nil, nil
	}
	hits, err := e.ask(ctx, words, q)
	if few := fewer(words); err == nil && len(hits) == 0 && len(few) < len(words) {
		return e.ask(ctx, few, q)
	}
	return hits, err
}

// ask searches for articles that have all of the words.
func (e *wikipedia) ask(ctx context.Context, words []string, q search.Query) ([]search.Hit, error) {
	var a wikipediaAnswer
	err := e.api.GetJSON(ctx, "w/api.php", url.Values{
		"action": {"query"}, "list": {"search"}, "format": {"json"}, "formatversion": {"2"},
		"srsearch": {strings.Join(words, " ")}, "srlimit": {strconv.Itoa(q.Limit)}, "srprop": {"snippet|timestamp"},
	}, &a)
	if err != nil {
		return nil, err
	}
	return e.hits(a, q)
}

// hits reads an answer.
func (e *wikipedia) hits(a wikipediaAnswer, q search.Query) ([]search.Hit, error) {
	switch {
	case a.Error != nil:
		return nil, wikipediaFault(a.Error.Code, a.Error.Info)
	case a.Query == nil:
		return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "%s: the answer is not one to a search", wikipediaName)
	}
	results, err := httpapi.Items[wikipediaResult](wikipediaName, a.Query.Search)
	if err != nil {
		return nil, err
	}
	var found []search.Hit
	for _, r := range results {
		title := strings.TrimSpace(r.Title)
		edited := search.Date(r.Timestamp)
		if title == "" || q.Since != "" && edited != "" && edited < q.Since {
			continue
		}
		article := url.URL{Scheme: "https", Host: e.host(), Path: "/wiki/" + strings.ReplaceAll(title, " ", "_")}
		found = append(found, search.Hit{Locator: article.String(), Title: title, Snippet: r.Snippet})
	}
	return search.Tidy(found, q), nil
}

// wikipediaFault translates an error of the API by its code.
func wikipediaFault(code, info string) error {
	kind := marchwarden.CodeUnavailable
	switch code {
	case "ratelimited", "maxlag", "cirrussearch-too-busy-error":
		kind = marchwarden.CodeRateLimited
	case "readapidenied", "blocked", "autoblocked", "globalblocking-blockedtext-ip":
		kind = marchwarden.CodeDenied
	}
	return marchwarden.Errorf(kind, "%s: error %.60s: %.160s", wikipediaName, search.PlainText(code), search.PlainText(info))
}
