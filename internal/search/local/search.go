package local

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/inverted"
)

// The ranking. A document is as good as its best chunk; the next few add a
// little, so that of two equal ones the document that says more comes first.
const (
	defaultLimit = 10
	minChunks    = 200  // chunks looked at, at least
	chunksPerHit = 20   // and for every hit asked for
	moreChunks   = 4    // further chunks that count
	moreWeight   = 0.05 // what each of them adds of its score
)

// Engine returns a search engine over these folders, which should have been
// given to Update before: one that the index does not hold has no hits. The
// engine is called "local"; a limit below 1 means 10. Of a document, the
// filter looks at the host it declares and at its file name: one must match.
// Ties are broken by locator.
//
// With an embedder the documents that words find are put in order
// by their words and their meaning (see Reader). At most MaxTexts texts and the
// query are given to e for one search, but all of a small library. Without vectors, because e is nil or fails,
// words decide alone; that e failed is not told.
func (ix *Index) Engine(e embed.Embedder, folders ...*fetch.Folder) search.Engine {
	return &engine{ix: ix, embed: e, folders: byName(folders)}
}

// byName are folders in order of their names, each once.
func byName(folders []*fetch.Folder) []*fetch.Folder {
	sorted := slices.SortedFunc(slices.Values(folders), func(a, b *fetch.Folder) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(sorted, func(a, b *fetch.Folder) bool { return a.Name == b.Name })
}

type engine struct {
	ix      *Index
	embed   embed.Embedder // nil for none
	folders []*fetch.Folder
}

// Name implements search.Engine.
func (e *engine) Name() string { return "local" }

// Free says that a search costs nothing but time.
func (e *engine) Free() bool { return true }

// Search implements search.Engine.
func (e *engine) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	if err := ctx.Err(); err != nil {
		return nil, e.ix.coded(ctx, err, "search the library")
	}
	if q.Limit < 1 {
		q.Limit = defaultLimit
	}
	words, times := terms(q.Text)
	if len(words) == 0 {
		return nil, nil
	}
	hits, err := e.ranked(ctx, q, wanted(words, times))
	if err != nil {
		return nil, e.ix.coded(ctx, err, "search the library")
	}
	for i := range hits {
		hits[i].Snippet = snippet(hits[i].Snippet, words)
	}
	return hits, nil
}

// ranked finds and orders. Where meaning is looked at, the words of what comes first
// are looked for as well, in a second round. Vectors are made while the index is free.
// The snippets of the hits are whole chunks still.
func (e *engine) ranked(ctx context.Context, q search.Query, terms []inverted.Term) ([]search.Hit, error) {
	list, whole, err := e.find(ctx, q, terms, nil)
	if err != nil {
		return nil, err
	}
	first, most := FirstTexts, MaxTexts
	embedder := e.embed
	if whole { // its vectors are there, or are made once
		first, most = len(list), len(list)
	} else if q.ByWords {
		embedder = nil
	}
	reader := NewReader(embedder, q.Text)
	if list, err = reader.Order(ctx, list, first); err != nil {
		return nil, err
	}
	if reader.Reads() && len(list) >= FeedbackTexts {
		if list, _, err = e.find(ctx, q, terms, list[:FeedbackTexts]); err != nil {
			return nil, err
		}
		if list, err = reader.Order(ctx, list, most); err != nil {
			return nil, err
		}
	}
	var hits []search.Hit
	seen := map[string]bool{} // a document may be there with several chunks
	for _, f := range list {
		if !seen[f.hit.Locator] && len(hits) < q.Limit {
			seen[f.hit.Locator] = true
			hits = append(hits, f.hit)
		}
	}
	return hits, nil
}

// find finds documents by terms, and by the words of texts that seem to answer: as many
// as are asked for or compared by meaning, if there are, with their best chunks, or the
// whole of a small library, chunk by chunk, where meaning is looked at.
func (e *engine) find(ctx context.Context, q search.Query, terms []inverted.Term, best []*found) (list []*found, whole bool, err error) {
	want := q.Limit
	if e.embed != nil && !q.ByWords {
		want = max(want, MaxTexts)
	}
	tx, err := e.ix.r.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // one state of the index throughout
	if err != nil {
		return nil, false, fmt.Errorf("begin search: %w", err)
	}
	defer tx.Rollback()
	s := &searcher{ctx: ctx, tx: tx, q: q}
	if err := s.lookUp(&e.ix.views, e.folders); err != nil {
		return nil, false, err
	}
	if best != nil {
		if terms, err = Feedback(terms, best, s.view.IDF); err != nil {
			return nil, false, err
		}
	}
	whole = e.embed != nil && s.view.Chunks() <= WholeTexts
	list, err = s.find(terms, want, whole)
	return list, whole, err
}

// wanted is what to look for where a query has words, each with a count.
func wanted(words []string, times []int) []inverted.Term {
	var terms []inverted.Term
	for i, w := range words {
		for _, t := range inverted.Terms(w) {
			t.Weight *= repeated(times[i])
			terms = append(terms, t)
		}
	}
	return terms
}

// repeated is what a word counts that a query has n times. That it is said again says
// that it matters, the second time more than the third: this is BM25's own formula with
// a k3 of 2. Against counting each word once it takes the average precision on CACM,
// where requests are long, from .341 to .379, and nDCG@10 on Cranfield and SciFact from
// .393 to .393 and .701 to .699.
func repeated(n int) float64 { return 3 * float64(n) / float64(2+n) }

// searcher is one look into the index.
type searcher struct {
	ctx     context.Context
	tx      *sql.Tx
	q       search.Query
	folders map[int64]*fetch.Folder // those that the index holds, by id
	view    *inverted.View
}

// lookUp finds the folders in the index and opens a view of them.
func (s *searcher) lookUp(v *views, folders []*fetch.Folder) (err error) {
	s.folders = map[int64]*fetch.Folder{}
	var ids, states []int64
	for _, f := range folders {
		var id, state int64
		err := s.tx.QueryRowContext(s.ctx, "SELECT id, state FROM folders WHERE name = ?", f.Name).Scan(&id, &state)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return err
		}
		s.folders[id] = f
		ids, states = append(ids, id), append(states, state)
	}
	s.view, err = v.get(s.ctx, s.tx, ids, states)
	return err
}

// find returns at least want documents by the best chunks that terms find, those that tie
// with the last of them too, so that the outcome does not depend on the order of
// indexing. Or it returns the whole index, chunk by chunk, those without any of the terms too, best first.
func (s *searcher) find(terms []inverted.Term, want int, whole bool) ([]*found, error) {
	allow, err := s.allowed()
	if err != nil {
		return nil, err
	}
	if !whole {
		chunks, err := s.view.Search(s.ctx, terms, max(minChunks, chunksPerHit*want), allow)
		if err != nil {
			return nil, err
		}
		return s.described(byDocument(chunks), want)
	}
	chunks, err := s.view.Every(s.ctx, terms, allow)
	if err != nil {
		return nil, err
	}
	all := make([]*found, len(chunks))
	for i, c := range chunks {
		all[i] = &found{id: c.Doc, best: c.Chunk, score: c.Score}
	}
	return all, s.describe(all)
}

// allowed returns which documents the filter lets pass, nil for all.
func (s *searcher) allowed() (func(doc int64) bool, error) {
	if s.q.Filter.Empty() {
		return nil, nil
	}
	type row struct {
		doc        int64
		host, name string
	}
	pass := map[int64]bool{}
	for id := range s.folders {
		list, err := rows(s.ctx, s.tx, func(r *row) []any { return []any{&r.doc, &r.host, &r.name} }, "SELECT id, host, name FROM docs WHERE folder = ? AND chunks > 0", id)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			pass[r.doc] = s.q.Filter.Allows(r.host, path.Base(r.name))
		}
	}
	return func(doc int64) bool { return pass[doc] }, nil
}

// found is a document with matching chunks.
type found struct {
	id    int64
	best  int64      // chunk
	score float64    // how well it matches by words; 0 for not at all
	more  int        // further chunks that counted
	title string     // "" if all that is known is the name of the file
	hit   search.Hit // once described; its snippet is all of the best chunk, its score that of Order
}

// byDocument scores the documents of chunks, which come best first, and returns
// them best first.
func byDocument(chunks []inverted.Hit) []*found {
	var docs []*found
	byID := map[int64]*found{}
	for _, c := range chunks {
		d := byID[c.Doc]
		switch {
		case d == nil:
			d = &found{id: c.Doc, best: c.Chunk, score: c.Score}
			byID[c.Doc] = d
			docs = append(docs, d)
		case d.more < moreChunks:
			d.score += float64(moreWeight * c.Score) // rounded by itself on every machine
			d.more++
		}
	}
	slices.SortStableFunc(docs, func(a, b *found) int { return cmp.Compare(b.score, a.score) })
	return docs
}

// described describes the best documents, at least want of them. Those of one score
// are looked up together and put in order of their locators.
func (s *searcher) described(docs []*found, want int) ([]*found, error) {
	var out []*found
	seen := map[string]bool{}
	for len(docs) > 0 && len(out) < want {
		n := min(len(docs), want-len(out))
		for n < len(docs) && docs[n].score == docs[n-1].score {
			n++
		}
		if err := s.describe(docs[:n]); err != nil {
			return nil, err
		}
		for _, d := range docs[:n] {
			if !seen[d.hit.Locator] { // of two folders, one may lie inside the other
				seen[d.hit.Locator] = true
				out = append(out, d)
			}
		}
		docs = docs[n:]
	}
	return out, nil
}

// describe fills in the hits of documents and puts them in order: by score, equal ones
// by locator. A document may be there several times, with a chunk each.
func (s *searcher) describe(docs []*found) error {
	pairs := make([][2]int64, len(docs))
	for i, d := range docs {
		pairs[i] = [2]int64{d.id, d.best}
	}
	list, err := json.Marshal(pairs)
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	type row struct {
		at, folder        int64
		name, title, text string
	}
	there, err := rows(s.ctx, s.tx, func(r *row) []any { return []any{&r.at, &r.folder, &r.name, &r.title, &r.text} }, `SELECT j.key, d.folder, d.name, d.title, t.body FROM json_each(?) j
		JOIN docs d ON d.id = json_extract(j.value, '$[0]') JOIN texts t ON t.id = json_extract(j.value, '$[1]')`, list)
	if err == nil && len(there) < len(docs) {
		err = fmt.Errorf("%d of %d files are missing: %w", len(docs)-len(there), len(docs), inverted.ErrDamaged)
	}
	for _, r := range there {
		in := s.folders[r.folder]
		if in == nil {
			return fmt.Errorf("a file is in a folder of another number: %w", inverted.ErrDamaged)
		}
		docs[r.at].hit = search.Hit{Locator: in.Locator(r.name), Title: r.title, Snippet: r.text}
		if r.title != path.Base(r.name) {
			docs[r.at].title = r.title
		}
	}
	if err != nil {
		return err
	}
	slices.SortFunc(docs, func(a, b *found) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.hit.Locator, b.hit.Locator), cmp.Compare(a.best, b.best))
	})
	return nil
}
