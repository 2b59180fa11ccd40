package local

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

// load returns the id of a folder, 0 if the index does not hold it, and what is
// known of its files.
func (ix *Index) load(ctx context.Context, folder string) (id int64, files map[string]known, err error) {
	err = ix.r.QueryRowContext(ctx, "SELECT id FROM folders WHERE name = ?", folder).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil, nil
	}
	if err == nil {
		files, err = filesOf(ctx, ix.r, "", id)
	}
	return id, files, err
}

// filesOf returns what is known of files of a folder by name; the first argument is its id.
func filesOf(ctx context.Context, q querier, filter string, args ...any) (map[string]known, error) {
	list, err := rows(ctx, q, func(k *known) []any { return []any{&k.name, &k.id, &k.size, &k.mtime, &k.hash, &k.note, &k.chunks} },
		"SELECT name, id, size, mtime, hash, note, chunks FROM docs WHERE folder = ? "+filter, args...)
	files := make(map[string]known, len(list))
	for _, k := range list {
		files[k.name] = k
	}
	return files, err
}

// rows returns the rows of a query; into says where the columns of one go.
func rows[T any](ctx context.Context, q querier, into func(*T) []any, query string, args ...any) ([]T, error) {
	found, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	list := []T{}
	for found.Next() {
		var row T
		if err := found.Scan(into(&row)...); err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, found.Err()
}

// change runs fn in a write transaction on one folder, giving it and keeping the
// number of its next document. Cancellation is left to fn.
func (ix *Index) change(ctx context.Context, folder int64, fn func(t *writer)) error {
	tx, err := ix.w.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return fmt.Errorf("begin batch: %w", err)
	}
	defer tx.Rollback() // after Commit a no-op
	t := &writer{ctx: ctx, tx: tx, folder: folder, stmts: map[string]*sql.Stmt{}}
	err = tx.QueryRow("SELECT next FROM folders WHERE id = ?", folder).Scan(&t.next)
	if errors.Is(err, sql.ErrNoRows) {
		return marchwarden.Errorf(marchwarden.CodeUnavailable, "the folder was removed from the index during its update")
	}
	if err != nil {
		return fmt.Errorf("begin batch: %w", err)
	}
	fn(t)
	t.tidy()
	t.exec("UPDATE folders SET next = ?, state = state + 1 WHERE id = ?", t.next, folder)
	if t.err != nil {
		return fmt.Errorf("write index: %w", t.err)
	}
	return tx.Commit()
}

// writer is one write transaction. Its statements are compiled once each and
// closed with it. After its first error it does nothing more.
type writer struct {
	ctx     context.Context // looked at inside large files only
	tx      *sql.Tx
	folder  int64
	next    int64 // number of the next document in the folder
	removed bool  // a file that has chunks
	stmts   map[string]*sql.Stmt
	err     error
}

// exec runs a statement, and returns the id of the row that it has inserted.
func (t *writer) exec(query string, args ...any) (id int64) {
	s := t.stmts[query]
	if s == nil && t.err == nil {
		s, t.err = t.tx.Prepare(query)
		t.stmts[query] = s
	}
	if t.err != nil {
		return 0
	}
	done, err := s.Exec(args...)
	if t.err = err; err == nil {
		id, t.err = done.LastInsertId()
	}
	return id
}

const insertSegment = "INSERT INTO segments (folder, first, span, chunks, data) VALUES (?, ?, ?, ?, ?)"

// writeBatch puts what was read into the index, in one transaction.
func (ix *Index) writeBatch(ctx context.Context, folder int64, b *batch) error {
	return ix.change(ctx, folder, func(t *writer) {
		names := make([]string, len(b.files))
		for i := range b.files {
			names[i] = b.files[i].name
		}
		there, first, kept := t.there("name", names), t.next, 0
		for i := range b.files {
			kept += t.file(&b.files[i], there[names[i]])
		}
		if t.next += int64(b.span); kept > 0 {
			t.exec(insertSegment, t.folder, first, b.span, b.chunks, b.segment)
		}
	})
}

// there returns what the index has now of the files with some values in a column, by name. It is looked
// up again, since another process may have written them after this update began.
func (t *writer) there(column string, values any) map[string]known {
	list, err := json.Marshal(values)
	var found map[string]known
	if err == nil {
		found, err = filesOf(context.Background(), t.tx, "AND "+column+" IN (SELECT value FROM json_each(?))", t.folder, list)
	}
	t.err = errors.Join(t.err, err)
	return found
}

// file writes one outcome and returns how many chunks of it the index now holds.
func (t *writer) file(o *outcome, has known) int {
	found := has.id != 0
	switch {
	case found && !o.retry && bytes.Equal(has.hash, o.hash):
		t.exec("UPDATE docs SET size = ?, mtime = ? WHERE id = ?", o.size, o.mtime, has.id)
		return 0
	case o.same:
		return 0 // the row it was the same as is gone; the next update sees to it
	case found && o.mtime > 0 && has.mtime > o.mtime && has.id != o.knownID:
		return 0 // another process has since read a later state of the file
	case found:
		t.delete(has)
	}
	if o.retry {
		return 0
	}
	t.insert(o)
	return len(o.pieces)
}

// ctxEvery is how many chunks of one file are written between two looks at the
// context: a fraction of a second's work.
const ctxEvery = 512

func (t *writer) insert(o *outcome) {
	doc := t.folder<<32 + t.next + int64(o.number)
	t.exec("INSERT INTO docs (id, folder, name, size, mtime, hash, title, host, note, chunks) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		doc, t.folder, o.name, o.size, o.mtime, o.hash, o.title, fetch.Host(o.doc), o.note, len(o.pieces))
	for i, text := range o.pieces {
		if i%ctxEvery == ctxEvery-1 && t.ctx.Err() != nil {
			t.err = t.ctx.Err()
			return
		}
		t.exec("INSERT INTO texts (id, body) VALUES (?, ?)", doc+int64(i), text)
	}
}

func (t *writer) delete(k known) {
	if t.exec("DELETE FROM docs WHERE id = ?", k.id); k.chunks > 0 {
		t.removed = true
		t.exec("DELETE FROM texts WHERE id BETWEEN ? AND ?", k.id, k.id+k.chunks-1)
	}
}

// removeDocs takes files out of the index, in batches. An id that is gone
// already, or was replaced by another process, is passed over.
func (ix *Index) removeDocs(ctx context.Context, folder int64, ids []int64) error {
	for batch := range slices.Chunk(ids, removeFiles) {
		err := ctx.Err()
		if err == nil {
			err = ix.change(ctx, folder, func(t *writer) {
				for _, k := range t.there("id", batch) {
					t.delete(k)
				}
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
