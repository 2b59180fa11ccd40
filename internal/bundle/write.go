package bundle

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// Options is what a bundle depends on besides the record.
type Options struct {
	Now     time.Time // when it is made
	Version string    // of the program that makes it
	Sign    *Key      // who signs it; nil: not signed
	Comment string    // what the signer says
}

// Write writes the bundle of a complete run, with the runs that it follows. The same record and the same options
// give the same bytes. A run without a result is CodeUnsupported, a damaged record
// CodeCorrupt with the name of the blob; w then holds a part that is no bundle.
// Nothing of it is kept in memory but one member at a time.
func Write(ctx context.Context, w io.Writer, src run.Store, of *run.Run, o Options) error {
	whole, err := run.LoadTalk(of.ID, src.Traces.Load)
	if err != nil {
		return fmt.Errorf("bundle %s: %w", of.ID, err)
	}
	result, _, err := src.Result(ctx, whole)
	if err != nil {
		return fmt.Errorf("bundle %s: %w", of.ID, err)
	}
	about := aboutOf(whole, o)
	p := &packer{w: w, layout: newLayout(topPrefix+of.ID.String()+"/", about.ExportedAt)}
	err = p.payload(ctx, src, whole, about, result)
	if err == nil {
		err = p.close(about, o)
	}
	if err != nil {
		return fmt.Errorf("bundle %s: %w", of.ID, err)
	}
	return nil
}

// packer writes members and keeps the books on them, until something fails.
type packer struct {
	w       io.Writer
	layout  layout
	entries []entry
	pos     int64
	total   int64 // bytes unpacked
	err     error // the first failure

	manifest, packed, tags bytes.Buffer
	squeezed               bytes.Buffer // the member at hand
	flate                  *flate.Writer
}

// payload writes what is below data/, in order.
func (p *packer) payload(ctx context.Context, src run.Store, whole *run.Run, about About, result []byte) error {
	head, err := durable.EncodeJSON(about, "  ")
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInternal, "encode %s", aboutName)
	}
	p.add(aboutName, head)
	refs := whole.Refs()
	slices.SortFunc(refs, blob.Ref.Compare)
	for _, ref := range refs {
		content, err := src.Blobs.Get(ctx, ref)
		if err != nil || p.err != nil {
			return cmp.Or(err, p.err)
		}
		p.add(blobName(ref), content)
	}
	p.add(resultName, result)
	runs := whole.All()
	slices.SortFunc(runs, func(a, b *run.Run) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
	for _, r := range runs {
		lines, err := traceBytes(src, r)
		if err != nil {
			return err
		}
		p.add(traceName(r.ID), lines)
	}
	return p.err
}

// traceBytes are the whole lines of a trace, as they were when it was loaded.
func traceBytes(src run.Store, r *run.Run) ([]byte, error) {
	text, err := src.Traces.Text(r.ID)
	if err == nil && int64(len(text)) < r.Log.Good {
		err = marchwarden.Wrap(io.ErrUnexpectedEOF, marchwarden.CodeUnavailable, "read trace %s", r.ID)
	}
	if err != nil {
		return nil, err
	}
	return text[:r.Log.Good], nil
}

// close writes the tag files and the directory.
func (p *packer) close(about About, o Options) error {
	p.add(bagInfoName, bagInfo(about, p.total, len(p.entries)))
	p.add(bagitName, []byte(bagit))
	p.add(manifestName, p.manifest.Bytes())
	p.add(packedName, p.packed.Bytes())
	if o.Sign != nil {
		signature, err := o.Sign.sign(p.tags.Bytes(), o.Now, o.Comment)
		if err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeInternal, "sign")
		}
		p.add(signatureName, signature)
	}
	p.add(tagsName, p.tags.Bytes())
	p.write(p.layout.directory(p.entries, uint32(p.pos)))
	return p.err
}

func (p *packer) add(name string, content []byte) {
	payload := strings.HasPrefix(name, dataDir)
	most := int64(maxMember)
	if !payload || name == aboutName {
		most = maxTag
	}
	p.total += int64(len(content))
	switch {
	case p.err != nil:
	case int64(len(content)) > most:
		p.err = tooLarge("%s has %d bytes; a bundle holds members of at most %d", name, len(content), most)
	case p.total > maxTotal:
		p.err = tooLarge("its members have more than %d bytes together", int64(maxTotal))
	case len(p.entries) == maxMembers:
		p.err = tooLarge("it has more than %d members", maxMembers)
	}
	data, method := p.pack(payload, content)
	if p.err != nil {
		return
	}
	e := entry{name: name, method: method, crc: crc32.ChecksumIEEE(content), packed: uint32(len(data)), size: uint32(len(content)), offset: uint32(p.pos)}
	p.entries = append(p.entries, e)
	switch {
	case payload:
		fmt.Fprintf(&p.manifest, "%x  %s\n", sha256.Sum256(content), name)
		fmt.Fprintf(&p.packed, "%x  %s\n", sha256.Sum256(data), name)
	case name != signatureName && name != tagsName:
		fmt.Fprintf(&p.tags, "%x  %s\n", sha256.Sum256(content), name)
	}
	p.write(p.layout.local(e))
	p.write(data)
}

func tooLarge(format string, args ...any) error {
	return marchwarden.Errorf(marchwarden.CodeUnsupported, "the bundle would be too large: "+format, args...)
}

// squeeze is how hard to deflate: three percent off the best, in half the time.
const squeeze = 4

// pack deflates a member below data/ where that saves something. What shrinks
// more than a reader believes is left as it is; and so are the tag files, whose
// packed bytes no manifest knows.
func (p *packer) pack(payload bool, content []byte) (data []byte, method uint16) {
	if !payload || p.err != nil {
		return content, stored
	}
	p.squeezed.Reset()
	var err error
	if p.flate == nil {
		p.flate, err = flate.NewWriter(&p.squeezed, squeeze)
	} else {
		p.flate.Reset(&p.squeezed)
	}
	if err == nil {
		_, err = p.flate.Write(content)
	}
	if err == nil {
		err = p.flate.Close()
	}
	p.err = marchwarden.Wrap(err, marchwarden.CodeInternal, "deflate")
	if n := p.squeezed.Len(); n >= len(content) || len(content) > n*maxRatio {
		return content, stored
	}
	return p.squeezed.Bytes(), deflated
}

func (p *packer) write(b []byte) {
	if p.err != nil {
		return
	}
	n, err := p.w.Write(b)
	p.pos += int64(n)
	p.err = marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write")
}

// inside counts documents by where they are from, in words.
func inside(docs []run.Document) string {
	kinds := []kindCount{
		{one: "web page", many: "web pages"}, {one: "paper", many: "papers"}, {one: "of your own files", many: "of your own files"}, {one: "answer of a database", many: "answers of a database"},
		{one: "document of the embedded library", many: "documents of the embedded library"}, {one: "document of other researchers", many: "documents of other researchers"},
	}
	sources := []string{"web", "arxiv", "file", "database", "embedded", ""}
	seen := map[blob.Ref]bool{}
	for _, d := range docs {
		ref, source := d.Text, d.Source
		if !ref.Valid() {
			ref = d.Raw
		}
		if seen[ref] { // an investigator has got hold of what a rihla had read
			continue
		}
		seen[ref] = true
		if source == "file" && strings.HasPrefix(d.Locator, "embedded:") {
			source = "embedded"
		}
		kind := slices.Index(sources, source)
		if kind < 0 {
			kind = len(kinds) - 1
		}
		kinds[kind].n++
	}
	return cmp.Or(counted(kinds), "no document: none was read")
}

// The methods of packing that a bundle uses.
const (
	stored   = 0
	deflated = 8
)

// entry is what the zip says about one member.
type entry struct {
	name   string // below the top folder
	method uint16
	crc    uint32
	packed uint32 // bytes in the zip
	size   uint32 // bytes unpacked
	offset uint32 // of its header in the zip
}

// layout writes the parts of the zip between the packed members. The form is the
// oldest there is: no extra fields, no descriptors, no comments, no 64-bit sizes,
// every time the same. It is written here rather than by a library because the
// bytes must be the same for ever.
type layout struct {
	top  string // the folder, with its slash
	date uint16
	time uint16
}

func newLayout(top string, when time.Time) layout {
	when = when.UTC()
	if when.Year() < 1980 { // where the clock of a zip begins
		when = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return layout{top: top,
		date: uint16(when.Day() + int(when.Month())<<5 + (when.Year()-1980)<<9),
		time: uint16(when.Second()/2 + when.Minute()<<5 + when.Hour()<<11)}
}

const versionNeeded = 20 // for folders and deflate

// common is the part that both headers of a member share.
func (l layout) common(b []byte, e entry) []byte {
	b = le16(b, versionNeeded, 0, e.method, l.time, l.date)
	b = le32(b, e.crc, e.packed, e.size)
	return le16(b, uint16(len(l.top)+len(e.name)), 0)
}

// local is the header before a member.
func (l layout) local(e entry) []byte {
	return append(l.common(le32(nil, 0x04034b50), e), l.top+e.name...)
}

// directory is everything after the last member.
func (l layout) directory(all []entry, offset uint32) []byte {
	var b []byte
	for _, e := range all {
		b = le16(le32(b, 0x02014b50), versionNeeded)
		b = le16(l.common(b, e), 0, 0, 0) // comment, disk, kind
		b = le32(b, 0, e.offset)
		b = append(b, l.top+e.name...)
	}
	size := uint32(len(b))
	b = le16(le32(b, 0x06054b50), 0, 0, uint16(len(all)), uint16(len(all)))
	return le16(le32(b, size, offset), 0)
}

func le16(b []byte, vs ...uint16) []byte {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	return b
}

func le32(b []byte, vs ...uint32) []byte {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}
