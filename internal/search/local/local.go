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
	"fmt"
	"hash"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

// Index is a searchable index of folders. It is safe for concurrent use, and on
// disk by several processes at once: readers never wait for writers, and writers
// take turns of a batch of files each.
type Index struct {
	path string // "" in memory

	// handles guards w, r and rebuilt: held for reading while they are used, for
	// writing while they are replaced.
	handles sync.RWMutex
	w       *sql.DB // one connection; transactions begin by taking the write lock
	r       *sql.DB // read-only connections; the same as w in memory
	rebuilt string  // why the index was started anew since Open, or ""

	views views
}

// Open opens the index at path, creating it (mode 0600) and its folder when
// missing; an empty path makes an index in memory. A file of another version or
// a damaged one is started anew, which the next Report says. A database of another
// program is refused with CodeInvalid and left alone. The caller closes the index.
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
		return nil, coded(ctx, err, "open index %q", path)
	}
	return ix, nil
}

func (ix *Index) open(ctx context.Context) error {
	err := ix.connect(ctx)
	if ix.path == "" || err != nil && !damaged(err) {
		return err
	}
	if _, marked := os.Stat(ix.marker()); err == nil && marked != nil {
		return nil
	}
	return errors.Join(ix.disconnect(), ix.startAnew(ctx))
}

// rebuild starts an index in use anew. A search that is under way ends
// first; one that comes later sees the new, still empty index.
func (ix *Index) rebuild(ctx context.Context) error {
	ix.handles.Lock()
	defer ix.handles.Unlock()
	if err := os.WriteFile(ix.marker(), nil, 0o600); err != nil {
		return fmt.Errorf("mark index as damaged: %w", err)
	}
	if err := ix.disconnect(); err != nil {
		return fmt.Errorf("close damaged index: %w", err)
	}
	return ix.startAnew(ctx)
}

// Close closes the index. Nothing may use it or its engines afterwards.
func (ix *Index) Close() error {
	ix.handles.Lock()
	defer ix.handles.Unlock()
	return ix.disconnect()
}

// errClosed is what a closed index answers, or one whose repair failed.
var errClosed = errors.New("index is closed")

// use runs fn while the handles cannot be replaced.
func (ix *Index) use(fn func() error) error {
	ix.handles.RLock()
	defer ix.handles.RUnlock()
	if ix.r == nil {
		return errClosed
	}
	return fn()
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
	var infos []FolderInfo
	err := ix.use(func() error {
		list, err := rows(ctx, ix.r, func(r *row) []any { return []any{&r.Path, &r.updated, &r.Files, &r.Chunks, &r.Bytes} },
			`SELECT f.name, f.updated, count(d.id), coalesce(sum(d.chunks), 0), coalesce(sum(d.size), 0)
			FROM folders f LEFT JOIN docs d ON d.folder = f.id AND d.note = '' GROUP BY f.id ORDER BY f.name`)
		for _, r := range list {
			r.Updated, _ = time.Parse(time.RFC3339Nano, r.updated) // what is no time is unknown
			infos = append(infos, r.FolderInfo)
		}
		return err
	})
	return infos, coded(ctx, err, "list folders of the index")
}

// Remove takes a folder, by its Name, out of the index; the folder itself is not
// touched. CodeNotFound if the index does not hold it. Cancelled half-way, what
// is left stays in the index until Remove or Update is called again.
func (ix *Index) Remove(ctx context.Context, folder string) error {
	err := ix.use(func() error {
		id, known, err := ix.load(ctx, folder)
		if err != nil {
			return err
		}
		if id == 0 {
			return marchwarden.Errorf(marchwarden.CodeNotFound, "folder %q is not in the library index", folder)
		}
		if err := ix.removeDocs(ctx, id, idsOf(known)); err != nil {
			return err
		}
		_, err = ix.w.ExecContext(ctx, "DELETE FROM folders WHERE id = ? AND NOT EXISTS (SELECT 1 FROM docs WHERE folder = ?)", id, id)
		return err
	})
	return coded(ctx, err, "remove folder %q from the index", folder)
}

// Fingerprint is a hash of what the index holds of these folders: the name and
// content of every file, whatever the order or the history of updates.
func (ix *Index) Fingerprint(ctx context.Context, folders ...*fetch.Folder) (string, error) {
	sum := sha256.New()
	frame(sum, []byte("marchwarden library fingerprint, schema 5")) // to be raised when the same bytes give other texts
	err := ix.use(func() error {
		for _, f := range byName(folders) {
			_, known, err := ix.load(ctx, f.Name)
			if err != nil {
				return err
			}
			frame(sum, []byte(f.Name))
			frame(sum, binary.BigEndian.AppendUint64(nil, uint64(len(known))))
			for _, name := range slices.Sorted(maps.Keys(known)) {
				frame(sum, []byte(name))
				frame(sum, known[name].hash)
			}
		}
		return nil
	})
	if err != nil {
		return "", coded(ctx, err, "fingerprint the index")
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// frame writes b behind its length, so that no two sequences of fields give the
// same bytes.
func frame(h hash.Hash, b []byte) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
	h.Write(b)
}
