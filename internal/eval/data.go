package eval

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Data is a folder of data sets. Nothing in it is ever written.
type Data struct {
	fsys fs.FS
	dir  string
}

// NewData is the data in a file system, which messages call dir.
func NewData(fsys fs.FS, dir string) Data { return Data{fsys, dir} }

// Dir is what the folder is called.
func (d Data) Dir() string { return d.dir }

// Has reports whether a file is there.
func (d Data) Has(name string) bool {
	if d.fsys == nil {
		return false
	}
	info, err := fs.Stat(d.fsys, name)
	return err == nil && info.Mode().IsRegular()
}

// File is what a report says about a data file.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Identify hashes the files of a suite, in order.
func (d Data) Identify(names []string) ([]File, error) {
	files := make([]File, 0, len(names))
	for _, name := range names {
		f, err := d.open(name)
		if err != nil {
			return nil, err
		}
		h := sha256.New()
		n, err := io.Copy(h, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, d.broken(name, err)
		}
		files = append(files, File{name, n, hex.EncodeToString(h.Sum(nil))})
	}
	return files, nil
}

// identify hashes all that a suite reads: its files, those of the optional ones that are
// there, and what is part of the program.
func (s Suite) identify(d Data) ([]File, error) {
	names := slices.Clone(s.Files)
	for _, name := range s.Optional {
		if d.Has(name) {
			names = append(names, name)
		}
	}
	files, err := d.Identify(names)
	if err != nil || s.Own == nil {
		return files, err
	}
	var inside []string
	err = fs.WalkDir(s.Own, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			inside = append(inside, name)
		}
		return err
	})
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInternal, "list the data in the program")
	}
	own, err := NewData(s.Own, "the program").Identify(inside)
	return append(files, own...), err
}

func (d Data) open(name string) (fs.File, error) {
	if d.fsys == nil {
		return nil, d.missing(name)
	}
	f, err := d.fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, d.missing(name)
	}
	return f, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "open data")
}

func (d Data) missing(name string) error {
	return &marchwarden.Error{
		Code: marchwarden.CodeNotFound, Message: fmt.Sprintf("the data file %s is not in %s", name, d.dir),
		Hint: "name the folder that holds it with --data; 'marchwarden-lab list' shows what is found",
	}
}

func (d Data) broken(name string, err error) error {
	return &marchwarden.Error{
		Code: marchwarden.CodeInvalid, Message: "read data file " + path.Join(d.dir, name), Err: err,
		Hint: "it is damaged, or of another form than the suite reads; get it anew",
	}
}

// maxLine bounds one row of a set.
const maxLine = 64 << 20

// Rows reads a set of one JSON object a line, named without its ".jsonl.gz". A set
// that is missing is CodeNotFound and names it; one without rows is an error too.
func Rows[T any](d Data, name string) ([]T, error) {
	name += ".jsonl.gz"
	var rows []T
	err := d.unzip(name, func(r io.Reader) error {
		sc := bufio.NewScanner(r)
		sc.Buffer(nil, maxLine)
		for n := 1; sc.Scan(); n++ {
			if len(sc.Bytes()) == 0 {
				continue
			}
			if sc.Err() != nil {
				break // what is left of a line is no line
			}
			var row T
			if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
			rows = append(rows, row)
		}
		if sc.Err() == nil && len(rows) == 0 {
			return errors.New("it has no rows")
		}
		return sc.Err()
	})
	return rows, err
}

// Member is one file of an archive.
type Member struct {
	Name string
	Data []byte
}

// maxMember bounds one file of an archive.
const maxMember = 256 << 20

// Tar reads those files of an archive, named with its ".tar.gz", that are wanted, in
// the order of the archive; nil wants all. One without any is an error.
func Tar(d Data, name string, wanted func(name string) bool) ([]Member, error) {
	var files []Member
	err := d.unzip(name, func(r io.Reader) error {
		tr := tar.NewReader(r)
		for {
			h, err := tr.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			if h.Typeflag != tar.TypeReg || wanted != nil && !wanted(h.Name) {
				continue
			}
			if h.Size > maxMember {
				return fmt.Errorf("%s has %d bytes, over the limit of %d", h.Name, h.Size, maxMember)
			}
			data, err := io.ReadAll(tr)
			if err != nil {
				return err
			}
			files = append(files, Member{h.Name, data})
		}
		if len(files) == 0 {
			return errors.New("it holds no file that is wanted")
		}
		return nil
	})
	return files, err
}

func (d Data) unzip(name string, read func(io.Reader) error) (err error) {
	f, err := d.open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	zr, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<16))
	if err != nil {
		return d.broken(name, err)
	}
	if err := read(zr); err != nil {
		return d.broken(name, err)
	}
	return nil
}

// Docs are the documents of a library in memory, text by name. Names have no slash.
type Docs map[string]string

// FS is the documents as a file system. It is safe for concurrent use while nothing changes
// them.
func (d Docs) FS() fs.FS { return docsFS{d} }

type docsFS struct{ docs Docs }

// Open opens a document, or the only folder.
func (f docsFS) Open(name string) (fs.File, error) {
	if name == "." {
		return &openDir{docFile{info: docInfo{name: ".", dir: true}}, f.entries()}, nil
	}
	text, ok := f.docs[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &docFile{docInfo{name: name, size: int64(len(text))}, strings.NewReader(text)}, nil
}

func (f docsFS) entries() (list []fs.DirEntry) {
	for _, name := range slices.Sorted(maps.Keys(f.docs)) {
		list = append(list, fs.FileInfoToDirEntry(docInfo{name: name, size: int64(len(f.docs[name]))}))
	}
	return list
}

// docFile is an open document.
type docFile struct {
	info docInfo
	*strings.Reader
}

func (f *docFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *docFile) Close() error               { return nil }

// openDir is the open folder.
type openDir struct {
	docFile
	left []fs.DirEntry
}

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: ".", Err: fs.ErrInvalid}
}

// ReadDir reads the next n entries; n ≤ 0 is all that are left.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		list := d.left
		d.left = nil
		return list, nil
	}
	if len(d.left) == 0 {
		return nil, io.EOF
	}
	list := d.left[:min(n, len(d.left))]
	d.left = d.left[len(list):]
	return list, nil
}

// docInfo describes a document, or the folder.
type docInfo struct {
	name string
	size int64
	dir  bool
}

func (i docInfo) Name() string       { return i.name }
func (i docInfo) Size() int64        { return i.size }
func (i docInfo) ModTime() time.Time { return time.Time{} }
func (i docInfo) IsDir() bool        { return i.dir }
func (i docInfo) Sys() any           { return nil }

func (i docInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
