package pdf

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

// scanned writes a PDF of which some pages are the pictures of others.
func scanned(t *testing.T, text string) string {
	t.Helper()
	r := New(Config{CacheDir: datatest.PDFCache(t)})
	defer r.Close()
	drawn, err := r.Picture(t.Context(), []byte(strings.ReplaceAll(makePDF(text), "/F1 12 Tf 14 TL", "/F1 48 Tf 60 TL")), Passage{Page: 1, Text: "not there"})
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(drawn))
	if err != nil {
		t.Fatal(err)
	}
	var pixels bytes.Buffer
	z := zlib.NewWriter(&pixels)
	size := picture.Bounds().Size()
	gray := image.NewGray(picture.Bounds())
	for y := range size.Y {
		for x := range size.X {
			gray.Set(x, y, color.GrayModel.Convert(picture.At(x, y)))
		}
	}
	if _, err := z.Write(gray.Pix); err != nil || z.Close() != nil {
		t.Fatal("the pixels do not compress")
	}
	pdf := makePDF("Typed first.", "", "Typed last.")
	body := fmt.Sprintf("<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream",
		size.X, size.Y, pixels.Len(), &pixels)
	draw := "q 612 0 0 792 0 0 cm /Im Do Q"
	at := strings.Index(pdf, "7 0 obj") // the page in the middle
	page := strings.Replace(pdf[at:], "/Font << /F1 3 0 R >>", "/XObject << /Im 20 0 R >>", 1)
	from := strings.Index(page, "8 0 obj")
	to := from + strings.Index(page[from:], "endobj")
	page = page[:from] + fmt.Sprintf("8 0 obj\n<< /Length %d >>\nstream\n%s\nendstream\n", len(draw), draw) + page[to:]
	pdf = pdf[:at] + page
	xref := strings.Index(pdf, "xref\n") // what is not where the table says is looked for
	return pdf[:xref] + "20 0 obj\n" + body + "\nendobj\n" + "trailer\n<< /Size 21 /Root 1 0 R >>\n%%EOF\n"
}

func read(t *testing.T, cfg Config, raw string) (extract.Document, error) {
	t.Helper()
	x := extract.New(extract.Config{PDF: New(cfg)})
	defer x.Close()
	return x.Extract(t.Context(), "a.pdf", []byte(raw))
}

// ownCache is a cache directory with the compiled module of all tests.
func ownCache(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(datatest.PDFCache(t))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, keptDir)); err != nil { // the file in the way
		t.Fatal(err)
	}
	return dir
}

// A page that is a picture is read by tesseract, in its place among the others, and once.
func TestScanned(t *testing.T) {
	path, err := exec.LookPath("tesseract")
	if err != nil {
		t.Skip("not tried: tesseract is not installed")
	}
	raw, cfg := scanned(t, "Ingrid Solberg\n1987"), Config{CacheDir: ownCache(t), OCR: path}
	for range 2 {
		doc, err := read(t, cfg, raw)
		if err != nil || len(doc.Pages) != 3 {
			t.Fatal(doc, err)
		}
		if middle := doc.Text[doc.Pages[1]:doc.Pages[2]]; strings.Join(strings.Fields(middle), " ") != "Ingrid Solberg 1987" {
			t.Errorf("the picture is read as %q", middle)
		}
		if !strings.HasPrefix(doc.Text, "Typed first.") || !strings.HasSuffix(doc.Text, "Typed last.") {
			t.Errorf("around it stands %q", doc.Text)
		}
		cfg.OCR = path // the second time the text is kept
	}
	kept, err := os.ReadDir(filepath.Join(cfg.CacheDir, keptDir))
	if err != nil || len(kept) != 1 {
		t.Errorf("kept are %v, %v", kept, err)
	}
}

// Programs in the place of tesseract that fail, hang, talk without end or say nonsense cost the page its text and no more.
func TestScannedBadly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	raw := scanned(t, "Anything.")
	for name, c := range map[string]struct {
		script, middle string
		kept           bool
	}{
		"fails":         {"cat >/dev/null; exit 1", "", false},
		"reads nothing": {"exit 0", "", true},
		"without end":   {"yes", "", false},
		"nonsense":      {`cat >/dev/null; printf 'A\377B\033[31mC'`, "A\ufffdB", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := ownCache(t)
			program := filepath.Join(dir, "tesseract")
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			doc, err := read(t, Config{CacheDir: dir, OCR: program}, raw)
			if err != nil || len(doc.Pages) != 3 {
				t.Fatal(doc, err)
			}
			if middle := doc.Text[doc.Pages[1]:doc.Pages[2]]; !strings.HasPrefix(middle, c.middle) || strings.ContainsRune(middle, '\033') || c.middle == "" && strings.TrimSpace(middle) != "" {
				t.Errorf("the picture is read as %q", middle)
			}
			if (doc.Unread != "") == c.kept || doc.Again == c.kept {
				t.Errorf("it says %q, again %v", doc.Unread, doc.Again)
			}
			if kept, _ := os.ReadDir(filepath.Join(dir, keptDir)); (len(kept) > 0) != c.kept {
				t.Errorf("kept: %v", kept)
			}
		})
	}
	t.Run("always fails", func(t *testing.T) {
		t.Parallel()
		dir := ownCache(t)
		program, began := filepath.Join(dir, "tesseract"), filepath.Join(dir, "began")
		if err := os.WriteFile(program, []byte("#!/bin/sh\necho >>"+began+"\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		doc, err := read(t, Config{CacheDir: dir, OCR: program}, makePDF("", "", "", "", ""))
		if times, _ := os.ReadFile(began); err != nil || !doc.NonText || !doc.Again || len(times) != maxFailed {
			t.Errorf("%+v, %v, after %d pages", doc, err, len(times))
		}
	})
	t.Run("hangs", func(t *testing.T) {
		t.Parallel()
		dir := ownCache(t)
		program, began := filepath.Join(dir, "tesseract"), filepath.Join(dir, "began")
		if err := os.WriteFile(program, []byte("#!/bin/sh\ntouch "+began+"\nexec sleep 600\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for _, err := os.Stat(began); err != nil; _, err = os.Stat(began) {
				time.Sleep(10 * time.Millisecond)
			}
			cancel()
		}()
		x := extract.New(extract.Config{PDF: New(Config{CacheDir: dir, OCR: program})})
		defer x.Close()
		if _, err := x.Extract(ctx, "a.pdf", []byte(raw)); !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
	})
}

// A PDF of pictures says why it has no text.
func TestUnread(t *testing.T) {
	doc, err := read(t, Config{CacheDir: datatest.PDFCache(t)}, makePDF(""))
	if err != nil || !doc.NonText || !strings.Contains(doc.Unread, "tesseract") {
		t.Errorf("%+v, %v", doc, err)
	}
	if doc, err = read(t, Config{CacheDir: datatest.PDFCache(t)}, makePDF("Typed.", "")); err != nil || doc.NonText || doc.Unread == "" || doc.Again {
		t.Errorf("in part: %+v, %v", doc, err)
	}
}
