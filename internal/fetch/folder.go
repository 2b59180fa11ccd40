package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

// MaxFileBytes is the largest file that is read or indexed (32 MiB).
const MaxFileBytes = 32 << 20

// Folder is one body of local documents: a directory of the user's, or a file
// system inside the program. Inside it a document has a slash-separated name
// ("soils/utah.md"); outside it has a locator. A Folder is safe for concurrent
// use until it is closed; its fields are for reading only.
type Folder struct {
	// Name is what people and the index call it: the absolute path of a user's
	// folder, or a name such as "embedded library".
	Name string
	// FS holds the documents. That of a user's folder cannot be led outside it,
	// not by "..", nor by a symbolic link.
	FS fs.FS

	scheme string   // prefix of the locators of an embedded folder; "" for a user's
	root   *os.Root // nil for an embedded folder
}

// OpenFolder opens a folder of the user's; the caller closes it. A path that is
// not an existing, readable directory gives a CodeInvalid error that names it.
func OpenFolder(path string) (*Folder, error) {
	if path == "" {
		return nil, invalidFolder(path, "must name a folder", nil)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, invalidFolder(path, "cannot be made absolute", err)
	}
	info, err := os.Stat(abs)
	var root *os.Root
	if err == nil && info.IsDir() {
		root, err = os.OpenRoot(abs)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, invalidFolder(abs, "does not exist", nil)
	case err != nil:
		return nil, invalidFolder(abs, "cannot be opened", err)
	case root == nil:
		return nil, invalidFolder(abs, "is not a folder", nil)
	}
	return &Folder{Name: abs, FS: root.FS(), root: root}, nil
}

func invalidFolder(path, what string, cause error) error {
	return &marchwarden.Error{
		Code: marchwarden.CodeInvalid, Field: "library", Message: fmt.Sprintf("folder %q %s", path, what),
		Hint: "give the path of an existing folder of documents", Err: cause,
	}
}

// EmbeddedFolder makes a folder of a file system inside the program. Its
// locators are scheme, a colon and the document's name: "embedded:soils.md".
func EmbeddedFolder(name, scheme string, fsys fs.FS) *Folder {
	return &Folder{Name: name, FS: fsys, scheme: scheme}
}

// Close frees the directory of a user's folder. Closing twice is harmless.
func (f *Folder) Close() error {
	if f.root == nil {
		return nil
	}
	return f.root.Close()
}

// Embedded reports whether the folder is part of the program.
func (f *Folder) Embedded() bool { return f.root == nil }

// Locator is where the document of that name is, as a citation says it: an
// absolute path, or "embedded:soils.md".
func (f *Folder) Locator(name string) string {
	if f.Embedded() {
		return f.scheme + ":" + name
	}
	return filepath.Join(f.Name, filepath.FromSlash(name))
}

// Resolve is the inverse of Locator. It is exact, so that a document has one
// locator only: a path that is not written the way Locator writes it, that lies
// outside the folder, or that has a hidden part below it is not ok. Nothing is
// opened, so the document need not exist.
func (f *Folder) Resolve(locator string) (name string, ok bool) {
	if f.Embedded() {
		name, ok = strings.CutPrefix(locator, f.scheme+":")
	} else {
		rel, err := filepath.Rel(f.Name, locator)
		name, ok = filepath.ToSlash(rel), err == nil
	}
	if !ok || !fs.ValidPath(name) || name == "." || f.Locator(name) != locator || Hidden(name) {
		return "", false
	}
	return name, true
}

// Hidden reports whether some part of a slash-separated name begins with a dot.
// Hidden files often hold settings and secrets, never documents: they are
// neither indexed nor read.
func Hidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.Contains(name, "/.")
}

// Why Read refuses a file that is there.
var (
	errTooLarge   = fmt.Errorf("file is larger than %d MiB", MaxFileBytes>>20)
	errNotRegular = errors.New("not a regular file, or reached through a symbolic link")
)

// Read returns the bytes of one document. It refuses what is not a regular
// file, so that a pipe or a device cannot block it, every symbolic link on the
// way, as indexing does, and what is larger than MaxFileBytes. Other errors wrap
// those of package fs.
func (f *Folder) Read(name string) ([]byte, error) {
	if err := f.checkRegular(name); err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	defer file.Close()
	var raw bytes.Buffer
	if info, err := file.Stat(); err == nil { // room for all of it at once; the size may still be another by the time it is read
		raw.Grow(int(min(info.Size(), MaxFileBytes)) + bytes.MinRead)
	}
	_, err = raw.ReadFrom(io.LimitReader(file, MaxFileBytes+1))
	if err == nil && raw.Len() > MaxFileBytes {
		err = errTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	return raw.Bytes(), nil
}

// checkRegular looks at every part of name without following links.
func (f *Folder) checkRegular(name string) error {
	for i, r := range name + "/" {
		if r != '/' {
			continue
		}
		info, err := fs.Lstat(f.FS, name[:i])
		if err != nil {
			return err
		}
		if last := i == len(name); last && !info.Mode().IsRegular() || !last && !info.IsDir() {
			return errNotRegular
		}
	}
	return nil
}

// Host is the host of the address a document declares for itself, in lower
// case, or "".
func Host(doc extract.Document) string {
	u, err := url.Parse(doc.URL)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// Origin says who is behind a document of the folder: the host it declares, or
// else the library itself when it is embedded, or the file itself when it is the
// user's, since nothing is known about who wrote it.
func (f *Folder) Origin(name string, doc extract.Document) string {
	switch host := Host(doc); {
	case host != "":
		return host
	case f.Embedded():
		return f.Name
	default:
		return f.Locator(name)
	}
}

// Title is what to call a document: its own title, else its first line when that
// is a Markdown heading, else its file name. It holds no control characters.
func Title(name string, doc extract.Document) string {
	first, _, _ := strings.Cut(strings.TrimLeft(doc.Text, "\n"), "\n")
	heading := strings.TrimSpace(strings.TrimLeft(first, "#"))
	switch {
	case doc.Title != "":
		return doc.Title
	case strings.HasPrefix(first, "#") && heading != "":
		return Printable(heading)
	default:
		return Printable(path.Base(name))
	}
}

// Printable drops what a file name or heading must not send to a terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
}
