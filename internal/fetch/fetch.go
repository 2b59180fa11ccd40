// Package fetch turns a locator into a stored page. It owns the Fetcher
// interface, the Page value and the fetcher of local folders. Text extraction is
// package extract's work. Nothing here judges what a page says.
package fetch

import (
	"context"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

// Page is a document that was fetched and stored. Raw and Text are in the blob
// store before a Page is returned.
type Page struct {
	Locator   string `json:"locator"`       // as it was asked for
	URL       string `json:"url,omitempty"` // where it was found in the end, after redirects; "" for files
	Source    string `json:"source"`        // kind of source: "file", "web"…
	Title     string `json:"title,omitempty"`
	Author    string `json:"author,omitempty"`
	Published string `json:"published,omitempty"` // 2006-01-02, or "" when unknown
	// Origin names who is behind the document: the host of its declared or real
	// address, or a name for the library it is from. Pages of one origin do not
	// corroborate each other more than once.
	Origin string `json:"origin"`
	// Standing is the authority of the document where something better than its
	// address tells, such as who published it and who cites it; "" elsewhere.
	Standing marchwarden.Authority `json:"standing,omitempty"`
	// Unchecked marks a text that only its reporter has seen.
	Unchecked bool     `json:"unchecked,omitempty"`
	Raw       blob.Ref `json:"raw"`  // the bytes as fetched
	Text      blob.Ref `json:"text"` // the extracted text; zero when NonText
	// Also are further stored bytes that the document was made of, such as the page
	// with the full text of a paper.
	Also      []blob.Ref `json:"also,omitempty"`
	RawBytes  int        `json:"raw_bytes"`
	TextBytes int        `json:"text_bytes"`
	MediaType string     `json:"media_type"`
	Extractor string     `json:"extractor"` // name and version, so that text can be made again
	NonText   bool       `json:"non_text,omitempty"`
	Links     []string   `json:"links,omitempty"`
	FetchedAt time.Time  `json:"fetched_at"`
	// Pages says where in the text each page of a local PDF begins; nil elsewhere.
	Pages []int `json:"pages,omitempty"`
}

// Hash is what a citation of the document names: its text, or its bytes if it is none.
func (p Page) Hash() blob.Ref {
	if p.NonText {
		return p.Raw
	}
	return p.Text
}

// Fetcher fetches documents.
type Fetcher interface {
	// Fetch gets, stores and extracts the document at locator. Failures carry a
	// marchwarden.Code: CodeNotFound, CodeDenied, CodeUnavailable, CodeRateLimited,
	// CodeTimeout, CodeTruncated, CodeCanceled.
	// A document without text is a Page with NonText set, not an error. Fetch is
	// safe for concurrent use.
	Fetch(ctx context.Context, locator string) (Page, error)
}

// Refetcher is a Fetcher that knows what a document must not lack when it is fetched again.
type Refetcher interface {
	Fetcher
	// Refetch fetches the document at was.Locator again. It is Fetch in all, but that a
	// document that comes without a part that was has is an error.
	Refetch(ctx context.Context, was Page) (Page, error)
}

// Within returns a context under which a fetcher goes to no host that the filter
// does not allow, by a redirect either.
func Within(ctx context.Context, f marchwarden.SourceFilter) context.Context {
	return context.WithValue(ctx, filterKey{}, f)
}

type filterKey struct{}

// Allowed reports whether a host lies within the filter of a context; without one
// every host does.
func Allowed(ctx context.Context, host string) bool {
	f, ok := ctx.Value(filterKey{}).(marchwarden.SourceFilter)
	return !ok || f.Allows(host)
}

// Places tells for any byte offset of the text of a local document where in the
// file the first word at or after it stands, as a fragment that can be put behind
// the locator: "#page=3" in a PDF, "#L10" where the file has lines, and "" where
// that is not certain or the page is not of a file. Lines and pages are counted
// from one. The answer rests on stored bytes alone, so that any reader can repeat it.
//
// raw is asked for the bytes as fetched, at most once and only when they are
// needed; its error is returned as it is.
func (p Page) Places(text string, raw func() ([]byte, error)) (func(offset int) string, error) {
	place := func(int) string { return "" }
	switch {
	case p.Source != sourceFile || strings.Contains(p.Locator, "://"): // no path has that
	case len(p.Pages) > 0:
		place = func(offset int) string {
			n := sort.SearchInts(p.Pages, offset+1) // the last page that begins no later
			if n == 0 {
				return ""
			}
			return "#page=" + strconv.Itoa(n)
		}
	case p.Raw.Valid() && extract.HasLines(p.MediaType):
		stored := blob.Bytes(text)
		if p.Raw != p.Text { // else the bytes are those of the text
			var err error
			if stored, err = raw(); err != nil {
				return nil, err
			}
		}
		lines := extract.LinesOf(p.Locator, stored, text)
		place = func(offset int) string {
			n, ok := lines.At(offset)
			if !ok {
				return ""
			}
			return "#L" + strconv.Itoa(n)
		}
	}
	return func(offset int) string {
		if offset < 0 || offset >= len(text) {
			return ""
		}
		rest := strings.TrimLeftFunc(text[offset:], unicode.IsSpace)
		return place(len(text) - len(rest))
	}, nil
}

// Outdated reports a page that an earlier version read, with lines that cannot be
// found again.
func (p Page) Outdated() bool { return extract.Outdated(p.Extractor) }
