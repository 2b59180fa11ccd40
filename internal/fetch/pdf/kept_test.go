package pdf

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

// A PDF is read once: the next reader finds its text, and does not start PDFium.
func TestTextIsKept(t *testing.T) {
	dir := ownCache(t)
	raw := []byte(makePDF("Beans fix nitrogen.", "", "Peas like cool soil."))
	want := []string{"Beans fix nitrogen.", "", "Peas like cool soil."}
	read := func(starts bool) {
		t.Helper()
		r := New(Config{CacheDir: dir})
		defer func() { _ = r.Close() }()
		var pages []string
		about, err := r.Read(t.Context(), raw, func(n, of int, text string) error {
			if pages = append(pages, text); of != 3 || n != len(pages) {
				t.Errorf("page %d of %d", n, of)
			}
			return nil
		})
		if err != nil || about.Title != "Garden plan" || about.Author != "Ann Example" || !strings.HasPrefix(about.Published, "D:2024") {
			t.Errorf("%+v, err %v", about, err)
		}
		if diff := cmp.Diff(want, pages); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if started := r.pool != nil; started != starts {
			t.Errorf("PDFium started: %v, want %v", started, starts)
		}
	}
	read(true)
	read(false)

	r := New(Config{CacheDir: dir})
	path := r.keptPath(raw)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []string{"", "no text", string(whole[:len(whole)-5]), string(whole[:20]) + "x" + string(whole[21:])} {
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		read(true)
		read(false)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ignore := func(int, int, string) error { return nil }
	if _, err := r.Read(ctx, raw, ignore); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if _, err := r.Read(t.Context(), raw, func(int, int, string) error { return extract.ErrTooLarge }); !errors.Is(err, extract.ErrTooLarge) {
		t.Errorf("a caller that has enough: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Read(t.Context(), raw, ignore); !errors.Is(err, extract.ErrClosed) {
		t.Errorf("closed: %v", err)
	}

	if err := Forget(dir, time.Now().Add(-time.Hour)); err != nil || kept(path) == nil {
		t.Errorf("a new text was forgotten, err %v", err)
	}
	if err := Forget(dir, time.Now().Add(time.Hour)); err != nil || kept(path) != nil {
		t.Errorf("an old text stayed, err %v", err)
	}
	if err := Forget(t.TempDir(), time.Now()); err != nil {
		t.Error(err)
	}
}

// Kept text is bound to the version of PDFium that read it.
func TestEngineIsTheOneInUse(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if version, _, _ := strings.Cut(strings.TrimPrefix(engine, "go-pdfium "), ","); err != nil || !strings.Contains(string(mod), "github.com/klippa-app/go-pdfium "+version+"\n") {
		t.Errorf("engine is %q, which go.mod does not have; err %v", engine, err)
	}
}
