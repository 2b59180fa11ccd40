package answers

import (
	"bytes"
	"io"
	"io/fs"
	"slices"
	"time"
)

// library is documents in memory by name, all in one folder.
type library map[string][]byte

// put adds a document with a title.
func (l library) put(name, title, text string) {
	l[name] = []byte("---\ntitle: " + oneLine(title) + "\n---\n" + text + "\n")
}

// Open opens a document, or the folder as ".".
func (l library) Open(name string) (fs.File, error) {
	if name == "." {
		return &folder{docs: l}, nil
	}
	text, ok := l[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &document{info{name, int64(len(text)), 0o444}, bytes.NewReader(text)}, nil
}

// info describes a document or the folder.
type info struct {
	name string
	size int64
	mode fs.FileMode
}

func (i info) Name() string               { return i.name }
func (i info) Size() int64                { return i.size }
func (i info) Mode() fs.FileMode          { return i.mode }
func (i info) ModTime() time.Time         { return time.Time{} }
func (i info) IsDir() bool                { return i.mode.IsDir() }
func (i info) Sys() any                   { return nil }
func (i info) Type() fs.FileMode          { return i.mode.Type() }
func (i info) Info() (fs.FileInfo, error) { return i, nil }

// document is an open document.
type document struct {
	info
	*bytes.Reader
}

func (d *document) Size() int64                { return d.info.size }
func (d *document) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *document) Close() error               { return nil }

// folder is the open folder.
type folder struct {
	docs library
	read int // entries given out
}

func (f *folder) Stat() (fs.FileInfo, error) { return info{".", 0, fs.ModeDir | 0o555}, nil }
func (f *folder) Close() error               { return nil }

func (f *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: ".", Err: fs.ErrInvalid}
}

// ReadDir gives the next n documents by name, all that are left if n ≤ 0.
func (f *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	var all []fs.DirEntry
	for name, text := range f.docs {
		all = append(all, info{name, int64(len(text)), 0o444})
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return bytes.Compare([]byte(a.Name()), []byte(b.Name())) })
	left := all[min(f.read, len(all)):]
	if n > 0 && len(left) == 0 {
		return nil, io.EOF
	}
	if n > 0 {
		left = left[:min(n, len(left))]
	}
	f.read += len(left)
	return left, nil
}
