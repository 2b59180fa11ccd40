package researcher

import (
	"cmp"
	"context"
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// continues reads the conversation that a question follows: its turns, and, for a researcher who reads the world outside,
// what he himself has stored in it. So nothing that another one has found, who may be private, comes to him. A rihla can
// do without both.
func (p Prepared) continues(ctx context.Context, req marchwarden.Request, s *Setup) (*trace.Talk, error) {
	if req.Follow == "" {
		return nil, nil
	}
	chain, err := run.Chain(p.Lab.Traces, req.Follow)
	if err != nil && p.Lab.PartOf {
		return nil, nil
	}
	t := &trace.Talk{}
	if err == nil && !p.Lab.PartOf {
		t.Turns, err = run.Turns(ctx, p.Lab.Blobs, chain, func(start *trace.Start) bool { return s.Outside && run.Private(start, nil) })
	}
	if err != nil || !s.Outside {
		return t, err
	}
	if !p.Lab.PartOf {
		req.Question, _ = run.CompletedByRule(t.Turns, req.Question)
	}
	k := p.keptIn(ctx, chain, t.Turns, req)
	if t.Kept = len(k.pages); t.Kept > 0 {
		t.Searched, t.Answered, s.kept, s.Fetcher = k.searched, k.answered, search.Chain(k), keptFetcher{s.Fetcher, k}
	}
	return t, nil
}

// maxKept bounds the documents of a conversation that are looked at.
const maxKept = 100

// kept are the documents that a researcher has stored in a conversation.
type kept struct {
	blobs    blob.Store
	pages    map[string]fetch.Page // by locator, as they were read last
	order    []string              // those of the last turn first
	same     []string              // of these, those that were read for the same question
	searched []string              // what was searched for it
	answered bool                  // with an answer
}

// keptIn finds what the runs of a chain have stored. A record that cannot be read has nothing: it is fetched again.
func (p Prepared) keptIn(ctx context.Context, chain []*run.Run, turns []trace.Turn, req marchwarden.Request) *kept {
	k := &kept{blobs: p.Lab.Blobs, pages: map[string]fetch.Page{}}
	for _, turn := range chain {
		for _, r := range turn.All() {
			if r.Start.Researcher != p.Name {
				continue
			}
			alone := *r
			alone.Rihlas = nil
			docs, err := run.Store{Blobs: p.Lab.Blobs}.Documents(ctx, &alone)
			if err != nil {
				continue
			}
			was, done := r.Start.Request, r.Log.Complete()
			if i := slices.IndexFunc(turns, func(t trace.Turn) bool { return t.TraceID == r.ID }); i >= 0 {
				was.Question = cmp.Or(turns[i].Question, was.Question) // as it was understood
			}
			same := lexicon.SameWords(was.Question) == lexicon.SameWords(req.Question)
			k.take(docs, r, same)
			k.answered = k.answered || same && done != nil && done.Citations > 0 && !done.Interrupted && was.Limits().MaxIterations >= req.Limits().MaxIterations
		}
	}
	return k
}

func (k *kept) take(docs []run.Document, r *run.Run, same bool) {
	for _, d := range docs {
		if _, known := k.pages[d.Locator]; !known && !d.NonText && d.Raw.Valid() && len(k.order) < maxKept {
			k.pages[d.Locator] = d.Page
			k.order = append(k.order, d.Locator)
		}
		if same && !slices.Contains(k.same, d.Locator) {
			k.same = append(k.same, d.Locator)
		}
	}
	if !same {
		return
	}
	if t := r.Start.Talk; t != nil {
		k.searched = append(k.searched, t.Searched...)
	}
	for _, step := range r.Log.Steps {
		if s, ok := step.(*trace.SearchComplete); ok && s.Engine == r.Start.Engine && !slices.Contains(k.searched, s.Query) {
			k.searched = append(k.searched, s.Query)
		}
	}
}

// Name implements search.Engine.
func (k *kept) Name() string { return "conversation" }

// Free says that a search reaches nothing outside this machine.
func (k *kept) Free() bool { return true }

const (
	bears        = 0.5  // share of the question that the best passages of a document must hold to be worth reading again
	snippetBytes = 1000 // of these passages, about
)

// Search gives the documents that were read for the same question, or else those whose passages bear on it.
func (k *kept) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	set := &evidence.Set{}
	for _, loc := range k.order {
		page := k.pages[loc]
		if len(k.same) > 0 && !slices.Contains(k.same, loc) {
			continue
		}
		if text, err := blob.Text(ctx, k.blobs, page.Text); err == nil { // what is gone is fetched again
			set.Add(page, text)
		}
	}
	asked := lexicon.Terms(q.Text)
	found := map[int]*search.Hit{}
	var order []*search.Hit
	for _, p := range set.Rank(asked, 0) {
		h := found[p.Source]
		if h == nil {
			page := set.Sources()[p.Source-1].Page
			h = &search.Hit{Locator: page.Locator, Title: page.Title, Score: p.Score, Published: page.Published}
			found[p.Source], order = h, append(order, h)
		}
		if len(h.Snippet) < snippetBytes {
			h.Snippet += p.Text + "\n"
		}
	}
	var out []search.Hit
	for _, h := range order {
		has, share := lexicon.TermSet(h.Title+"\n"+h.Snippet), 0
		for _, stem := range asked {
			if has[stem] {
				share++
			}
		}
		if len(k.same) > 0 || float64(share) >= bears*float64(len(asked)) {
			out = append(out, *h)
		}
	}
	return out, nil
}

// keptFetcher gives what is stored as it is, with its time and its hashes, and fetches the rest.
type keptFetcher struct {
	fetch.Fetcher
	kept *kept
}

// Fetch implements fetch.Fetcher.
func (f keptFetcher) Fetch(ctx context.Context, locator string) (fetch.Page, error) {
	page, ok := f.kept.pages[locator]
	if !ok {
		return f.Fetcher.Fetch(ctx, locator)
	}
	for _, ref := range []blob.Ref{page.Raw, page.Text} {
		if _, err := f.kept.blobs.Stat(ctx, ref); err != nil {
			return f.Fetcher.Fetch(ctx, locator)
		}
	}
	return page, nil
}
