// Package local searches the library inside the program and the user's own
// folders. It owns the index: which files are in it, how their text is cut into
// chunks, and how documents are ranked by their chunks, which package inverted
// finds. The index is one SQLite file, or in memory, and holds nothing that cannot
// be made again from the folders.
//
// It does not read formats (package extract does), it stores no evidence
// (package fetch does, when a hit is fetched) and it never leaves the folders it
// was given.
package local

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"maps"
	"path/filepath"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

// Index is a searchable index of folders. It is safe for concurrent use, and on
// disk by several processes at once: readers never wait for writers, and writers
// take turns of a batch of files each.
type Index struct {
	path    string  // "" in memory
	w       *sql.DB // one connection; transactions begin by taking the write lock
	r       *sql.DB // read-only connections; the same as w in memory
	rebuilt string  // why Open started the index anew, or ""
	views   views
}

// Open opens the index at path, creating it (mode 0600) and its folder when
// missing; an empty path makes an index in memory. A file of another version or
// a damaged one is started anew, which every Report says. A database of another
// program is refused with CodeInvalid and left alone. The caller closes the index.
//
// Damage that is met later is CodeUnavailable: the next Open repairs it.
func Open(ctx context.Context, path string) (*Index, error) {
	ix := &Index{}
	var err error
	if path != "" {
		ix.path, err = filepath.Abs(path)
	}
	if err == nil {
		err = ix.open(ctx)
	}
	if err != nil {
		return nil, ix.coded(ctx, err, "open index %q", path)
	}
	return ix, nil
}

func (ix *Index) open(ctx context.Context) error {
	err := ix.connect(ctx)
	if ix.path == "" || err != nil && !damaged(err) {
		return err
	}
	if err == nil && !ix.Damaged() {
		return nil
	}
	return errors.Join(ix.Close(), ix.startAnew(ctx))
}

// Close closes the index. What uses it or its engines afterwards fails.
func (ix *Index) Close() error {
	var errs []error
	for _, db := range []*sql.DB{ix.r, ix.w} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// FolderInfo is what the index holds of one folder.
type FolderInfo struct {
	Path    string    `json:"path"`    // the folder's Name
	Files   int       `json:"files"`   // files with text
	Chunks  int       `json:"chunks"`  // pieces they were cut into
	Bytes   int64     `json:"bytes"`   // size of those files
	Updated time.Time `json:"updated"` // when something of it last changed in the index; zero if unknown
}

// Folders lists the folders in the index, in order of their paths.
func (ix *Index) Folders(ctx context.Context) ([]FolderInfo, error) {
	type row struct {
		FolderInfo
		updated string
	}
	list, err := rows(ctx, ix.r, func(r *row) []any { return []any{&r.Path, &r.updated, &r.Files, &r.Chunks, &r.Bytes} },
		`SELECT f.name, f.updated, count(d.id), coalesce(sum(d.chunks), 0), coalesce(sum(d.size), 0)
		FROM folders f LEFT JOIN docs d ON d.folder = f.id AND d.note = '' GROUP BY f.id ORDER BY f.name`)
	var infos []FolderInfo
	for _, r := range list {
		r.Updated, _ = time.Parse(time.RFC3339Nano, r.updated) // what is no time is unknown
		infos = append(infos, r.FolderInfo)
	}
	return infos, ix.coded(ctx, err, "list folders of the index")
}

// Remove takes a folder, by its Name, out of the index; the folder itself is not
// touched. CodeNotFound if the index does not hold it. Cancelled half-way, what
// is left stays in the index until Remove or Update is called again.
func (ix *Index) Remove(ctx context.Context, folder string) error {
	id, known, err := ix.load(ctx, folder)
	if err == nil && id == 0 {
		err = marchwarden.Errorf(marchwarden.CodeNotFound, "folder %q is not in the library index", folder)
	}
	if err == nil {
		err = ix.removeDocs(ctx, id, idsOf(known))
	}
	if err == nil {
		_, err = ix.w.ExecContext(ctx, "DELETE FROM folders WHERE id = ? AND NOT EXISTS (SELECT 1 FROM docs WHERE folder = ?)", id, id)
	}
	return ix.coded(ctx, err, "remove folder %q from the index", folder)
}

// Fingerprint is a hash of what the index holds of these folders: the name and
// content of every file, whatever the order or the history of updates.
func (ix *Index) Fingerprint(ctx context.Context, folders ...*fetch.Folder) (string, error) {
	sum := sha256.New()
	frame(sum, []byte("marchwarden library fingerprint, schema 5")) // to be raised when the same bytes give other texts
	for _, f := range byName(folders) {
		_, known, err := ix.load(ctx, f.Name)
		if err != nil {
			return "", ix.coded(ctx, err, "fingerprint the index")
		}
		frame(sum, []byte(f.Name))
		frame(sum, binary.BigEndian.AppendUint64(nil, uint64(len(known))))
		for _, name := range slices.Sorted(maps.Keys(known)) {
			frame(sum, []byte(name))
			frame(sum, known[name].hash)
		}
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// frame writes b behind its length, so that no two sequences of fields give the
// same bytes.
func frame(h hash.Hash, b []byte) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
	h.Write(b)
}
