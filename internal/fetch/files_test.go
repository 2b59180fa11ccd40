package fetch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/blobtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func newFiles(t *testing.T, folders ...*Folder) (*Files, *blobtest.Noted) {
	t.Helper()
	x := extract.New(extract.Config{})
	t.Cleanup(func() { _ = x.Close() })
	store := &blobtest.Noted{Store: blob.NewMem()}
	zone := time.FixedZone("far east", 9*3600) // pages are dated in UTC wherever they are read
	return NewFiles(store, x, func() time.Time { return noon.In(zone) }, folders...), store
}

func TestFetchStoresBytesAndText(t *testing.T) {
	const raw = "---\ntitle: Soils\nauthor: A. Digger\ndate: 2024-05-06\nurl: https://usu.edu/soils\n---\n\nMost soils are *alkaline*.\n"
	f := userFolder(t, "soils.md", raw)
	files, store := newFiles(t, EmbeddedFolder("embedded library", "embedded", fstest.MapFS{}), f)
	page, err := files.Fetch(t.Context(), f.Locator("soils.md"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := store.Get(t.Context(), page.Text)
	if err != nil || !strings.Contains(string(text), "alkaline") || strings.Contains(string(text), "title:") {
		t.Errorf("text %q, %v", text, err)
	}
	want := Page{
		Locator: f.Locator("soils.md"), Source: "file", Title: "Soils", Author: "A. Digger", Published: "2024-05-06", Origin: "usu.edu",
		Raw: blob.Of([]byte(raw)), Text: blob.Of(text), RawBytes: len(raw), TextBytes: len(text), MediaType: "text/markdown",
		Extractor: page.Extractor, Links: page.Links, FetchedAt: noon,
	}
	if diff := cmp.Diff(want, page, cmp.Comparer(func(a, b blob.Ref) bool { return a == b })); diff != "" || page.Extractor == "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	if zone := page.FetchedAt.Location(); zone != time.UTC {
		t.Errorf("dated in %v", zone)
	}
	if got, err := store.Get(t.Context(), page.Raw); err != nil || string(got) != raw {
		t.Errorf("raw bytes %q, %v", got, err)
	}
}

func TestFetchNonText(t *testing.T) {
	const raw = "\x00\x01\x02\x03 binary \x00\x00\x00"
	f := EmbeddedFolder("embedded library", "embedded", fstest.MapFS{"x.txt": {Data: []byte(raw)}})
	files, store := newFiles(t, f)
	page, err := files.Fetch(t.Context(), "embedded:x.txt")
	if err != nil || !page.NonText || page.Text.Valid() || page.TextBytes != 0 || page.Origin != f.Name {
		t.Errorf("page %+v, %v; want no text", page, err)
	}
	if got, err := store.Get(t.Context(), page.Raw); err != nil || string(got) != raw {
		t.Errorf("raw bytes %q, %v", got, err)
	}
}

// refusing is a file system that fails for some names.
type refusing map[string]error

func (r refusing) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: r[name]}
}

func (r refusing) Lstat(name string) (fs.FileInfo, error) {
	if r[name] != nil {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: r[name]}
	}
	return nil, fs.ErrNotExist
}

func (r refusing) ReadLink(string) (string, error) { return "", fs.ErrInvalid }

func TestFetchErrors(t *testing.T) {
	user := userFolder(t, "a.md", "text", "broken.docx", "PK\x03\x04 nothing", ".env", "KEY=1")
	if err := os.Symlink("/etc/hostname", filepath.Join(user.Name, "link.md")); err != nil {
		t.Fatal(err)
	}
	big, err := os.Create(user.Locator("big.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(big.Truncate(MaxFileBytes+1), big.Close()); err != nil {
		t.Fatal(err)
	}
	odd := EmbeddedFolder("odd", "odd", refusing{"locked.md": fs.ErrPermission, "failing.md": errors.New("device not ready")})
	files, store := newFiles(t, user, odd)
	for locator, want := range map[string]marchwarden.Code{
		user.Locator("missing.md"):  marchwarden.CodeNotFound,
		user.Locator("link.md"):     marchwarden.CodeDenied,
		user.Locator(".env"):        marchwarden.CodeDenied,
		user.Locator("broken.docx"): marchwarden.CodeUnavailable,
		user.Locator("big.txt"):     marchwarden.CodeUnavailable,
		"/etc/passwd":               marchwarden.CodeDenied,
		user.Name + "/../x.md":      marchwarden.CodeDenied,
		"https://example.org/":      marchwarden.CodeDenied,
		"":                          marchwarden.CodeDenied,
		"odd:locked.md":             marchwarden.CodeDenied,
		"odd:failing.md":            marchwarden.CodeUnavailable,
		"odd:gone.md":               marchwarden.CodeNotFound,
	} {
		_, err := files.Fetch(t.Context(), locator)
		if got := marchwarden.CodeOf(err); got != want {
			t.Errorf("Fetch(%q) gave %v (%v), want %v", locator, got, err, want)
		}
	}
	if refs := store.Refs(); len(refs) > 0 {
		t.Errorf("a failed fetch stored %v", refs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := files.Fetch(ctx, user.Locator("a.md")); !errors.Is(err, marchwarden.CodeCanceled) {
		t.Errorf("cancelled fetch gave %v, want %v", err, marchwarden.CodeCanceled)
	}
}

// slow is an extractor whose own time limit ends, not the caller's.
type slow struct{}

func (slow) Extract(context.Context, string, []byte) (extract.Document, error) {
	return extract.Document{}, context.DeadlineExceeded
}

func TestTimeLimitOfOneDocumentIsNoCancellation(t *testing.T) {
	f := userFolder(t, "a.md", "text")
	_, err := NewFiles(blob.NewMem(), slow{}, time.Now, f).Fetch(t.Context(), f.Locator("a.md"))
	if got := marchwarden.CodeOf(err); got != marchwarden.CodeUnavailable {
		t.Errorf("Fetch gave %v (%v), want %v", got, err, marchwarden.CodeUnavailable)
	}
}
