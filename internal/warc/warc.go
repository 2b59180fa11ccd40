// Package warc writes the pages that a run fetched as a WARC file, which the tools
// of web archives open: every page as the bytes that came, the text that was read
// from them, and a few words on both. It owns the layout of that file and is the
// only user of the WARC library. It reads what is stored and fetches nothing; what
// is private, such as files and rows of a database, it leaves out.
package warc

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"mime"
	"net/url"
	"strings"
	"time"

	"github.com/nlnwa/gowarc/v2"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// Options is what a file says about its making. Now is required.
type Options struct {
	Now     func() time.Time
	Version string // of the program
}

// Stats counts what was written and what was left out.
type Stats struct {
	Pages int // documents written, with their bytes
	// Private are documents that are not of the web, which are never written; NoBytes
	// are those of which only a text is stored; BadAddress are those whose address
	// cannot stand in a WARC file.
	Private, NoBytes, BadAddress int
}

// Write writes the pages of a run and of its rihlas as WARC 1.1, every record a
// gzip member of its own: first a warcinfo record, then for each page a resource
// record with the bytes as fetched, a conversion record with the text, and a
// metadata record. The same run at the same time gives the same bytes. A stored
// piece that is missing or damaged is an error that names it, and so is a failure
// of w, after which what w got is not a whole file. The caller closes w.
func Write(ctx context.Context, w io.Writer, s run.Store, run *run.Run, o Options) (Stats, error) {
	docs, err := s.Documents(ctx, run)
	if err != nil {
		return Stats{}, err
	}
	f := &file{zip: gzip.NewWriter(io.Discard), to: w, run: run}
	if err := f.opening(o); err != nil {
		return Stats{}, err
	}
	var n Stats
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

// file is a WARC file in the making.
type file struct {
	to   io.Writer
	zip  *gzip.Writer
	run  *run.Run
	info string // the id of the warcinfo record
}

// opening writes the record that says what the file is.
func (f *file) opening(o Options) error {
	fields := gowarc.WarcFields{}
	fields.Add("software", strings.TrimSpace("marchwarden "+plaintext.Fold(o.Version)))
	fields.Add("format", "WARC File Format 1.1")
	fields.Add("conformsTo", "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/")
	fields.Add("description", "pages fetched for one research; of each the body as it came and the text that was read from it")
	fields.Add("isPartOf", f.run.ID.String())
	at := o.Now().UTC()
	id := recordID("warcinfo", f.run.ID.String(), at.Format(time.RFC3339))
	err := f.add(entry{kind: gowarc.Warcinfo, id: id, date: at, media: gowarc.ApplicationWarcFields, block: fieldBlock(fields)})
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
func (f *file) page(ctx context.Context, s run.Store, d run.Document, uri string) error {
	raw, err := s.Blobs.Get(ctx, d.Raw)
	if err != nil {
		return fmt.Errorf("read the bytes of %s: %w", d.Locator, err)
	}
	key := []string{f.run.ID.String(), d.Locator, uri, d.Raw.String(), d.Text.String(), d.FetchedAt.UTC().Format(time.RFC3339Nano)}
	id := func(kind gowarc.RecordType) string { return recordID(kind.String(), key...) }
	from := id(gowarc.Resource)
	all := []entry{{kind: gowarc.Resource, id: from, media: mediaType(d.MediaType), block: raw}}
	if !d.NonText {
		text, err := s.Blobs.Get(ctx, d.Text)
		if err != nil {
			return fmt.Errorf("read the text of %s: %w", d.Locator, err)
		}
		all = append(all, entry{kind: gowarc.Conversion, id: id(gowarc.Conversion), refersTo: from, media: "text/plain; charset=utf-8", block: text})
	}
	all = append(all, entry{kind: gowarc.Metadata, id: id(gowarc.Metadata), refersTo: from, media: gowarc.ApplicationWarcFields, block: fieldBlock(about(d))})
	for _, e := range all {
		e.target, e.date = uri, d.FetchedAt.UTC()
		if err := f.add(e); err != nil {
			return err
		}
	}
	return nil
}

// about is what is known of a document, a line each.
func about(d run.Document) gowarc.WarcFields {
	fields := gowarc.WarcFields{}
	add := func(name, value string) {
		if value = plaintext.Fold(value); value != "" {
			fields.Add(name, value)
		}
	}
	add("title", d.Title)
	add("locator", d.Locator)
	add("url", d.URL)
	add("raw-hash", d.Raw.String())
	if !d.NonText {
		add("content-hash", d.Text.String())
	}
	add("extractor", d.Extractor)
	add("trace-id", d.Run.ID.String())
	add("trace-step", fmt.Sprint(d.Step))
	return fields
}

// entry is one record.
type entry struct {
	kind                 gowarc.RecordType
	id, refersTo, target string
	date                 time.Time
	media                string
	block                []byte
}

// add writes a record as a gzip member.
func (f *file) add(e entry) error {
	b := gowarc.NewRecordBuilder(e.kind, gowarc.WithVersion(gowarc.V1_1), gowarc.WithStrictValidation(), gowarc.WithAddMissingRecordId(false),
		gowarc.WithDefaultDigestAlgorithm("sha256"), gowarc.WithDefaultDigestEncoding(gowarc.Base16),
		gowarc.WithBufferMaxMemBytes(int64(len(e.block))+1)) // or parts of pages would lie in the folder for temporary files
	b.AddWarcHeader(gowarc.WarcRecordID, "<"+e.id+">")
	b.AddWarcHeader(gowarc.WarcDate, e.date.Format(time.RFC3339))
	for _, h := range [][2]string{{gowarc.WarcTargetURI, e.target}, {gowarc.WarcWarcinfoID, angled(f.info)}, {gowarc.WarcRefersTo, angled(e.refersTo)}, {gowarc.ContentType, e.media}} {
		if h[1] != "" {
			b.AddWarcHeader(h[0], h[1])
		}
	}
	if e.kind == gowarc.Resource || e.kind == gowarc.Conversion {
		b.AddWarcHeader(gowarc.WarcPayloadDigest, blob.Of(e.block).String())
	}
	if _, err := b.Write(e.block); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInternal, "fill a WARC record")
	}
	rec, _, err := b.Build()
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInternal, "make a WARC record")
	}
	defer rec.Close() // it is all in memory
	f.zip.Reset(f.to)
	if _, _, err := gowarc.NewMarshaler().Marshal(f.zip, rec, 0); err != nil {
		return fmt.Errorf("write a WARC record: %w", err)
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

// recordID is a name for a record that its content decides: a UUID of the kind whose computation is
// free (version 8).
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

// fieldBlock writes fields, a line each.
func fieldBlock(fields gowarc.WarcFields) []byte {
	var b strings.Builder
	_, _ = fields.Write(&b) // a Builder does not fail
	return []byte(b.String())
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
