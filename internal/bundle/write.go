package bundle

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"crypto/sha256"
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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// Options is what a bundle depends on besides the record.
type Options struct {
	Now     time.Time // when it is made
	Version string    // of the program that makes it
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
	p := &packer{zip: zip.NewWriter(w), top: topPrefix + of.ID.String() + "/", when: about.ExportedAt}
	err = p.payload(ctx, src, whole, about, result)
	if err == nil {
		err = p.close(about)
	}
	if err != nil {
		return fmt.Errorf("bundle %s: %w", of.ID, err)
	}
	return nil
}

// packer writes members and keeps the books on them, until something fails.
type packer struct {
	zip     *zip.Writer
	top     string // the folder, with its slash
	when    time.Time
	members int
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
func (p *packer) close(about About) error {
	p.add(bagInfoName, bagInfo(about, p.total, p.members))
	p.add(bagitName, []byte(bagit))
	p.add(manifestName, p.manifest.Bytes())
	p.add(packedName, p.packed.Bytes())
	p.add(tagsName, p.tags.Bytes())
	if p.err != nil {
		return p.err
	}
	return marchwarden.Wrap(p.zip.Close(), marchwarden.CodeUnavailable, "write")
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
	case p.members == maxMembers:
		p.err = tooLarge("it has more than %d members", maxMembers)
	}
	data, method := p.pack(payload, content)
	if p.err != nil {
		return
	}
	p.members++
	switch {
	case payload:
		fmt.Fprintf(&p.manifest, "%x  %s\n", sha256.Sum256(content), name)
		fmt.Fprintf(&p.packed, "%x  %s\n", sha256.Sum256(data), name)
	case name != tagsName:
		fmt.Fprintf(&p.tags, "%x  %s\n", sha256.Sum256(content), name)
	}
	to, err := p.zip.CreateRaw(header(p.top+name, p.when, method, crc32.ChecksumIEEE(content), uint64(len(data)), uint64(len(content))))
	if err == nil {
		_, err = to.Write(data)
	}
	p.err = marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write")
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
		return content, zip.Store
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
		return content, zip.Store
	}
	return p.squeezed.Bytes(), zip.Deflate
}

// header is what the zip says about a member. The form is the oldest there is: no extra fields, no
// descriptors, no comments, no 64-bit sizes, every time the same.
func header(name string, when time.Time, method uint16, crc uint32, packed, size uint64) *zip.FileHeader {
	when = when.UTC()
	if when.Year() < 1980 { // where the clock of a zip begins
		when = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	const version = 20 // for folders and deflate
	return &zip.FileHeader{Name: name, CreatorVersion: version, ReaderVersion: version, Method: method,
		//lint:ignore SA1019 the newer field adds bytes to the form
		ModifiedDate: uint16(when.Day() + int(when.Month())<<5 + (when.Year()-1980)<<9),
		//lint:ignore SA1019 likewise
		ModifiedTime: uint16(when.Second()/2 + when.Minute()<<5 + when.Hour()<<11),
		CRC32:        crc, CompressedSize64: packed, UncompressedSize64: size}
}

// inside counts documents by where they are from, in words.
func inside(docs []run.Document) string {
	kinds := []struct{ source, one, many string }{
		{"web", "web page", "web pages"}, {"arxiv", "paper", "papers"}, {"file", "of your own files", "of your own files"}, {"database", "answer of a database", "answers of a database"},
		{"embedded", "document of the embedded library", "documents of the embedded library"},
		{"connector", "document of a connector", "documents of connectors"}, {"", "document of other researchers", "documents of other researchers"},
	}
	seen, count := map[blob.Ref]bool{}, map[string]int{}
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
		count[source]++
	}
	var parts []string
	others := len(seen)
	for _, k := range kinds {
		n := count[k.source]
		if others -= n; k.source == "" { // the last of the kinds
			n += others
		}
		switch {
		case n == 1:
			parts = append(parts, "1 "+k.one)
		case n > 1:
			parts = append(parts, term.Count(n)+" "+k.many)
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "no document: none was read")
}
