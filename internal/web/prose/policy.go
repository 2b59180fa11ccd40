package prose

import (
	"regexp"

	"github.com/microcosm-cc/bluemonday"
)

// policy is what may leave this package. It says again, in other words, what the
// writer writes: if the two differ, less gets out. It is not changed once it is made,
// so that many goroutines may use it.
var policy = allowed()

func allowed() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("a", "bdi", "blockquote", "br", "code", "del", "div", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul")
	p.AllowAttrs("lang").Matching(regexp.MustCompile(`^$`)).Globally()
	p.AllowAttrs("dir").Matching(regexp.MustCompile(`^auto$`)).Globally()
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(?:host|(?:sentence|verdict)(?: (?:supported|quoted|partial|unsupported|unchecked))?)$`)).OnElements("span")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^cite$`)).OnElements("a")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^table$`)).OnElements("div")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^hidden-character$`)).OnElements("bdi")
	p.AllowAttrs("title").Matching(regexp.MustCompile(`^U\+[0-9A-F]{4,6}$`)).OnElements("bdi")
	number := regexp.MustCompile(`^[0-9]{1,9}$`)
	p.AllowAttrs("data-claim").Matching(number).OnElements("span")
	p.AllowAttrs("data-source").Matching(number).OnElements("a", "span")
	p.AllowAttrs("start").Matching(number).OnElements("ol")
	p.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^0$`)).OnElements("div", "pre")
	p.AllowAttrs("role").Matching(regexp.MustCompile(`^group$`)).OnElements("div", "pre")
	p.AllowAttrs("aria-label").Matching(regexp.MustCompile(`^(?:code|table)$`)).OnElements("div", "pre")
	p.AllowAttrs("aria-label").Matching(regexp.MustCompile(`^source [0-9]{1,9}$`)).OnElements("a")
	p.AllowAttrs("href").Matching(regexp.MustCompile(`^(?:\?source=[0-9]{1,9}#source|https?://[^\s"<>\\]+)$`)).OnElements("a")
	p.AllowAttrs("rel").Matching(regexp.MustCompile(`^noopener noreferrer nofollow$`)).OnElements("a")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(true) // of which the pattern of href leaves one
	p.AllowURLSchemes("http", "https")
	p.RequireNoFollowOnFullyQualifiedLinks(true)
	p.RequireNoReferrerOnFullyQualifiedLinks(true)
	return p
}
