package local

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
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
	var states []folderState
	for _, f := range folders {
		var at folderState
		err := s.tx.QueryRowContext(s.ctx, "SELECT id, state FROM folders WHERE name = ?", f.Name).Scan(&at.id, &at.state)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look up folder: %w", err)
		}
		s.folders[at.id] = f
		states = append(states, at)
	}
	s.view, err = v.get(s.ctx, s.tx, states)
	return err
}

// candidates returns the n chunks that terms find best, those that tie with the last
// of them too, so that the outcome does not depend on the order of indexing.
func (s *searcher) candidates(terms []inverted.Term, n int) ([]inverted.Hit, error) {
	allow, err := s.allowed()
	if err != nil {
		return nil, err
	}
	return s.view.Search(s.ctx, terms, n, allow)
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
	if err := s.describe(all); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *found) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.hit.Locator, b.hit.Locator), cmp.Compare(a.best, b.best))
	})
	return all, nil
}

// allowed returns which documents the filter lets pass, nil for all.
func (s *searcher) allowed() (func(doc int64) bool, error) {
	if s.q.Filter.Empty() {
		return nil, nil
	}
	pass := map[int64]bool{}
	for id := range s.folders {
		rows, err := s.tx.QueryContext(s.ctx, "SELECT id, host, name FROM docs WHERE folder = ? AND chunks > 0", id)
		if err != nil {
			return nil, fmt.Errorf("filter files: %w", err)
		}
		defer rows.Close()
		for rows.Next() {
			var doc int64
			var host, name string
			if err := rows.Scan(&doc, &host, &name); err != nil {
				return nil, fmt.Errorf("filter files: %w", err)
			}
			if s.q.Filter.Allows(host, path.Base(name)) {
				pass[doc] = true
			}
		}
		if err := rows.Err(); err != nil {
			return nil, fmt.Errorf("filter files: %w", err)
		}
	}
	return func(doc int64) bool { return pass[doc] }, nil
}

// found is a document with matching chunks.
type found struct {
	id    int64
	best  int64 // chunk
	score float64
	more  int        // further chunks that counted
	title string     // "" if all that is known is the name of the file
	hit   search.Hit // once described; its snippet is all of the best chunk
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
		slices.SortFunc(docs[:n], func(a, b *found) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.hit.Locator, b.hit.Locator))
		})
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

// describe fills in the hits of documents. One may be there several times, with a
// chunk each.
func (s *searcher) describe(docs []*found) error {
	byID, ids, chunks := map[int64][]*found{}, make([]int64, 0, len(docs)), make([]int64, len(docs))
	for i, d := range docs {
		if chunks[i] = d.best; byID[d.id] == nil {
			ids = append(ids, d.id)
		}
		byID[d.id] = append(byID[d.id], d)
	}
	bodies, err := s.texts(chunks)
	if err != nil {
		return err
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	rows, err := s.tx.QueryContext(s.ctx, "SELECT id, folder, name, title FROM docs WHERE id IN (SELECT value FROM json_each(?))", list)
	if err != nil {
		return fmt.Errorf("look up files: %w", err)
	}
	defer rows.Close()
	missing := len(ids)
	for ; rows.Next(); missing-- {
		var id, folder int64
		var name, title string
		if err := rows.Scan(&id, &folder, &name, &title); err != nil {
			return fmt.Errorf("look up files: %w", err)
		}
		in := s.folders[folder]
		if in == nil {
			return fmt.Errorf("file %d is in a folder of another number: %w", id, inverted.ErrDamaged)
		}
		for _, d := range byID[id] {
			d.hit = search.Hit{Locator: in.Locator(name), Title: title, Snippet: bodies[d.best]}
			if title != path.Base(name) {
				d.title = title
			}
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("look up files: %w", err)
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d files are missing: %w", missing, len(ids), inverted.ErrDamaged)
	}
	return nil
}

// texts reads chunks.
func (s *searcher) texts(chunks []int64) (map[int64]string, error) {
	stmt, err := s.tx.PrepareContext(s.ctx, "SELECT id, sizes, body FROM texts WHERE id <= ? ORDER BY id DESC LIMIT 1")
	if err != nil {
		return nil, fmt.Errorf("read chunk: %w", err)
	}
	defer stmt.Close()
	bodies := make(map[int64]string, len(chunks))
	for _, c := range chunks {
		var first int64
		var sizes []byte
		var body string
		err := stmt.QueryRowContext(s.ctx, c).Scan(&first, &sizes, &body)
		if errors.Is(err, sql.ErrNoRows) {
			err = inverted.ErrDamaged
		}
		if err != nil {
			return nil, fmt.Errorf("read chunk: %w", err)
		}
		for ; ; first++ {
			size, n := binary.Uvarint(sizes)
			if n <= 0 || size > uint64(len(body)) {
				return nil, fmt.Errorf("read chunk: %w", inverted.ErrDamaged)
			}
			if first == c {
				bodies[c] = body[:size]
				break
			}
			sizes, body = sizes[n:], body[size:]
		}
	}
	return bodies, nil
}
