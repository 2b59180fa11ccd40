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
	// Filter is enforced by the engine: no hit it returns breaks it.
	Filter marchwarden.SourceFilter
}

// Hit is one document that may hold an answer.
type Hit struct {
	Locator string  `json:"locator"` // what to fetch
	Title   string  `json:"title,omitempty"`
	Snippet string  `json:"snippet,omitempty"` // text of the document near the query's words
	Score   float64 `json:"score"`             // comparable within one answer only
}

// Engine searches one body of documents.
type Engine interface {
	// Name is a short, stable name such as "local"; it enters traces and gaps.
	Name() string
	// Search returns hits, best first, each locator once. No hit is not an error.
	// Failures carry a marchwarden.Code: CodeUnavailable when the engine cannot
	// answer, CodeCanceled when ctx ended. Search is safe for concurrent use.
	Search(ctx context.Context, q Query) ([]Hit, error)
}
