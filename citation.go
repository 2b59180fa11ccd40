package marchwarden

import "time"

// MaxExcerptChars is the longest raw_excerpt, its cut mark included.
const MaxExcerptChars = 500

// The bounds of a snippet, in characters.
const (
	MinSnippetChars = 50
	MaxSnippetChars = 200
)

// The two fixed texts of raw_excerpt.
const (
	// ExcerptCut ends an excerpt that was too long to be given whole.
	ExcerptCut = " [...]"
	// ExcerptNonText is the whole excerpt of a source that is no text. It is
	// never evidence for anything.
	ExcerptNonText = "[non-text source]"
)

// Citation is one piece of evidence: where it is from and what it says there,
// verbatim.
type Citation struct {
	// Source is the kind of source: "web", "file", "arxiv", "database"…
	Source string `json:"source"`
	// Locator is what was fetched: a URL, a path, a row id, a DOI.
	Locator string `json:"locator"`
	Title   string `json:"title,omitempty"`
	// Snippet is the researcher's own summary in 50 to 200 characters.
	Snippet string `json:"snippet,omitempty"`
	// RawExcerpt is verbatim text of the source: the bytes of the stored text
	// from Span.Start to Span.End, then ExcerptCut if they were too long.
	RawExcerpt string `json:"raw_excerpt"`
	Confidence Unit   `json:"confidence"`

	// ContentHash names the stored text, as "sha256:" and 64 hex digits.
	ContentHash string `json:"content_hash,omitempty"`
	// Span is where the excerpt stands in the stored text.
	Span *Span `json:"span,omitempty"`
	// FetchedAt is when the document was fetched.
	FetchedAt *time.Time `json:"fetched_at,omitempty"`
	// Published is the document's own date, 2006-01-02, if it is known; Origin is
	// who is behind it, so that pages of one publisher count once; Authority is the
	// standing of that origin.
	Published string    `json:"published,omitempty"`
	Origin    string    `json:"origin,omitempty"`
	Authority Authority `json:"authority,omitempty"`
	// Unchecked marks an excerpt that only the researcher that reported it could hold against its
	// source. What is stored is then the report, not the document.
	Unchecked bool `json:"unchecked,omitempty"`
}

// Span is a range of bytes: Start is the first one, End is after the last.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Len is the number of bytes in the span.
func (s Span) Len() int { return s.End - s.Start }

// In reports whether the span lies within a text of n bytes and is not empty.
func (s Span) In(n int) bool { return 0 <= s.Start && s.Start < s.End && s.End <= n }
