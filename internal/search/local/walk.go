package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

// Skipped counts what a walk left out without looking inside. A folder counts as
// one, whatever it holds.
type Skipped struct {
	Hidden  int `json:"hidden"`  // names that begin with a dot, .git among them
	Ignored int `json:"ignored"` // by a .gitignore or .marchwardenignore
	Links   int `json:"links"`   // symbolic links, and what else is no regular file
	Unknown int `json:"unknown"` // of a kind that has no text, by the name
	Large   int `json:"large"`   // larger than fetch.MaxFileBytes; each has a Note too
}

// Note is a file of which nothing can be found, and why.
type Note struct {
	Name   string `json:"name"` // within the folder
	Reason string `json:"reason"`
}

// entry is a file that should be in the index.
type entry struct {
	name  string
	size  int64
	mtime int64 // nanoseconds since 1970; 0 = unknown
}

// listing is what a walk found, in order of name.
type listing struct {
	entries []entry
	skipped Skipped
	notes   []Note
}

type walker struct {
	ctx     context.Context
	fsys    fs.FS
	ignores map[string]*ignoreSet // of the folders entered so far
	out     listing
}

// walk lists the files of a folder that should be in the index. Only a root that
// cannot be read is an error; every other trouble is a note.
func walk(ctx context.Context, fsys fs.FS) (listing, error) {
	w := &walker{ctx: ctx, fsys: fsys, ignores: map[string]*ignoreSet{}}
	if err := fs.WalkDir(fsys, ".", w.visit); err != nil {
		return listing{}, fmt.Errorf("walk folder: %w", err)
	}
	return w.out, nil
}

// visit is called for a folder before and, when it cannot be listed, after its
// entry was seen.
func (w *walker) visit(name string, d fs.DirEntry, err error) error {
	if ctxErr := w.ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	if err != nil {
		if name == "." {
			return err
		}
		w.note(name, reason(err))
		return nil
	}
	parent := w.ignores[path.Dir(name)]
	switch {
	case name == ".":
		w.ignores["."] = w.readIgnores(".", nil)
		return nil
	case !utf8.ValidString(name):
		w.note(strings.ToValidUTF8(name, "\ufffd"), "name is not valid UTF-8")
		return skip(d)
	case fetch.Hidden(path.Base(name)):
		w.out.skipped.Hidden++
		return skip(d)
	case parent.ignored(name, d.IsDir()):
		w.out.skipped.Ignored++
		return skip(d)
	case d.IsDir():
		w.ignores[name] = w.readIgnores(name, parent)
		return nil
	}
	w.file(name, d)
	return nil
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func (w *walker) file(name string, d fs.DirEntry) {
	switch {
	case !d.Type().IsRegular():
		w.out.skipped.Links++
		return
	case !extract.Known(name):
		w.out.skipped.Unknown++
		return
	}
	info, err := d.Info()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return // removed since the folder was listed
	case err != nil:
		w.note(name, reason(err))
		return
	case info.Size() > fetch.MaxFileBytes:
		w.out.skipped.Large++
		w.note(name, fmt.Sprintf("larger than %d MiB", fetch.MaxFileBytes>>20))
		return
	}
	e := entry{name: name, size: info.Size()}
	if !info.ModTime().IsZero() {
		e.mtime = info.ModTime().UnixNano()
	}
	w.out.entries = append(w.out.entries, e)
}

// maxIgnoreBytes bounds what is read of an ignore file; real ones are far smaller.
const maxIgnoreBytes = 1 << 20

// readIgnores returns the rules for what is in dir: its own files' and, where
// they say nothing, its parent's.
func (w *walker) readIgnores(dir string, parent *ignoreSet) *ignoreSet {
	set := &ignoreSet{parent: parent, dir: dir}
	for _, base := range ignoreFiles {
		name := path.Join(dir, base)
		info, err := fs.Lstat(w.fsys, name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // git does not follow links here either
		}
		text, err := readHead(w.fsys, name)
		if err != nil {
			w.note(name, reason(err))
			continue
		}
		set.rules = append(set.rules, parseIgnore(text)...)
	}
	if len(set.rules) == 0 {
		return parent
	}
	return set
}

func readHead(fsys fs.FS, name string) (string, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxIgnoreBytes))
	return string(text), err
}

func (w *walker) note(name, reason string) {
	w.out.notes = append(w.out.notes, Note{Name: name, Reason: reason})
}

// reason is the cause of a file error without the path, which a Note has.
func reason(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}
