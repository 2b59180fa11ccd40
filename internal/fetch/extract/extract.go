// Package extract turns raw bytes into plain text and the facts a document states about itself: title, author, date, address and links.
//
// It owns the choice of reader (by name, then by content), decoding, main-content extraction of HTML, and the form of the text: valid UTF-8, "\n" line ends,
// paragraphs apart by one blank line, no control characters, nothing that a reader does not see. In text from Markdown, HTML, Word and tables one line is one unit (a paragraph, list item or row);
// of Markdown the signs of headings and items stay. Plain text, source code and PDF pages keep the line ends they came with.
//
// It does not fetch, store, split into passages or judge. The same bytes under the same name give the same Document: nothing depends on a clock or on chance.
//
// Input is taken as hostile: sizes, nesting and time are bounded, PDF runs in a WebAssembly sandbox without files, and a panic in a parser is an error.
package extract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// Faults that Extract reports. Compare with errors.Is.
var (
	// ErrTooLarge says that the input or its text is over a limit of Config.
	ErrTooLarge = errors.New("document too large")
	// ErrDamaged says that the bytes are of a known format but cannot be read.
	ErrDamaged = errors.New("document damaged")
	// ErrEncrypted says that a password is needed.
	ErrEncrypted = errors.New("document encrypted")
	// ErrClosed says that Close was called before.
	ErrClosed = errors.New("extractor closed")
)

// Document is what extraction found in raw bytes. Every field but Text, MediaType and Extractor may be empty: nothing is guessed from the file name.
type Document struct {
	Text      string   // plain UTF-8 text, "\n" line ends, paragraphs separated by blank lines; never contains NUL; empty when NonText
	Title     string   // one line
	Author    string   // one line, several names separated by ", "
	Published string   // "2006-01-02" or "" when unknown; for PDF and Word the date of creation
	URL       string   // the http(s) address the document itself declares, or ""
	Links     []string // absolute http(s) links, those of the main content first, each group in document order; deduplicated, at most 200
	MediaType string   // what the bytes were taken for, e.g. "text/markdown"
	Extractor string   // name/version of the extractor used, e.g. "markdown/3"
	NonText   bool     // no text can be had from these bytes
	Unread    string   // why pages of a PDF have no text, for people
	Again     bool     // that reading the same bytes again may give more
	Pages     []int    // of a PDF of at most 10,000 pages: where in Text each page begins; a page without text begins where the one before it ends
}

// Config holds the limits of an Extractor. The zero value is usable.
type Config struct {
	MaxBytes int64 // largest text; the input may be four times as large; default 32 MiB
	PDF      PDF   // reads PDFs; without it they are files without text
}

// maxBytes is the default of Config.MaxBytes.
const maxBytes = 32 << 20

// PDF reads the pages of PDFs; package pdf has the one there is. It is safe for concurrent use.
type PDF interface {
	// Read gives the text of each page, counted from one, to page, whose error ends it, and returns what the document says about itself: title, author and date
	// of creation. Errors are page's, or wrap ErrDamaged, ErrEncrypted, ErrClosed or the context's error.
	Read(ctx context.Context, raw []byte, page func(n, of int, text string) error) (about Document, err error)
	// Close waits for PDFs in progress, which end with an error.
	Close() error
}

// Extractor reads documents. It is safe for concurrent use.
type Extractor struct{ cfg Config }

// New returns an Extractor; it does no work and opens no file. The caller closes it.
func New(cfg Config) *Extractor {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, maxBytes)
	return &Extractor{cfg}
}

// Close closes the reader of PDFs. PDFs given after it fail with ErrClosed; other formats still work. Close may be called more than once.
func (x *Extractor) Close() error {
	if x.cfg.PDF == nil {
		return nil
	}
	return x.cfg.PDF.Close()
}

// Scans reports whether pages that are pictures are read.
func (x *Extractor) Scans() bool {
	p, ok := x.cfg.PDF.(interface{ Scans() bool })
	return ok && p.Scans()
}

// Extract is ExtractAs for bytes that came without a Content-Type: files.
func (x *Extractor) Extract(ctx context.Context, name string, raw []byte) (Document, error) {
	return x.ExtractAs(ctx, name, "", raw)
}

// ExtractAs reads raw. The name, a file name, path or URL, tells the format by its extension; content decides when the extension is unknown or plainly wrong,
// and for a URL an HTML page is an HTML page whatever its address ends in.
//
// The contentType, as in the HTTP header or "", is the weakest witness: its media type counts when neither name nor content tells, its charset when the bytes are
// not UTF-8 and carry no byte order mark. A false, damaged or unknown one does no harm. The same bytes, name and contentType give the same Document.
//
// Bytes that are no text give Document{NonText: true} and no error. Errors wrap ErrTooLarge, ErrDamaged, ErrEncrypted, ErrClosed or the context's error.
// Raw is not changed, here or later, since the text may lie in its memory, and is not read any more unless the context ends first: then what reads it comes to its end by itself, soon, by the size limits. The time spent is bounded
// by the context, and for PDFs by their reader.
func (x *Extractor) ExtractAs(ctx context.Context, name, contentType string, raw []byte) (Document, error) {
	if err := ctx.Err(); err != nil {
		return Document{}, fmt.Errorf("extract: %w", err)
	}
	if int64(len(raw)) > 4*x.cfg.MaxBytes {
		return Document{}, fmt.Errorf("extract: %w: input has %d bytes, limit %d", ErrTooLarge, len(raw), 4*x.cfg.MaxBytes)
	}
	type reading struct {
		doc Document
		err error
	}
	done := make(chan reading, 1)
	go func() {
		doc, err := x.read(ctx, name, contentType, raw)
		done <- reading{doc, err}
	}()
	select {
	case r := <-done:
		return r.doc, r.err
	case <-ctx.Done():
		return Document{}, fmt.Errorf("extract: %w", ctx.Err())
	}
}

// read is ExtractAs to the end, whatever the context says but for PDFs.
func (x *Extractor) read(ctx context.Context, name, contentType string, raw []byte) (doc Document, err error) {
	// The parsers below read untrusted bytes; a bug in one of them must cost this document only.
	defer func() {
		if p := recover(); p != nil {
			doc, err = Document{}, fmt.Errorf("extract: %w: parser panic: %v", ErrDamaged, p)
		}
	}()
	said, charset := parseContentType(contentType)
	s := source{format: sniff(name, said, raw), name: name, charset: charset, raw: raw, maxBytes: x.cfg.MaxBytes}
	if s.format == fmtPDF && x.cfg.PDF != nil {
		doc, err = x.pages(ctx, raw)
	} else {
		doc, err = s.read()
	}
	if err != nil {
		return Document{}, fmt.Errorf("extract %s: %w", s.format.mediaType(), err)
	}
	return finish(doc, x.cfg.MaxBytes)
}

// pages reads a PDF.
func (x *Extractor) pages(ctx context.Context, raw []byte) (Document, error) {
	var doc Document
	var text strings.Builder
	read := 0
	about, err := x.cfg.PDF.Read(ctx, raw, func(n, of int, page string) error {
		addPage(&doc, &text, page)
		if read += len(page) + 2; int64(read) > 2*x.cfg.MaxBytes {
			return fmt.Errorf("%w: text over %d bytes at page %d of %d", ErrTooLarge, x.cfg.MaxBytes, n, of)
		}
		return nil
	})
	doc.Text, doc.Title, doc.Author, doc.Published, doc.Unread, doc.Again = text.String(), about.Title, about.Author, about.Published, about.Unread, about.Again
	doc.MediaType, doc.Extractor = fmtPDF.mediaType(), formats[fmtPDF].extractor
	if doc.NonText = doc.Text == ""; doc.NonText || len(doc.Pages) > maxPages { // pictures of pages; more than a person turns
		doc.Pages = nil
	}
	return doc, err
}

// maxPages bounds Document.Pages.
const maxPages = 10_000

// addPage writes the text of the next page in its final form, so that where it begins is known.
func addPage(doc *Document, text *strings.Builder, raw string) {
	doc.Links = append(doc.Links, linksInText(raw)...)
	doc.Links = doc.Links[:min(len(doc.Links), 4*maxLinks)]
	form := normalise(raw)
	if form != "" && text.Len() > 0 {
		text.WriteString("\n\n")
	}
	doc.Pages = append(doc.Pages, text.Len())
	text.WriteString(form)
}

// read reads any format but PDF.
func (s source) read() (doc Document, err error) {
	k := formats[s.format]
	if k.read == nil {
		return Document{NonText: true, MediaType: binaryType(s.raw), Extractor: "none/1"}, nil
	}
	if k.main != "" {
		if s.archive, err = openArchive(s.raw); err == nil && s.archive.files[k.main] == nil {
			err = fmt.Errorf("%w: no %s in the archive", ErrDamaged, k.main)
		}
	}
	doc = Document{MediaType: k.media, Extractor: k.extractor}
	if err == nil {
		err = k.read(s, &doc)
	}
	return doc, err
}

// readText takes text as it is.
func readText(s source, doc *Document) error {
	doc.Text = s.text()
	doc.Links = linksInText(doc.Text)
	s.lines.verbatim(doc.Text)
	return nil
}

// tooLong reports a text over its limit.
func (s source) tooLong(size int) error {
	if int64(size) > s.maxBytes {
		return fmt.Errorf("%w: text over %d bytes", ErrTooLarge, s.maxBytes)
	}
	return nil
}

// finish brings every field into its promised form, whichever reader filled it.
func finish(doc Document, maxBytes int64) (Document, error) {
	doc.Text = normalise(doc.Text)
	if int64(len(doc.Text)) > maxBytes {
		return Document{}, fmt.Errorf("extract %s: %w: text has %d bytes, limit %d", doc.MediaType, ErrTooLarge, len(doc.Text), maxBytes)
	}
	doc.Title, doc.Author = oneLine(doc.Title, 500), oneLine(doc.Author, 300)
	doc.Published = plaintext.Date(doc.Published)
	doc.URL = absoluteURL(nil, doc.URL)
	links := doc.Links
	doc.Links = nil
	for _, l := range links {
		if l = absoluteURL(nil, l); l != "" && len(doc.Links) < maxLinks && !slices.Contains(doc.Links, l) {
			doc.Links = append(doc.Links, l)
		}
	}
	return doc, nil
}

// Lines knows on which line of a document each part of its text stands. It is safe for concurrent use.
//
// While a reader writes the text it is the reader's notebook, and a nil one notes nothing: notes take more memory than the text of a hostile document.
type Lines struct {
	starts []int  // where the lines of the source begin
	skip   int    // what of the source the reader does not see, at its beginning
	marks  []mark // in the order of the text
	lost   bool   // the reader could not keep count
}

// mark says that the text from at on stands on this line, counted from one; 0 when it is unknown.
type mark struct{ at, line int }

// LinesOf finds the lines of a text that Extract gave for raw under the same name. A line ends where "\n" stands, or where "\r" stands in a source that has no "\n". Lines
// are known of plain text, source code, Markdown, tables and JSON; of other formats, and when text is not what this version reads out of raw, the result is nil.
// Raw is not changed or kept.
func LinesOf(name string, raw []byte, text string) (lines *Lines) {
	defer func() {
		if recover() != nil { // as in ExtractAs: an unknown place is no fault
			lines = nil
		}
	}()
	now := sniff(name, fmtUnknown, raw)
	tried := []format{now}
	switch now { // earlier versions read these as what they are written in
	case fmtSubtitles, fmtTeX:
		tried = append(tried, fmtText)
	case fmtNotebook:
		tried = append(tried, fmtJSON)
	}
	for _, f := range tried {
		s := source{format: f, name: name, raw: raw, maxBytes: maxBytes, lines: &Lines{}}
		if HasLines(f.mediaType()) && s.finds(text) {
			return s.lines
		}
	}
	return nil
}

// finds reads the source again, and reports whether that gives the text, with its lines.
func (s source) finds(text string) bool {
	doc, err := s.read()
	if err != nil || s.lines.lost || normalise(doc.Text) != text {
		return false
	}
	s.lines.settle(doc.Text)
	return true
}

// At is the line on which the text at a byte offset stands. It is false when that is not known, as for all offsets of a nil receiver.
func (l *Lines) At(offset int) (int, bool) {
	if l == nil {
		return 0, false
	}
	i := sort.Search(len(l.marks), func(i int) bool { return l.marks[i].at > offset }) - 1
	if i < 0 || l.marks[i].line == 0 {
		return 0, false
	}
	return l.marks[i].line, true
}

// of takes the source that places are counted in.
func (l *Lines) of(src string) {
	if l != nil {
		l.starts = lineStarts(src)
	}
}

// below is of for a reader that is given the source with its line ends replaced, without its first skip bytes.
func (l *Lines) below(src, replaced string, skip int) {
	if l == nil {
		return
	}
	l.of(replaced)
	l.skip = skip
	l.lost = len(l.starts) != len(lineStarts(src)) // other characters than line ends became some
}

func lineStarts(src string) []int {
	end := byte('\n')
	if !strings.Contains(src, "\n") {
		end = '\r'
	}
	starts := []int{0}
	for i := range len(src) {
		if src[i] == end {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// line is the line of a place of the source, as its reader counts places.
func (l *Lines) line(from int) int {
	return sort.SearchInts(l.starts, l.skip+from+1)
}

// mark notes the line of the text from at on; at notes it by the place in the source.
func (l *Lines) mark(at, line int) {
	if l != nil {
		l.marks = appendMark(l.marks, mark{at, line})
	}
}

func (l *Lines) at(at, from int) {
	if l != nil {
		l.mark(at, l.line(from))
	}
}

// appendMark keeps one mark for a place, and none where the line stays the same: settle may then cut the text at marks, which stand at line ends and between words.
func appendMark(marks []mark, m mark) []mark {
	last := len(marks) - 1
	switch {
	case last >= 0 && marks[last].at == m.at:
		marks[last].line = m.line
		return marks
	case last >= 0 && marks[last].line == m.line:
		return marks
	}
	return append(marks, m)
}

// verbatim notes a text that is its source; copied notes one that is what the reader saw of the source.
func (l *Lines) verbatim(src string) {
	l.of(src)
	l.copied()
}

func (l *Lines) copied() {
	if l == nil {
		return
	}
	l.marks = nil
	for i, start := range l.starts {
		if start >= l.skip {
			l.mark(start-l.skip, i+1)
		}
	}
}

// settle moves the marks to where normalise leaves what they mark.
func (l *Lines) settle(text string) {
	var b strings.Builder
	b.Grow(len(text))
	for i, m := range l.marks {
		if i == 0 {
			b.WriteString(text[:m.at])
		}
		end := len(text)
		if i+1 < len(l.marks) {
			end = l.marks[i+1].at
		}
		l.marks[i].at = b.Len()
		b.WriteString(withLineEnds(strings.ToValidUTF8(text[m.at:end], "\uFFFD")))
	}
	tidied(b.String(), l.marks)
}
