package local

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/inverted"
)

// views keeps what searches have loaded, until it changes in the index.
type views struct {
	// lock guards folders and view: a channel, so that a search
	// can be cancelled while it waits for another that loads the same.
	lock    chan struct{}
	folders map[int64]*folderView
	key     string // of view
	view    *inverted.View
}

// folderView is one folder in one state.
type folderView struct {
	state    int64
	segments map[int64]*inverted.Segment
	parts    []inverted.Part // in order of number
}

func newViews() views {
	return views{lock: make(chan struct{}, 1), folders: map[int64]*folderView{}}
}

// clear forgets everything. No search may be under way.
func (v *views) clear() {
	v.folders, v.key, v.view = map[int64]*folderView{}, "", nil
}

// folderState is a folder as a transaction sees it.
type folderState struct{ id, state int64 }

// get returns a view of folders as tx sees them.
func (v *views) get(ctx context.Context, tx *sql.Tx, folders []folderState) (*inverted.View, error) {
	select {
	case v.lock <- struct{}{}:
		defer func() { <-v.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var key strings.Builder
	for _, f := range folders {
		fmt.Fprintf(&key, "%d.%d ", f.id, f.state)
	}
	if key.String() == v.key {
		return v.view, nil
	}
	var parts []inverted.Part
	for _, f := range folders {
		had := v.folders[f.id]
		if had == nil || had.state != f.state {
			loaded, err := loadFolder(ctx, tx, f, had)
			if err != nil {
				return nil, err
			}
			// A search that began earlier may come later; it must not replace what is newer.
			if had == nil || had.state < f.state {
				v.folders[f.id] = loaded
			}
			had = loaded
		}
		parts = append(parts, had.parts...)
	}
	v.key, v.view = key.String(), inverted.NewView(parts)
	return v.view, nil
}

// loadFolder reads a folder's segments, but for those that an earlier view has.
func loadFolder(ctx context.Context, tx *sql.Tx, f folderState, had *folderView) (*folderView, error) {
	rows, err := segmentRows(ctx, tx, f.id)
	if err != nil {
		return nil, err
	}
	dead, err := goneDocs(ctx, tx, f.id<<32, 1<<32)
	if err != nil {
		return nil, err
	}
	loaded := &folderView{state: f.state, segments: map[int64]*inverted.Segment{}}
	for _, r := range rows {
		var seg *inverted.Segment
		if had != nil {
			seg = had.segments[r.id]
		}
		if seg == nil {
			if seg, err = readSegment(ctx, tx, r.id); err != nil {
				return nil, err
			}
		}
		loaded.segments[r.id] = seg
		loaded.parts = append(loaded.parts, r.part(seg, dead))
	}
	return loaded, nil
}

// segmentRow is a segment but for its bytes.
type segmentRow struct {
	id, base, span int64 // the base is an id as those of documents
	chunks, gone   int64
}

func (r segmentRow) part(seg *inverted.Segment, dead []int64) inverted.Part {
	from, _ := slices.BinarySearch(dead, r.base)
	to, _ := slices.BinarySearch(dead, r.base+r.span)
	return inverted.Part{Segment: seg, Base: r.base, Dead: dead[from:to]}
}

// segmentRows lists the segments of a folder in order of number.
func segmentRows(ctx context.Context, tx *sql.Tx, folder int64) ([]segmentRow, error) {
	rows, err := tx.QueryContext(ctx, `SELECT id, folder << 32 | first AS base, span, chunks,
		(SELECT coalesce(sum(g.chunks), 0) FROM gone g WHERE g.doc BETWEEN folder << 32 | first AND (folder << 32 | first) + span - 1)
		FROM segments WHERE folder = ? ORDER BY first`, folder)
	if err != nil {
		return nil, fmt.Errorf("list segments: %w", err)
	}
	defer rows.Close()
	var list []segmentRow
	for rows.Next() {
		var r segmentRow
		if err := rows.Scan(&r.id, &r.base, &r.span, &r.chunks, &r.gone); err != nil {
			return nil, fmt.Errorf("list segments: %w", err)
		}
		list = append(list, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list segments: %w", err)
	}
	return list, nil
}

// goneDocs lists the documents that are gone among span ids from base, in order.
func goneDocs(ctx context.Context, tx *sql.Tx, base, span int64) ([]int64, error) {
	rows, err := tx.QueryContext(ctx, "SELECT doc FROM gone WHERE doc BETWEEN ? AND ? ORDER BY doc", base, base+span-1)
	if err != nil {
		return nil, fmt.Errorf("list removed files: %w", err)
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("list removed files: %w", err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list removed files: %w", err)
	}
	return ids, nil
}

func readSegment(ctx context.Context, tx *sql.Tx, id int64) (*inverted.Segment, error) {
	var data []byte
	if err := tx.QueryRowContext(ctx, "SELECT data FROM segments WHERE id = ?", id).Scan(&data); err != nil {
		return nil, fmt.Errorf("read segment: %w", err)
	}
	seg, err := inverted.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("read segment %d: %w", id, err)
	}
	return seg, nil
}

// When segments are merged: as soon as there are mergeAt of about one size, with the
// smaller ones that came later, so that a chunk is written again but a few times;
// very large ones never are, since others wait for the transaction.
const (
	mergeAt    = 8
	tierChunks = 64      // the smallest tier; the next are mergeAt times as large each
	mostChunks = 1 << 17 // no segment grows beyond
)

// tidy drops segments of which nothing is left, makes those anew of which less
// than half is, and merges small ones.
func (t *writer) tidy() error {
	rows, err := segmentRows(context.Background(), t.tx, t.folder)
	if err != nil {
		return err
	}
	for i := 0; i < len(rows); i++ {
		if r := rows[i]; r.gone*2 > r.chunks {
			left, err := t.merge(rows[i : i+1])
			if err != nil {
				return err
			}
			rows = slices.Replace(rows, i, i+1, left...)
			i += len(left) - 1
		}
	}
	for tier := int64(tierChunks); tier < mostChunks; tier *= mergeAt {
		from, full, chunks := len(rows), 0, int64(0)
		for ; from > 0 && rows[from-1].chunks <= tier && chunks+rows[from-1].chunks <= mostChunks; from-- {
			chunks += rows[from-1].chunks
			if tier == tierChunks || rows[from-1].chunks > tier/mergeAt {
				full++
			}
		}
		if full < mergeAt {
			continue
		}
		left, err := t.merge(rows[from:])
		if err != nil {
			return err
		}
		rows = append(rows[:from], left...)
	}
	return nil
}

// merge replaces neighbouring segments by one, or by none if nothing of them is
// left.
func (t *writer) merge(rows []segmentRow) ([]segmentRow, error) {
	first, last := rows[0], rows[len(rows)-1]
	one := segmentRow{base: first.base, span: last.base + last.span - first.base}
	ctx := context.Background()
	dead, err := goneDocs(ctx, t.tx, one.base, one.span)
	if err != nil {
		return nil, err
	}
	parts := make([]inverted.Part, 0, len(rows))
	for _, r := range rows {
		one.chunks += r.chunks - r.gone
		seg, err := readSegment(ctx, t.tx, r.id)
		if err != nil {
			return nil, err
		}
		parts = append(parts, r.part(seg, dead))
		if err := t.exec("DELETE FROM segments WHERE id = ?", r.id); err != nil {
			return nil, err
		}
	}
	if err := t.exec("DELETE FROM gone WHERE doc BETWEEN ? AND ?", one.base, one.base+one.span-1); err != nil {
		return nil, err
	}
	if one.chunks == 0 {
		return nil, nil
	}
	data, err := inverted.Merge(parts)
	if err != nil {
		return nil, err
	}
	s, err := t.stmt("INSERT INTO segments (folder, first, span, chunks, data) VALUES (?, ?, ?, ?, ?) RETURNING id")
	if err != nil {
		return nil, err
	}
	err = s.QueryRow(t.folder, one.base&(1<<32-1), one.span, one.chunks, data).Scan(&one.id)
	if err != nil {
		return nil, fmt.Errorf("write segment: %w", err)
	}
	return []segmentRow{one}, nil
}
