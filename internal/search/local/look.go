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

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/inverted"
)

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
			return fmt.Errorf("look up folder: %w", err)
		}
		s.folders[id] = f
		ids, states = append(ids, id), append(states, state)
	}
	s.view, err = v.get(s.ctx, s.tx, ids, states)
	return err
}

// every returns all chunks, best first. Equal ones are in order of their locators.
func (s *searcher) every(terms []inverted.Term) ([]*found, error) {
	allow, err := s.allowed()
	if err != nil {
		return nil, err
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

// best returns at least want documents by the best of n chunks that terms find, those
// that tie with the last of them too, so that the outcome does not depend on the order
// of indexing.
func (s *searcher) best(terms []inverted.Term, n, want int) ([]*found, error) {
	allow, err := s.allowed()
	if err != nil {
		return nil, err
	}
	chunks, err := s.view.Search(s.ctx, terms, n, allow)
	if err != nil {
		return nil, err
	}
	return s.described(byDocument(chunks), want)
}

// allowed returns which documents the filter lets pass, nil for all.
func (s *searcher) allowed() (func(doc int64) bool, error) {
	if s.q.Filter.Empty() {
		return nil, nil
	}
	pass := map[int64]bool{}
	for id := range s.folders {
		err := each(s.ctx, s.tx, func(rows *sql.Rows) error {
			var doc int64
			var host, name string
			err := rows.Scan(&doc, &host, &name)
			pass[doc] = s.q.Filter.Allows(host, path.Base(name))
			return err
		}, "SELECT id, host, name FROM docs WHERE folder = ? AND chunks > 0", id)
		if err != nil {
			return nil, fmt.Errorf("filter files: %w", err)
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
	missing := len(docs)
	err = each(s.ctx, s.tx, func(rows *sql.Rows) error {
		var at, folder int64
		var name, title, text string
		if err := rows.Scan(&at, &folder, &name, &title, &text); err != nil {
			return err
		}
		in := s.folders[folder]
		if in == nil {
			return fmt.Errorf("a file is in a folder of another number: %w", inverted.ErrDamaged)
		}
		docs[at].hit = search.Hit{Locator: in.Locator(name), Title: title, Snippet: text}
		if title != path.Base(name) {
			docs[at].title = title
		}
		missing--
		return nil
	}, `SELECT j.key, d.folder, d.name, d.title, t.body FROM json_each(?) j
		JOIN docs d ON d.id = json_extract(j.value, '$[0]') JOIN texts t ON t.id = json_extract(j.value, '$[1]')`, list)
	if err == nil && missing > 0 {
		err = fmt.Errorf("%d of %d are missing: %w", missing, len(docs), inverted.ErrDamaged)
	}
	if err != nil {
		return fmt.Errorf("look up files: %w", err)
	}
	slices.SortFunc(docs, func(a, b *found) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.hit.Locator, b.hit.Locator), cmp.Compare(a.best, b.best))
	})
	return nil
}
