package pdf

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

const (
	keptDir = "pdf-text" // in the cache directory
	// engine names what reads a PDF. Text that another engine read is not used.
	engine = "go-pdfium v1.20.3, pages 2"
	// maxKept bounds the text of one PDF that is kept.
	maxKept = 64 << 20
)

// keptText is what PDFium read in a PDF. It lies in the cache directory under the hash of the PDF's bytes, so that each PDF is read once.
type keptText struct {
	Title, Author, Published string
	Pages                    []string
	size                     int
	failed                   bool // a page could not be recognised
}

// keptPath is where the text of a PDF is kept; "" without a cache directory.
func (p *Reader) keptPath(raw []byte) string {
	if p.cfg.CacheDir == "" {
		return ""
	}
	h := sha256.New()
	h.Write([]byte(engine + "\n"))
	if p.cfg.OCR != "" {
		h.Write([]byte("tesseract\n"))
	}
	h.Write(raw)
	return filepath.Join(p.cfg.CacheDir, keptDir, hex.EncodeToString(h.Sum(nil))+".gz")
}

// kept is the text at a path; nil when there is none, or none that is whole.
func kept(path string) *keptText {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	var text keptText
	packed, err := gzip.NewReader(file)
	if err != nil {
		return nil
	}
	err = gob.NewDecoder(io.LimitReader(packed, 2*maxKept)).Decode(&text)
	if _, end := io.Copy(io.Discard, packed); err != nil || end != nil || len(text.Pages) == 0 { // at the end is the checksum
		return nil
	}
	return &text
}

// replay gives the pages as PDFium gave them.
func (t *keptText) replay(ctx context.Context, page func(n, of int, text string) error) (extract.Document, error) {
	for i, text := range t.Pages {
		if err := errors.Join(ctx.Err(), page(i+1, len(t.Pages), text)); err != nil {
			return extract.Document{}, err
		}
	}
	return extract.Document{Title: t.Title, Author: t.Author, Published: t.Published}, nil
}

func (t *keptText) add(page string) {
	if t.size += len(page); t.size <= maxKept {
		t.Pages = append(t.Pages, page)
	}
}

// keep writes the text to a path. A cache that cannot be written costs time, not the document.
func (t *keptText) keep(path string, about extract.Document) {
	t.Title, t.Author, t.Published = about.Title, about.Author, about.Published
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil || t.failed || t.size > maxKept || path == "" {
		return
	}
	err = gob.NewEncoder(w).Encode(t)
	if errors.Join(err, w.Close(), os.MkdirAll(filepath.Dir(path), 0o700)) == nil {
		_ = durable.ReplaceFile(path, packed.Bytes()) // see above
	}
}

// Forget removes the texts in a cache directory that were kept before a time.
func Forget(cacheDir string, before time.Time) error {
	dir := filepath.Join(cacheDir, keptDir)
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, f := range files {
		if info, gone := f.Info(); gone == nil && info.ModTime().Before(before) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	return err
}
