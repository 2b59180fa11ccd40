package run

import (
	"context"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Document is a document that a run, or one of its rihlas, read and stored.
type Document struct {
	fetch.Page
	// Step and Run say where it was recorded.
	Step int
	Run  *Run
}

// Documents are the documents that a run and its rihlas read, in the order of
// their traces, each pair of locator and text once. A document that a stranger
// cited and that was only got hold of has no Raw bytes. A damaged record is an
// error that names the blob.
func (s Store) Documents(ctx context.Context, r *Run) ([]Document, error) {
	type key struct {
		locator string
		text    blob.Ref
	}
	var docs []Document
	seen := map[key]bool{}
	all := r.All()
	// Rihlas first: they know more about what they read than who asked them.
	for _, run := range append(all[1:len(all):len(all)], r) {
		for _, step := range run.Log.Steps {
			p, err := s.page(ctx, step)
			if err != nil {
				return nil, err
			}
			d := Document{Page: p, Step: step.Header().Step, Run: run}
			if k := (key{d.Locator, d.Hash()}); k.text.Valid() && !seen[k] {
				seen[k] = true
				docs = append(docs, d)
			}
		}
	}
	return docs, nil
}

// page is the document that a step got hold of; the zero Page if it got none.
func (s Store) page(ctx context.Context, step trace.Step) (fetch.Page, error) {
	switch step := step.(type) {
	case *trace.FetchComplete:
		if step.Error != "" {
			return fetch.Page{}, nil
		}
		return replay.Outcome[fetch.Page](ctx, s.Blobs, step)
	case *trace.Evidence:
		if step.Error != "" || !step.ContentHash.Valid() {
			return fetch.Page{}, nil
		}
		held, err := replay.Outcome[replay.Held](ctx, s.Blobs, step)
		at := held.FetchedAt
		if at.IsZero() {
			at = step.Timestamp
		}
		return fetch.Page{Locator: step.Locator, Text: held.Text, Title: held.Title, Published: held.Published,
			Unchecked: held.How == "reported", FetchedAt: at.Truncate(time.Second)}, err
	}
	return fetch.Page{}, nil
}
