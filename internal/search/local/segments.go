package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/inverted"
)

// views keeps what the last search has loaded, until it changes in the index.
type views struct {
	mu       sync.Mutex // guards the rest
	key      string     // of view
	view     *inverted.View
	segments map[int64]*inverted.Segment // of view, by id
}

// get returns a view of folders as tx sees them; states are theirs by id.
func (v *views) get(ctx context.Context, tx *sql.Tx, folders, states []int64) (*inverted.View, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := fmt.Sprint(folders, states)
	if key == v.key {
		return v.view, nil
	}
	var parts []inverted.Part
	segments := map[int64]*inverted.Segment{}
	for _, folder := range folders {
		rows, err := segmentRows(ctx, tx, folder, false)
		if err != nil {
			return nil, err
		}
		live, err := liveDocs(ctx, tx, folder<<32, 1<<32)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			seg := v.segments[r.id]
			if seg == nil {
				if seg, err = readSegment(ctx, tx, r.id); err != nil {
					return nil, err
				}
			}
			segments[r.id] = seg
			parts = append(parts, inverted.Part{Segment: seg, Base: r.base, Live: live})
		}
	}
	v.key, v.view, v.segments = key, inverted.NewView(parts), segments
	return v.view, nil
}

// segmentRow is a segment but for its bytes.
type segmentRow struct {
	id, base, span int64 // the base is an id as those of documents
	chunks, left   int64 // of which so many are of documents that are there
}

// segmentRows lists the segments of a folder in order of number. What is left of each
// is counted on demand, and is all of it otherwise.
func segmentRows(ctx context.Context, tx *sql.Tx, folder int64, count bool) ([]segmentRow, error) {
	left := "chunks"
	if count {
		left = "(SELECT coalesce(sum(d.chunks), 0) FROM docs d WHERE d.id BETWEEN s.folder << 32 | first AND (s.folder << 32 | first) + span - 1)"
	}
	return rows(ctx, tx, func(r *segmentRow) []any { return []any{&r.id, &r.base, &r.span, &r.chunks, &r.left} },
		"SELECT id, s.folder << 32 | first, span, chunks, "+left+" FROM segments s WHERE s.folder = ? ORDER BY first", folder)
}

// liveDocs lists the documents with chunks among span ids from base, in order.
func liveDocs(ctx context.Context, tx *sql.Tx, base, span int64) ([]int64, error) {
	return rows(ctx, tx, func(id *int64) []any { return []any{id} },
		"SELECT id FROM docs WHERE id BETWEEN ? AND ? AND chunks > 0 ORDER BY id", base, base+span-1)
}

func readSegment(ctx context.Context, tx *sql.Tx, id int64) (*inverted.Segment, error) {
	var data []byte
	if err := tx.QueryRowContext(ctx, "SELECT data FROM segments WHERE id = ?", id).Scan(&data); err != nil {
		return nil, err
	}
	return inverted.Parse(data)
}

// When segments are merged: as soon as mergeAt small ones stand at the end, so that a
// chunk is written again but a few times; large ones never are, since others wait for
// the transaction.
const (
	mergeAt     = 8
	smallChunks = 1 << 12
)

// tidy drops segments of which nothing is left, makes those anew of which less
// than half is, and merges small ones.
func (t *writer) tidy() {
	if t.err != nil {
		return
	}
	var rows []segmentRow
	rows, t.err = segmentRows(context.Background(), t.tx, t.folder, t.removed)
	for i := len(rows) - 1; i >= 0; i-- {
		if r := rows[i]; r.left*2 < r.chunks {
			rows = slices.Replace(rows, i, i+1, t.merge(rows[i:i+1])...)
		}
	}
	from := len(rows)
	for from > 0 && rows[from-1].chunks < smallChunks {
		from--
	}
	if len(rows)-from >= mergeAt {
		t.merge(rows[from:])
	}
}

// merge replaces neighbouring segments by one, or by none if nothing of them is
// left.
func (t *writer) merge(rows []segmentRow) []segmentRow {
	first, last := rows[0], rows[len(rows)-1]
	one := segmentRow{base: first.base, span: last.base + last.span - first.base}
	ctx := context.Background()
	live, err := liveDocs(ctx, t.tx, one.base, one.span)
	parts := make([]inverted.Part, 0, len(rows))
	for _, r := range rows {
		seg, failed := readSegment(ctx, t.tx, r.id)
		err = errors.Join(err, failed)
		parts = append(parts, inverted.Part{Segment: seg, Base: r.base, Live: live})
		t.exec("DELETE FROM segments WHERE id = ?", r.id)
	}
	if t.err = errors.Join(t.err, err); t.err != nil {
		return nil
	}
	data, chunks, err := inverted.Merge(parts)
	if t.err = err; err != nil || chunks == 0 {
		return nil
	}
	one.chunks, one.left = int64(chunks), int64(chunks)
	one.id = t.exec(insertSegment, t.folder, one.base&(1<<32-1), one.span, one.chunks, data)
	return []segmentRow{one}
}
