package network

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/local"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// OpenLibrary opens what a research searches: the folders given here or by the
// setting, those added by 'library add', and the embedded library if asked for
// or if there is nothing else. The caller closes the folders.
func (h *Host) OpenLibrary(c *settings.Settings, given []string, embedded bool) ([]*fetch.Folder, error) {
	if len(given) == 0 {
		given = c.List(settings.Library)
	}
	var open []*fetch.Folder
	add := func(f *fetch.Folder) {
		if slices.ContainsFunc(open, func(o *fetch.Folder) bool { return o.Name == f.Name }) {
			_ = f.Close() // read-only, and open a second time
			return
		}
		open = append(open, f)
	}
	for _, path := range given {
		f, err := h.OpenFolder("--library", path)
		if err != nil {
			return nil, errors.Join(err, CloseFolders(open))
		}
		add(f)
	}
	kept, err := KeptFolders(c.FoldersPath())
	if err != nil {
		return nil, errors.Join(err, CloseFolders(open))
	}
	for _, path := range kept {
		f, err := fetch.OpenFolder(path)
		if err != nil {
			h.Say(fmt.Sprintf("%v; 'marchwarden library remove %s' forgets it", err, path))
			continue
		}
		add(f)
	}
	if len(open) == 0 && len(kept) > 0 && !embedded {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "none of the folders of the library can be opened",
			Hint: "use --embedded to search the embedded library"}
	}
	if embedded || len(open) == 0 {
		add(researcher.Embedded())
	}
	return open, nil
}

// OpenFolder opens a folder that the user named in field. A blank name is an
// error: it comes from a variable that is not set, and is not meant to be the
// working directory.
func (h *Host) OpenFolder(field, path string) (*fetch.Folder, error) {
	if strings.TrimSpace(path) == "" {
		return nil, settings.Invalid(field, "use . for the working directory", "must not be blank")
	}
	return fetch.OpenFolder(h.Source().Absolute(path, h.Dir))
}

func CloseFolders(fs []*fetch.Folder) error {
	var errs []error
	for _, f := range fs {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// folderSuffix ends the name of a file that names a folder. The folders that 'library add' added
// are kept apart from the index, which can be thrown away and made again. Each is a file of its
// own, so that several processes can add and remove at once without a lock:
//
//	library/folders/<hash of the path>.path    holds the absolute path
const folderSuffix = ".path"

// FolderFile is the file that names a folder.
func FolderFile(dir, path string) string {
	return filepath.Join(dir, fmt.Sprintf("%x%s", sha256.Sum256([]byte("marchwarden/folder/v1\x00"+path)), folderSuffix))
}

// KeepFolder remembers a folder by its absolute path. Doing it twice is harmless.
func KeepFolder(dir, path string) error {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		var root *os.Root
		if root, err = os.OpenRoot(dir); err == nil {
			defer root.Close()
			err = durable.Replace(root, filepath.Base(FolderFile(dir, path)), ".new-"+rand.Text(), []byte(path))
		}
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "remember folder %q", path)
}

// ForgetFolder is the inverse of KeepFolder; a folder that is not kept is
// CodeNotFound.
func ForgetFolder(dir, path string) error {
	err := os.Remove(FolderFile(dir, path))
	if errors.Is(err, fs.ErrNotExist) {
		return &marchwarden.Error{Code: marchwarden.CodeNotFound, Message: fmt.Sprintf("folder %q is not in the library", path),
			Hint: "run 'marchwarden library list' for the folders there are"}
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "forget folder %q", path)
}

// KeptFolders lists what is kept, in order of path.
func KeptFolders(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var paths []string
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		if !strings.HasSuffix(file, folderSuffix) {
			continue
		}
		data, unread := os.ReadFile(file)
		switch path := string(data); {
		case errors.Is(unread, fs.ErrNotExist): // another process removed it just now
		case unread != nil:
			err = unread
		case FolderFile(dir, path) == file:
			paths = append(paths, path)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "list the folders of the library")
	}
	slices.Sort(paths)
	return paths, nil
}

// AddFolder indexes a folder and remembers it. When ctx ends on the way, what was indexed stays and
// the next ask continues from there; a folder that cannot be indexed, or has no document, is not
// remembered, and an attempt that fails leaves nothing in a home that had no index.
func AddFolder(ctx context.Context, h *Host, c *settings.Settings, f *fetch.Folder, progress marchwarden.Sink) (r local.Report, err error) {
	x := h.Extractor(c)
	defer x.Close()
	_, missing := os.Stat(c.IndexPath())
	err = WithIndex(ctx, c, func(ix *local.Index) error {
		var err error
		r, err = ix.Update(ctx, f, local.UpdateOptions{Extract: x, Now: h.Now, Progress: progress})
		return err
	})
	if err == nil && r.Added+r.Changed+r.Unchanged+r.Removed+len(r.Notes) == 0 {
		err = settings.Invalid("DIR", extract.Formats+" can be read", fmt.Sprintf("there is no document in %q", f.Name))
	}
	if err == nil || ctx.Err() != nil {
		return r, errors.Join(err, KeepFolder(c.FoldersPath(), f.Name))
	}
	if errors.Is(missing, fs.ErrNotExist) {
		made, _ := filepath.Glob(c.IndexPath() + "*")
		for _, path := range append(made, filepath.Dir(c.IndexPath()), c.Home()) {
			_ = os.Remove(path) // a folder only if nothing is in it
		}
	}
	return r, err
}

// RemoveFolder forgets a folder, and what the index holds of it.
func RemoveFolder(ctx context.Context, c *settings.Settings, path string) error {
	if err := ForgetFolder(c.FoldersPath(), path); err != nil {
		return err
	}
	if err := WithIndex(ctx, c, func(ix *local.Index) error { return ix.Remove(ctx, path) }); !errors.Is(err, marchwarden.CodeNotFound) {
		return err
	}
	return nil
}

// The bounds of the folder of the home that holds documents which were handed over.
const (
	maxDocuments     = 1000
	maxDocumentBytes = 1 << 30
	maxDocumentName  = 200
)

// KeepDocument puts a document into a folder of the home, in the place of one of the same name.
func KeepDocument(h *Host, c *settings.Settings, name string, data []byte) error {
	if err := documentName(name); err != nil {
		return err
	}
	err := os.MkdirAll(c.DocumentsPath(), 0o700)
	var root *os.Root
	if err == nil {
		root, err = os.OpenRoot(c.DocumentsPath())
	}
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "open the folder of documents")
	}
	defer root.Close()
	there, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "list the folder of documents")
	}
	there = slices.DeleteFunc(there, func(e fs.DirEntry) bool { return e.Name() == name })
	size := int64(len(data))
	for _, e := range there {
		if info, err := e.Info(); err == nil { // one that is gone takes no room
			size += info.Size()
		}
	}
	if len(there) >= maxDocuments || size > maxDocumentBytes {
		return marchwarden.Errorf(marchwarden.CodeInvalid, "there is room for %d documents of %s in all; add their folder instead", maxDocuments, term.Bytes(maxDocumentBytes))
	}
	err = durable.Replace(root, name, ".new-"+h.NewID().String(), data)
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "keep the document")
}

// documentName refuses what is no plain name of a file, here or on another system, and names of
// files that are not read.
func documentName(name string) error {
	strange := func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(`/\<>:"|?*`, r) }
	if name == "" || len(name) > maxDocumentName || !utf8.ValidString(name) || strings.ContainsFunc(name, strange) || strings.Trim(name, ". ") != name || !filepath.IsLocal(name) {
		return marchwarden.Errorf(marchwarden.CodeInvalid, "this is no name for a document")
	}
	if !extract.Known(name) {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: "files of this kind are not read", Hint: extract.Formats + " are"}
	}
	return nil
}

// WithIndex opens the index of the user's folders for one piece of work.
func WithIndex(ctx context.Context, c *settings.Settings, work func(*local.Index) error) error {
	if err := os.MkdirAll(c.Home(), 0o700); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make the home folder")
	}
	ix, err := local.Open(ctx, c.IndexPath())
	if err != nil {
		return err
	}
	return errors.Join(work(ix), ix.Close())
}

// FolderInfo is a row of 'library list', and its form in JSON. Fields are only
// ever added.
type FolderInfo struct {
	Path    string    `json:"path"`
	Files   int       `json:"files"`
	Bytes   int64     `json:"bytes"`
	Updated time.Time `json:"updated,omitzero"`
	Missing bool      `json:"missing,omitempty"`
}

// FolderInfos joins what was added with what the index holds of it.
func FolderInfos(ctx context.Context, c *settings.Settings) ([]FolderInfo, error) {
	kept, err := KeptFolders(c.FoldersPath())
	if err != nil {
		return nil, err
	}
	rows := make([]FolderInfo, len(kept))
	infos := map[string]local.FolderInfo{}
	if len(kept) > 0 {
		err = WithIndex(ctx, c, func(ix *local.Index) error {
			list, err := ix.Folders(ctx)
			for _, f := range list {
				infos[f.Path] = f
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for i, path := range kept {
		info := infos[path]
		stat, err := os.Stat(path)
		rows[i] = FolderInfo{Path: path, Files: info.Files, Bytes: info.Bytes, Updated: info.Updated, Missing: err != nil || !stat.IsDir()}
	}
	return rows, nil
}

// SearchLibrary brings the index up to date and searches it. Without folders of the
// user's the index is in memory, as it is for 'ask'.
func (h *Host) SearchLibrary(ctx context.Context, c *settings.Settings, library []*fetch.Folder, q search.Query) (hits []search.Hit, err error) {
	x := h.Extractor(c)
	defer x.Close()
	path := ""
	if slices.ContainsFunc(library, func(f *fetch.Folder) bool { return !f.Embedded() }) {
		path = c.IndexPath()
	}
	ix, err := local.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ix.Close()) }()
	for _, f := range library {
		r, err := ix.Update(ctx, f, local.UpdateOptions{Extract: x, Now: h.Now})
		if err != nil {
			return nil, err
		}
		if len(r.Notes) > 0 {
			h.Say(fmt.Sprintf("%s of %s could not be read; 'marchwarden library add %s' tells which", term.Plural(len(r.Notes), "file"), f.Name, f.Name))
		}
	}
	hits, err = ix.Engine(h.OpenVectors(c).Embedder, library...).Search(ctx, q)
	return append([]search.Hit{}, hits...), err
}
