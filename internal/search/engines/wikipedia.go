package engines

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// Wikipedia wants every word to be in an article and takes at most 300
// characters: more words than these find nothing.
const (
	wikipediaMostWords = 10
	mostBytes          = 280
)

var languageCode = regexp.MustCompile(`^[a-z]{2,12}(-[a-z]{2,12}){0,2}$`)

// NewWikipedia makes an engine over one Wikipedia by its public API, which needs no key. The
// question is reduced to its content words; if no article has all of them, the most telling
// half is tried once more. Articles have no date of publication: one whose last edit lies
// before the range is left out, and hits have no date.
func NewWikipedia(c Config) search.Engine {
	lang := language(c.BaseURL)
	host := lang + ".wikipedia.org" // of the articles
	api := c.service("wikipedia", cmp.Or(c.BaseURL, "https://"+host), "WIKIPEDIA_URL")
	api.DeniedHint = "Wikipedia refuses programs without a User-Agent that names them, and some networks"
	return &engine{api, func(ctx context.Context, api *httpapi.Service, q search.Query) ([]search.Hit, error) {
		words := keywords(q.Text, lang)
		if len(words) == 0 || !q.Filter.Allows(host) {
			return nil, nil
		}
		hits, err := askWikipedia(ctx, api, words, host, q)
		if few := fewer(words); err == nil && len(hits) == 0 && len(few) < len(words) {
			return askWikipedia(ctx, api, few, host, q)
		}
		return hits, err
	}}
}

// language is that of the Wikipedia at an address; English where it does not say.
func language(base string) string {
	if u, err := url.Parse(base); err == nil {
		if sub, ok := strings.CutSuffix(strings.ToLower(u.Hostname()), ".wikipedia.org"); ok && languageCode.MatchString(sub) {
			return sub
		}
	}
	return "en"
}

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

// askWikipedia searches for articles that have all of the words.
func askWikipedia(ctx context.Context, api *httpapi.Service, words []string, host string, q search.Query) ([]search.Hit, error) {
	var a wikipediaAnswer
	err := api.GetJSON(ctx, "w/api.php", url.Values{
		"action": {"query"}, "list": {"search"}, "format": {"json"}, "formatversion": {"2"},
		"srsearch": {strings.Join(words, " ")}, "srlimit": {strconv.Itoa(q.Limit)}, "srprop": {"snippet|timestamp"},
	}, &a)
	switch {
	case err != nil:
		return nil, err
	case a.Error != nil:
		return nil, wikipediaFault(a.Error.Code, a.Error.Info)
	case a.Query == nil:
		return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "%s: the answer is not one to a search", api.Name)
	}
	articles, err := httpapi.Items[result](api.Name, a.Query.Search)
	var found []search.Hit
	for _, r := range articles {
		title, edited := strings.TrimSpace(r.Title), plaintext.Date(r.Timestamp)
		if title != "" && (q.Since == "" || edited == "" || edited >= q.Since) {
			article := url.URL{Scheme: "https", Host: host, Path: "/wiki/" + strings.ReplaceAll(title, " ", "_")}
			found = append(found, search.Hit{Locator: article.String(), Title: title, Snippet: r.Snippet})
		}
	}
	return found, err
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
	return marchwarden.Errorf(kind, "wikipedia: error %.60s: %.160s", search.PlainText(code), search.PlainText(info))
}

var asides = strings.Fields(search.Asides + " happen happens happened mean means called")

// keywords are what a question is about, without anything that the service would take for
// an operator. English words are known; of other languages every word counts.
func keywords(text, language string) []string {
	english := language == "en" || language == "simple"
	return fit(search.Keywords(search.Words(text, "-'’.,&+#"), wikipediaMostWords, func(w string) bool {
		return english && (lexicon.IsStop(w) || slices.Contains(asides, strings.ToLower(w)))
	}))
}

// fewer is the more telling half of the words, in their order.
func fewer(words []string) []string { return search.Heaviest(words, max(1, len(words)/2)) }

// fit drops words from the end that the service would not take.
func fit(words []string) []string {
	size := 0
	for i, w := range words {
		if size += len(w) + 1; size > mostBytes {
			if i == 0 { // one word that is far too long
				return []string{strings.ToValidUTF8(w[:mostBytes], "")}
			}
			return words[:i]
		}
	}
	return words
}
