// Package search turns a query into hits. It owns the Engine interface and its
// values; each engine is a package below it, and searchtest holds the suite that
// all of them pass. Reading what a hit points at is package fetch's work.
package search

import (
	"context"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Query is one search.
type Query struct {
	Text  string
	Limit int // at most this many hits; the engine may give fewer
	// ByWords asks an engine that compares meanings, too, to leave that out where it
	// costs time: a name is found by its words.
	ByWords bool
	// Filter is enforced by the engine: no hit it returns breaks it.
	Filter marchwarden.SourceFilter
	// Since and Until bound the date of publication, 2006-01-02, both inclusive;
	// "" is no bound. A hit whose date is known and outside is not returned; one
	// whose date is unknown may be.
	Since, Until string
}

// Hit is one document that may hold an answer.
type Hit struct {
	Locator string  `json:"locator"` // what to fetch
	Title   string  `json:"title,omitempty"`
	Snippet string  `json:"snippet,omitempty"` // text of the document near the query's words
	Score   float64 `json:"score"`             // comparable within one answer only
	// Published is the date the engine knows, 2006-01-02, or "".
	Published string `json:"published,omitempty"`
}

// Engine searches one body of documents.
type Engine interface {
	// Name is a short, stable name such as "local"; it enters traces and gaps.
	Name() string
	// Search returns hits, best first, each locator once. No hit is not an error.
	// Failures carry a marchwarden.Code, never CodeNotFound: CodeUnavailable when
	// the engine cannot answer, CodeDenied when it refuses the key, CodeRateLimited,
	// CodeTimeout, CodeMalformed, CodeInvalid for an address or a date that is none,
	// and CodeCanceled when ctx ended. Hits may come
	// with an error: another engine stood in for the one that failed. Search is safe
	// for concurrent use.
	Search(ctx context.Context, q Query) ([]Hit, error)
}
