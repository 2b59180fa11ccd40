package fetch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

// placeIn fetches a document and returns the place of an excerpt in it.
func placeIn(t *testing.T, f Fetcher, store blob.Store, locator, excerpt string) string {
	t.Helper()
	page, err := f.Fetch(t.Context(), locator)
	if err != nil {
		t.Fatal(err)
	}
	text, err := store.Get(t.Context(), page.Text)
	if err != nil {
		t.Fatal(err)
	}
	at, err := page.Places(string(text), func() ([]byte, error) { return store.Get(t.Context(), page.Raw) })
	if err != nil {
		t.Fatal(err)
	}
	i := strings.Index(string(text), excerpt)
	if i < 0 {
		t.Fatalf("%q is not in %q", excerpt, text)
	}
	for _, outside := range []int{-1, len(text), len(text) + 1} {
		if got := at(outside); got != "" {
			t.Errorf("offset %d is at %q", outside, got)
		}
	}
	return at(i)
}

func TestPlacesOfFiles(t *testing.T) {
	const raw = "---\ntitle: Soils\n---\n\nMost soils\nare *alkaline*. Peas like\ncool ones.\n"
	for name, want := range map[string]string{
		"soils.md": "#L6", "a#L3.md": "#L6", "soils#L3": "#L6", "soils.txt": "#L6", "soils.html": "",
	} {
		f := userFolder(t, name, raw)
		files, store := newFiles(t, f)
		if got := placeIn(t, files, store, f.Locator(name), "Peas"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	embedded := EmbeddedFolder("embedded library", "embedded", fstest.MapFS{"soils.md": {Data: []byte(raw)}})
	files, store := newFiles(t, embedded)
	if got := placeIn(t, files, store, "embedded:soils.md", "Peas"); got != "#L6" {
		t.Errorf("embedded: %q", got)
	}
}

// paged reads everything as a PDF of these pages would be read.
type paged []int

func (p paged) Extract(_ context.Context, _ string, raw []byte) (extract.Document, error) {
	return extract.Document{Text: string(raw), MediaType: "application/pdf", Pages: p}, nil
}

func TestPlacesOfPages(t *testing.T) {
	// The first page and the third have no text.
	const text = "Beans do not\n\nneed much.\n\nPeas do."
	f := userFolder(t, "a.pdf", text)
	store := blob.NewMem()
	files := NewFiles(store, paged{0, 0, 12, 14, 26}, func() time.Time { return noon }, f)
	for excerpt, want := range map[string]string{
		"Beans": "#page=2", "not\n\nneed": "#page=2", "\n\nneed": "#page=4", "need": "#page=4", "much": "#page=4", "Peas": "#page=5",
	} {
		if got := placeIn(t, files, store, f.Locator("a.pdf"), excerpt); got != want {
			t.Errorf("%q: %q, want %q", excerpt, got, want)
		}
	}
}

func TestPlacesNeedBytes(t *testing.T) {
	lost := errors.New("lost")
	raw := func() ([]byte, error) { return nil, lost }
	page := Page{Source: "file", Locator: "a.md", MediaType: "text/markdown", Raw: blob.Of([]byte("Peas."))}
	if _, err := page.Places("Peas.", raw); !errors.Is(err, lost) {
		t.Errorf("error %v, want %v", err, lost)
	}
	for name, change := range map[string]func(*Page){
		"web":        func(p *Page) { p.Source, p.Locator = "web", "https://a.example/a.md" },
		"an address": func(p *Page) { p.Locator = "https://a.example/a.md" },
		"word":       func(p *Page) { p.MediaType = "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
		"a report":   func(p *Page) { p.Raw = blob.Ref{} },
		"a web pdf":  func(p *Page) { p.Source, p.Pages = "web", []int{0} },
		"pdf pages?": func(p *Page) { p.MediaType = "application/pdf" },
	} {
		other := page
		change(&other)
		at, err := other.Places("Peas.", raw)
		if err != nil || at(0) != "" {
			t.Errorf("%s: place %q, error %v", name, at(0), err)
		}
	}
}
