package bundle

// This part writes the pages that a run fetched as a WARC file, which the tools of web
// archives open: every page as the bytes that came, the text that was read from them, and a
// few words on both. What is private, such as files and rows of a database, it leaves out.

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"mime"
	"net/url"
	"strconv"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// WARCStats counts what was written and what was left out.
type WARCStats struct {
	Pages int // documents written, with their bytes
	// Private are documents that are not of the web, which are never written; NoBytes
	// are those of which only a text is stored; BadAddress are those whose address
	// cannot stand in a WARC file.
	Private, NoBytes, BadAddress int
}

// WriteWARC writes the pages of a run and of its rihlas as WARC 1.1, every record a
// gzip member of its own: first a warcinfo record, then for each page a resource
// record with the bytes as fetched, a conversion record with the text, and a
// metadata record. The same run at the same time gives the same bytes, and nothing of the options but the time and the version counts. A stored
// piece that is missing or damaged is an error that names it, and so is a failure
// of w, after which what w got is not a whole file. The caller closes w.
func WriteWARC(ctx context.Context, w io.Writer, s run.Store, run *run.Run, o Options) (WARCStats, error) {
	docs, err := s.Documents(ctx, run)
	if err != nil {
		return WARCStats{}, err
	}
	f := &warcFile{zip: gzip.NewWriter(io.Discard), to: w, run: run}
	if err := f.opening(o); err != nil {
		return WARCStats{}, err
	}
	var n WARCStats
	for _, d := range docs {
		address, ok := locator.Followable(d.URL)
		switch {
		case d.Source != "web" && d.Source != "arxiv":
			n.Private++
			continue
		case !d.Raw.Valid():
			n.NoBytes++
			continue
		case !ok:
			n.BadAddress++
			continue
		}
		if err := f.page(ctx, s, d, target(d.Locator, address)); err != nil {
			return n, err
		}
		n.Pages++
	}
	return n, nil
}

// warcFile is a WARC file in the making.
type warcFile struct {
	to   io.Writer
	zip  *gzip.Writer
	run  *run.Run
	info string // the id of the warcinfo record
}

// opening writes the record that says what the file is.
func (f *warcFile) opening(o Options) error {
	var b fields
	b.add("software", "marchwarden "+o.Version)
	b.add("format", "WARC File Format 1.1")
	b.add("conformsTo", "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/")
	b.add("description", "pages fetched for one research; of each the body as it came and the text that was read from it")
	b.add("isPartOf", f.run.ID.String())
	at := o.Now.UTC()
	id := recordID("warcinfo", f.run.ID.String(), at.Format(time.RFC3339))
	err := f.add(warcRecord{kind: "warcinfo", id: id, date: at, media: fieldsType, block: b.Bytes()})
	f.info = id
	return err
}

// target is the URI that the bytes of a document are filed under: the address at
// which they were found, or for what was put together from the records of several
// services the paper's own name, since no server has that under an address.
func target(loc, address string) string {
	scheme, rest, ok := strings.Cut(loc, ":")
	if !ok || scheme != "arxiv" && scheme != "doi" {
		return address
	}
	parts := strings.Split(rest, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return scheme + ":" + strings.Join(parts, "/")
}

// page writes the records of one document, filed under a URI.
func (f *warcFile) page(ctx context.Context, s run.Store, d run.Document, uri string) error {
	raw, err := s.Blobs.Get(ctx, d.Raw)
	if err != nil {
		return fmt.Errorf("read the bytes of %s: %w", d.Locator, err)
	}
	key := []string{f.run.ID.String(), d.Locator, uri, d.Raw.String(), d.Text.String(), d.FetchedAt.UTC().Format(time.RFC3339Nano)}
	from := recordID("resource", key...)
	all := []warcRecord{{kind: "resource", id: from, media: mediaType(d.MediaType), block: raw}}
	if !d.NonText {
		text, err := s.Blobs.Get(ctx, d.Text)
		if err != nil {
			return fmt.Errorf("read the text of %s: %w", d.Locator, err)
		}
		all = append(all, warcRecord{kind: "conversion", id: recordID("conversion", key...), refersTo: from, media: "text/plain; charset=utf-8", block: text})
	}
	all = append(all, warcRecord{kind: "metadata", id: recordID("metadata", key...), refersTo: from, media: fieldsType, block: aboutPage(d)})
	for _, e := range all {
		e.target, e.date = uri, d.FetchedAt.UTC()
		if err := f.add(e); err != nil {
			return err
		}
	}
	return nil
}

// aboutPage is what is known of a document, a line each.
func aboutPage(d run.Document) []byte {
	var b fields
	b.add("title", d.Title)
	b.add("locator", d.Locator)
	b.add("url", d.URL)
	b.add("raw-hash", d.Raw.String())
	if !d.NonText {
		b.add("content-hash", d.Text.String())
	}
	b.add("extractor", d.Extractor)
	b.add("trace-id", d.Run.ID.String())
	b.add("trace-step", fmt.Sprint(d.Step))
	return b.Bytes()
}

// fields are lines of names and values: a record's header, or a block of fieldsType.
type fields struct{ bytes.Buffer }

const fieldsType = "application/warc-fields"

// add writes a field that has a value, on one line whatever the value is.
func (f *fields) add(name, value string) {
	if value = plaintext.Fold(value); value != "" {
		fmt.Fprintf(f, "%s: %s\r\n", name, value)
	}
}

type warcRecord struct {
	kind                 string // the type of the record
	id, refersTo, target string
	date                 time.Time
	media                string
	block                []byte
}

// add writes a record as a gzip member.
func (f *warcFile) add(e warcRecord) error {
	var h fields
	h.WriteString("WARC/1.1\r\n")
	h.add("WARC-Type", e.kind)
	h.add("WARC-Record-ID", angled(e.id))
	h.add("WARC-Date", e.date.Format(time.RFC3339))
	h.add("WARC-Target-URI", e.target)
	h.add("WARC-Warcinfo-ID", angled(f.info))
	h.add("WARC-Refers-To", angled(e.refersTo))
	digest := blob.Of(e.block).String()
	h.add("WARC-Block-Digest", digest)
	if e.kind == "resource" || e.kind == "conversion" {
		h.add("WARC-Payload-Digest", digest)
	}
	h.add("Content-Type", e.media)
	h.add("Content-Length", strconv.Itoa(len(e.block)))
	h.WriteString("\r\n")
	f.zip.Reset(f.to)
	for _, part := range [][]byte{h.Bytes(), e.block, []byte("\r\n\r\n")} {
		if _, err := f.zip.Write(part); err != nil {
			return fmt.Errorf("write a WARC record: %w", err)
		}
	}
	if err := f.zip.Close(); err != nil {
		return fmt.Errorf("write a WARC record: %w", err)
	}
	return nil
}

func angled(id string) string {
	if id == "" {
		return ""
	}
	return "<" + id + ">"
}

// recordID names a record by its content: a UUID of version 8.
func recordID(kind string, parts ...string) string {
	h := sha256.New()
	for _, p := range append([]string{"marchwarden/warc/v1", kind}, parts...) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(p))) // a hash does not fail
		_, _ = io.WriteString(h, p)
	}
	u := h.Sum(nil)[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// mediaType is a media type that can stand in a header.
func mediaType(s string) string {
	t, params, err := mime.ParseMediaType(s)
	if err != nil {
		return "application/octet-stream"
	}
	if t = mime.FormatMediaType(t, params); t == "" {
		return "application/octet-stream"
	}
	return t
}
