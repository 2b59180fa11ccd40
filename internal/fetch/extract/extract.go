// Package extract turns raw bytes into plain text and the facts a document states about itself: title, author, date, address, language and links.
//
// It owns the choice of reader (by name, then by content), decoding, main-content extraction of HTML, and the form of the text: valid UTF-8, "\n" line ends,
// paragraphs apart by one blank line, no control characters. In text from Markdown, HTML, Word and tables one line is one unit (a paragraph, list item or row);
// plain text, source code and PDF pages keep the line ends they came with.
//
// It does not fetch, store, split into passages or judge. The same bytes under the same name give the same Document: nothing depends on a clock or on chance.
//
// Input is taken as hostile: sizes, nesting and time are bounded, PDF runs in a WebAssembly sandbox without files, and a panic in a parser is an error.
package extract

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Faults that Extract reports. Compare with errors.Is.
var (
	// ErrNonText says that a document has no text. Extract never returns it (that is a fact, in Document.NonText); Document.Err does.
	ErrNonText = errors.New("no text in this document")
	// ErrTooLarge says that the input or its text is over a limit of Config.
	ErrTooLarge = errors.New("document too large")
	// ErrDamaged says that the bytes are of a known format but cannot be read.
	ErrDamaged = errors.New("document damaged")
	// ErrEncrypted says that a password is needed.
	ErrEncrypted = errors.New("document encrypted")
	// ErrClosed says that Close was called before.
	ErrClosed = errors.New("extractor closed")
)

// maxLinks bounds Document.Links.
const maxLinks = 200

// Document is what extraction found in raw bytes. Every field but Text, MediaType and Extractor may be empty: nothing is guessed from the file name.
type Document struct {
	Text      string   // plain UTF-8 text, "\n" line ends, paragraphs separated by blank lines; never contains NUL; empty when NonText
	Title     string   // one line
	Author    string   // one line, several names separated by ", "
	Published string   // "2006-01-02" or "" when unknown; for PDF and Word the date of creation
	URL       string   // the http(s) address the document itself declares, or ""
	Topic     string   // front matter topic, or ""
	Language  string   // declared language, or ""
	Links     []string // absolute http(s) links, those of the main content first, each group in document order; deduplicated, at most 200
	MediaType string   // what the bytes were taken for, e.g. "text/markdown"
	Extractor string   // name/version of the extractor used, e.g. "markdown/1"
	NonText   bool     // no text can be had from these bytes
}

// Err returns ErrNonText when the document has no text, else nil: for callers that cannot go on without.
func (d Document) Err() error {
	if d.NonText {
		return ErrNonText
	}
	return nil
}

// Config holds the limits of an Extractor. The zero value is usable.
type Config struct {
	CacheDir   string        // where the compiled PDF module is kept between processes, created when missing; "" = memory only
	MaxBytes   int64         // largest text; the input may be four times as large; default 32 MiB
	PDFTimeout time.Duration // longest time for one PDF, waiting for a free worker included; default 60 s
	PDFMemory  int64         // largest memory of one PDF worker, on top of the file itself; default 256 MiB
	PDFWorkers int           // PDFs read at the same time; default 2
}

func (c Config) withDefaults() Config {
	if c.MaxBytes <= 0 {
		c.MaxBytes = 32 << 20
	}
	if c.PDFTimeout <= 0 {
		c.PDFTimeout = time.Minute
	}
	if c.PDFMemory <= 0 {
		c.PDFMemory = 256 << 20
	}
	if c.PDFWorkers <= 0 {
		c.PDFWorkers = 2
	}
	return c
}

// Extractor reads documents. It is safe for concurrent use. The PDF reader starts with the first PDF.
type Extractor struct {
	cfg Config
	pdf *pdfReader
}

// New returns an Extractor; it does no work and opens no file. The caller closes it.
func New(cfg Config) *Extractor {
	cfg = cfg.withDefaults()
	return &Extractor{cfg: cfg, pdf: newPDFReader(cfg)}
}

// Close frees the PDF reader and waits for PDFs in progress, which end with an error. PDFs given after it fail with ErrClosed; other formats still work.
// Close may be called more than once.
func (x *Extractor) Close() error { return x.pdf.close() }

// Extract reads raw. The name, a file name, path or URL, tells the format by its extension; content decides when the extension is unknown or plainly wrong,
// and for a URL an HTML page is an HTML page whatever its address ends in.
//
// Bytes that are no text give Document{NonText: true} and no error. Errors wrap ErrTooLarge, ErrDamaged, ErrEncrypted, ErrClosed or the context's error.
// Raw is not changed or kept. The time spent is bounded for PDFs by the context and Config.PDFTimeout, for other formats by the size limits.
func (x *Extractor) Extract(ctx context.Context, name string, raw []byte) (doc Document, err error) {
	if err := ctx.Err(); err != nil {
		return Document{}, fmt.Errorf("extract: %w", err)
	}
	if int64(len(raw)) > 4*x.cfg.MaxBytes {
		return Document{}, fmt.Errorf("extract: %w: input has %d bytes, limit %d", ErrTooLarge, len(raw), 4*x.cfg.MaxBytes)
	}
	// The parsers below read what strangers wrote; a bug in one of them must cost this document only.
	defer func() {
		if p := recover(); p != nil {
			doc, err = Document{}, fmt.Errorf("extract: %w: parser panic: %v", ErrDamaged, p)
		}
	}()
	f := sniff(name, raw)
	doc, err = x.read(ctx, f, name, raw)
	if err != nil {
		return Document{}, fmt.Errorf("extract %s: %w", f.mediaType(), err)
	}
	return finish(doc, x.cfg.MaxBytes)
}

func (x *Extractor) read(ctx context.Context, f format, name string, raw []byte) (Document, error) {
	switch f {
	case fmtPDF:
		return x.pdf.read(ctx, raw)
	case fmtDocx:
		return readDocx(raw, x.cfg.MaxBytes)
	case fmtMarkdown:
		return readMarkdown(decode(raw, f)), nil
	case fmtHTML:
		return readHTML(decode(raw, f), name), nil
	case fmtCSV, fmtTSV:
		return readTable(decode(raw, f), f, x.cfg.MaxBytes)
	case fmtJSON:
		return readJSON(decode(raw, f), x.cfg.MaxBytes)
	case fmtXML:
		return readXML(decode(raw, f)), nil
	case fmtText, fmtSource:
		text := decode(raw, f)
		return Document{Text: text, Links: linksInText(text), MediaType: f.mediaType(), Extractor: "text/1"}, nil
	default:
		return Document{NonText: true, MediaType: binaryType(raw), Extractor: "none/1"}, nil
	}
}

// finish brings every field into its promised form, whichever reader filled it.
func finish(doc Document, maxBytes int64) (Document, error) {
	doc.Text = normalise(doc.Text)
	if int64(len(doc.Text)) > maxBytes {
		return Document{}, fmt.Errorf("extract %s: %w: text has %d bytes, limit %d", doc.MediaType, ErrTooLarge, len(doc.Text), maxBytes)
	}
	if doc.NonText {
		doc.Text = ""
	}
	doc.Title, doc.Author, doc.Topic = oneLine(doc.Title, 500), oneLine(doc.Author, 300), oneLine(doc.Topic, 200)
	doc.Language = oneLine(doc.Language, 35)
	doc.Published = parseDate(doc.Published)
	doc.URL = absoluteURL(nil, doc.URL)
	doc.Links = dedupeLinks(doc.Links)
	return doc, nil
}

// oneLine folds all white space and drops what does not belong in a label; a longer text than limit runes is no label and is cut.
func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(normalise(s)), " ")
	if r := []rune(s); len(r) > limit {
		s = strings.TrimSpace(string(r[:limit]))
	}
	return s
}
