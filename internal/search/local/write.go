package local

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

// load returns the id of a folder, 0 if the index does not hold it, and what is
// known of its files.
func (ix *Index) load(ctx context.Context, folder string) (int64, map[string]known, error) {
	rows, err := ix.r.QueryContext(ctx, `SELECT f.id, d.id, d.name, d.size, d.mtime, d.hash, d.note
		FROM folders f LEFT JOIN docs d ON d.folder = f.id WHERE f.name = ?`, folder)
	if err != nil {
		return 0, nil, fmt.Errorf("load folder: %w", err)
	}
	defer rows.Close()
	var id int64
	files := map[string]known{}
	for rows.Next() {
		var doc, size, mtime sql.NullInt64
		var name, note sql.NullString
		var hash []byte
		if err := rows.Scan(&id, &doc, &name, &size, &mtime, &hash, &note); err != nil {
			return 0, nil, fmt.Errorf("load folder: %w", err)
		}
		if doc.Valid {
			files[name.String] = known{id: doc.Int64, size: size.Int64, mtime: mtime.Int64, hash: hash, note: note.String}
		}
	}
	if err := rows.Err(); err != nil {
		return 0, nil, fmt.Errorf("load folder: %w", err)
	}
	return id, files, nil
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
// number of its next chunk. Cancellation is left to fn.
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
	if err := t.exec("UPDATE folders SET next = ? WHERE id = ?", t.next, folder); err != nil {
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
	ctx    context.Context // looked at inside large files only
	tx     *sql.Tx
	folder int64
	next   int64 // number of the next chunk in the folder
	stmts  map[string]*sql.Stmt
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
func (ix *Index) writeBatch(ctx context.Context, folder int64, batch []outcome) error {
	return ix.change(ctx, folder, func(t *writer) error {
		for _, o := range batch {
			if err := t.file(o); err != nil {
				return err
			}
		}
		return nil
	})
}

// file writes one outcome. The row is looked up again, since another process may
// have written it after this update began.
func (t *writer) file(o outcome) error {
	var id, first, chunks, mtime int64
	var hash []byte
	s, err := t.stmt("SELECT id, first, chunks, hash, mtime FROM docs WHERE folder = ? AND name = ?")
	if err != nil {
		return err
	}
	err = s.QueryRow(t.folder, o.name).Scan(&id, &first, &chunks, &hash, &mtime)
	found := err == nil
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("look up file: %w", err)
	}
	switch {
	case found && !o.retry && bytes.Equal(hash, o.hash):
		return t.exec("UPDATE docs SET size = ?, mtime = ? WHERE id = ?", o.size, o.mtime, id)
	case o.same:
		return nil // the row it was the same as is gone; the next update sees to it
	case found && o.mtime > 0 && mtime > o.mtime && id != o.knownID:
		return nil // another process has since read a later state of the file
	case found:
		if err := t.delete(id, first, chunks, o.name); err != nil {
			return err
		}
	}
	if o.retry {
		return nil
	}
	return t.insert(o)
}

// ctxEvery is how many chunks of one file are written between two looks at the
// context: a fraction of a second's work.
const ctxEvery = 256

func (t *writer) insert(o outcome) error {
	pieces := chunk(o.doc.Text)
	title := fetch.Title(o.name, o.doc)
	first := t.folder<<32 + t.next
	s, err := t.stmt("INSERT INTO docs (folder, name, size, mtime, hash, title, host, note, first, chunks) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id")
	if err != nil {
		return err
	}
	var doc int64
	err = s.QueryRow(t.folder, o.name, o.size, o.mtime, o.hash, title, fetch.Host(o.doc), o.note, first, len(pieces)).Scan(&doc)
	if err != nil {
		return fmt.Errorf("insert file: %w", err)
	}
	for i, body := range pieces {
		if i%ctxEvery == ctxEvery-1 && t.ctx.Err() != nil {
			return t.ctx.Err()
		}
		id := first + int64(i)
		if err := t.exec("INSERT INTO chunks (id, doc, body) VALUES (?, ?, ?)", id, doc, body); err != nil {
			return err
		}
		for _, table := range ftsTables {
			if err := t.exec("INSERT INTO "+table+" (rowid, title, path, body) VALUES (?, ?, ?, ?)", id, title, pathWords(o.name), body); err != nil {
				return err
			}
		}
	}
	t.next += int64(len(pieces))
	return nil
}

// pathWords is what can be found of a file's name beside its title.
func pathWords(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

func (t *writer) delete(doc, first, chunks int64, name string) error {
	for _, table := range ftsTables {
		err := t.exec(`INSERT INTO `+table+` (`+table+`, rowid, title, path, body)
			SELECT 'delete', c.id, d.title, ?, c.body FROM chunks c JOIN docs d ON d.id = c.doc WHERE c.id BETWEEN ? AND ?`,
			pathWords(name), first, first+chunks-1)
		if err != nil {
			return err
		}
	}
	if err := t.exec("DELETE FROM chunks WHERE id BETWEEN ? AND ?", first, first+chunks-1); err != nil {
		return err
	}
	return t.exec("DELETE FROM docs WHERE id = ?", doc)
}

// removeDocs takes files out of the index, in batches. An id that is gone
// already, or was replaced by another process, is passed over.
func (ix *Index) removeDocs(ctx context.Context, folder int64, ids []int64) error {
	for batch := range slices.Chunk(ids, batchFiles) {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := ix.change(ctx, folder, func(t *writer) error {
			for _, id := range batch {
				if err := t.remove(id); err != nil {
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

func (t *writer) remove(doc int64) error {
	s, err := t.stmt("SELECT first, chunks, name FROM docs WHERE id = ?")
	if err != nil {
		return err
	}
	var first, chunks int64
	var name string
	err = s.QueryRow(doc).Scan(&first, &chunks, &name)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up file: %w", err)
	}
	return t.delete(doc, first, chunks, name)
}

// chunkRunes is the size of a chunk aimed at, in characters.
const chunkRunes = 1000

// chunk cuts text into pieces of about chunkRunes characters that begin and end
// at paragraphs, without overlap. Only a paragraph that is much longer is cut
// inside, at a line end, a sentence end or a space. A heading goes with what
// follows it.
func chunk(text string) []string {
	var pieces, current []string
	size := 0
	flush := func(keep int) {
		if body := current[:len(current)-keep]; len(body) > 0 {
			pieces = append(pieces, strings.Join(body, "\n\n"))
		}
		current = slices.Clone(current[len(current)-keep:])
		size = 0
		for _, p := range current {
			size += utf8.RuneCountInString(p)
		}
	}
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		for _, part := range cutLong(strings.Trim(paragraph, "\n")) {
			n := utf8.RuneCountInString(part)
			if size > 0 && size+n > chunkRunes {
				keep := 0
				if len(current) > 1 && isHeading(current[len(current)-1]) {
					keep = 1
				}
				flush(keep)
			}
			current = append(current, part)
			size += n
		}
	}
	flush(0)
	return pieces
}

// isHeading guesses: one short line that does not end like a sentence.
func isHeading(paragraph string) bool {
	last, _ := utf8.DecodeLastRuneInString(paragraph)
	return len(paragraph) <= 120 && !strings.Contains(paragraph, "\n") && !strings.ContainsRune(`.!?;,"'”’)`, last)
}

// cutLong cuts a paragraph of more than half as much again as a chunk. A blank
// paragraph gives nothing.
func cutLong(paragraph string) []string {
	var parts []string
	for len(prefixRunes(paragraph, chunkRunes*3/2)) < len(paragraph) {
		head := prefixRunes(paragraph, chunkRunes)
		end := cutPoint(head)
		parts = append(parts, strings.TrimRightFunc(paragraph[:end], unicode.IsSpace))
		paragraph = strings.TrimLeftFunc(paragraph[end:], unicode.IsSpace)
	}
	if strings.TrimSpace(paragraph) != "" {
		parts = append(parts, paragraph)
	}
	return slices.DeleteFunc(parts, func(p string) bool { return p == "" })
}

// cutPoint finds the best place to cut in the second half of head, or its end.
func cutPoint(head string) int {
	for _, sep := range []string{"\n", ". ", "? ", "! ", "; ", " "} {
		if i := strings.LastIndex(head, sep); i >= len(head)/2 {
			return i + len(sep)
		}
	}
	return len(head)
}

// prefixRunes is the first n characters of s.
func prefixRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
