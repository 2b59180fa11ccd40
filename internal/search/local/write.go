package local

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

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
	if err != nil {
		return 0, nil, fmt.Errorf("load folder: %w", err)
	}
	return id, files, nil
}

// filesOf returns what is known of files of a folder by name; the first argument is its id.
func filesOf(ctx context.Context, q querier, filter string, args ...any) (map[string]known, error) {
	files := map[string]known{}
	return files, each(ctx, q, func(rows *sql.Rows) error {
		var name string
		var k known
		err := rows.Scan(&name, &k.id, &k.size, &k.mtime, &k.hash, &k.note, &k.chunks)
		files[name] = k
		return err
	}, "SELECT name, id, size, mtime, hash, note, chunks FROM docs WHERE folder = ? "+filter, args...)
}

func (ix *Index) addFolder(ctx context.Context, name string) (id int64, err error) {
	err = ix.w.QueryRowContext(ctx, "INSERT INTO folders (name) VALUES (?) ON CONFLICT DO UPDATE SET name = name RETURNING id", name).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("add folder: %w", err)
	}
	return id, nil
}

func (ix *Index) touch(ctx context.Context, id int64, now time.Time) error {
	_, err := ix.w.ExecContext(ctx, "UPDATE folders SET updated = ? WHERE id = ?", now.UTC().Format(time.RFC3339Nano), id)
	if err != nil {
		return fmt.Errorf("date folder: %w", err)
	}
	return nil
}

// change runs fn in a write transaction on one folder, giving it and keeping the
// number of its next document. Cancellation is left to fn.
func (ix *Index) change(ctx context.Context, folder int64, fn func(t *writer) error) error {
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
	if err := fn(t); err != nil {
		return err
	}
	if err := t.tidy(); err != nil {
		return err
	}
	if err := t.exec("UPDATE folders SET next = ?, state = state + 1 WHERE id = ?", t.next, folder); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit batch: %w", err)
	}
	return nil
}

// writer is one write transaction. Its statements are compiled once each and
// closed with it.
type writer struct {
	ctx     context.Context // looked at inside large files only
	tx      *sql.Tx
	folder  int64
	next    int64 // number of the next document in the folder
	removed bool  // a file that has chunks
	stmts   map[string]*sql.Stmt
}

func (t *writer) stmt(query string) (*sql.Stmt, error) {
	if s := t.stmts[query]; s != nil {
		return s, nil
	}
	s, err := t.tx.Prepare(query)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	t.stmts[query] = s
	return s, nil
}

func (t *writer) exec(query string, args ...any) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	if _, err := s.Exec(args...); err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	return nil
}

// writeBatch puts what was read into the index, in one transaction.
func (ix *Index) writeBatch(ctx context.Context, folder int64, b *batch) error {
	return ix.change(ctx, folder, func(t *writer) error {
		there, err := t.there(b.files)
		if err != nil {
			return err
		}
		first, kept := t.next, 0
		for i := range b.files {
			n, err := t.file(&b.files[i], there[b.files[i].name])
			if err != nil {
				return err
			}
			kept += n
		}
		t.next += int64(b.span)
		if kept == 0 {
			return nil
		}
		return t.exec("INSERT INTO segments (folder, first, span, chunks, data) VALUES (?, ?, ?, ?, ?)", t.folder, first, b.span, b.chunks, b.segment)
	})
}

// there returns what the index has of files now, by name. It is looked up again, since
// another process may have written it after this update began.
func (t *writer) there(files []outcome) (map[string]known, error) {
	names := make([]string, len(files))
	for i := range files {
		names[i] = files[i].name
	}
	list, err := json.Marshal(names)
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	found, err := filesOf(context.Background(), t.tx, "AND name IN (SELECT value FROM json_each(?))", t.folder, list)
	if err != nil {
		return nil, fmt.Errorf("look up files: %w", err)
	}
	return found, nil
}

// file writes one outcome and returns how many chunks of it the index now holds.
func (t *writer) file(o *outcome, has known) (int, error) {
	found := has.id != 0
	switch {
	case found && !o.retry && bytes.Equal(has.hash, o.hash):
		return 0, t.exec("UPDATE docs SET size = ?, mtime = ? WHERE id = ?", o.size, o.mtime, has.id)
	case o.same:
		return 0, nil // the row it was the same as is gone; the next update sees to it
	case found && o.mtime > 0 && has.mtime > o.mtime && has.id != o.knownID:
		return 0, nil // another process has since read a later state of the file
	case found:
		if err := t.delete(has.id, has.chunks); err != nil {
			return 0, err
		}
	}
	if o.retry {
		return 0, nil
	}
	return len(o.pieces), t.insert(o)
}

// ctxEvery is how many chunks of one file are written between two looks at the
// context: a fraction of a second's work.
const ctxEvery = 512

func (t *writer) insert(o *outcome) error {
	doc := t.folder<<32 + t.next + int64(o.number)
	err := t.exec("INSERT INTO docs (id, folder, name, size, mtime, hash, title, host, note, chunks) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		doc, t.folder, o.name, o.size, o.mtime, o.hash, o.title, fetch.Host(o.doc), o.note, len(o.pieces))
	if err != nil {
		return err
	}
	for i, text := range o.pieces {
		if i%ctxEvery == ctxEvery-1 && t.ctx.Err() != nil {
			return t.ctx.Err()
		}
		if err := t.exec("INSERT INTO texts (id, body) VALUES (?, ?)", doc+int64(i), text); err != nil {
			return err
		}
	}
	return nil
}

func (t *writer) delete(doc, chunks int64) error {
	if err := t.exec("DELETE FROM docs WHERE id = ?", doc); err != nil || chunks == 0 {
		return err
	}
	t.removed = true
	return t.exec("DELETE FROM texts WHERE id BETWEEN ? AND ?", doc, doc+chunks-1)
}

// removeDocs takes files out of the index, in batches. An id that is gone
// already, or was replaced by another process, is passed over.
func (ix *Index) removeDocs(ctx context.Context, folder int64, ids []int64) error {
	for batch := range slices.Chunk(ids, removeFiles) {
		if err := ctx.Err(); err != nil {
			return err
		}
		list, err := json.Marshal(batch)
		if err != nil {
			return fmt.Errorf("list files: %w", err)
		}
		err = ix.change(ctx, folder, func(t *writer) error {
			there, err := filesOf(context.Background(), t.tx, "AND id IN (SELECT value FROM json_each(?))", folder, list)
			if err != nil {
				return fmt.Errorf("look up files: %w", err)
			}
			for _, k := range there {
				if err := t.delete(k.id, k.chunks); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
