package bundle

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// container is the member of problems with the zip itself.
const container = "the container"

// Report is what Verify found.
type Report struct {
	Members  int      // that were looked at
	Problems []string // each begins with the member that it is about, or "the container"
	Signed   bool     // by an earlier version; the signature is not checked
	// Run is nil if the traces cannot be read.
	Run *run.Run
}

// OK reports whether the bundle is whole.
func (r Report) OK() bool { return len(r.Problems) == 0 }

func (r *Report) add(member, format string, args ...any) {
	r.Problems = append(r.Problems, member+": "+fmt.Sprintf(format, args...))
}

// addErr adds an error of this package, whose first words are the member.
func (r *Report) addErr(member string, err error) {
	r.add(member, "%s", strings.TrimPrefix(err.Error(), member+": "))
}

// Verify looks at every byte of the bundle: each member against the manifests, the
// zip against its members, the traces, the result and the blobs against each other. An
// error means only that ctx ended. Whether the citations stand is not looked at, nor
// whether a signature holds.
func (b *Bundle) Verify(ctx context.Context) (Report, error) {
	r := Report{Members: len(b.names), Signed: b.members[signatureName] != nil}
	content, packed := b.checkTags(&r)
	for _, name := range b.payloads() {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		b.checkPayload(&r, name, content, packed)
	}
	b.checkContainer(&r)
	if r.OK() {
		b.checkContent(&r)
	}
	return r, nil
}

// checkPayload holds a member against the hashes of the manifests, unpacked and packed. A manifest
// that is nil is damaged itself, and speaks against no member.
func (b *Bundle) checkPayload(r *Report, name string, contents, packs map[string]string) {
	read := b.payload
	if contents == nil {
		read = b.read
	}
	content, err := read(name)
	if err != nil {
		r.addErr(name, err)
		return
	}
	if ref := blobOf(name); ref.Valid() && ref.Hex() != fmt.Sprintf("%x", sha256.Sum256(content)) {
		r.add(name, "its bytes are not those that its name says")
		return
	}
	if packs == nil {
		return
	}
	raw, err := b.members[name].OpenRaw()
	h := sha256.New()
	if err == nil {
		_, err = io.Copy(h, raw)
	}
	switch packed := packs[name]; {
	case err != nil:
		r.add(name, "cannot be read: %v", err)
	case packed == "":
		r.add(name, "%s does not name it", packedName)
	case packed != fmt.Sprintf("%x", h.Sum(nil)):
		r.add(name, "was packed anew: its packed bytes are not those that %s names", packedName)
	}
}

// checkTags holds the tag files against the tag manifest, and against what they must say, to the
// byte. It gives the hashes of the manifests, nil for one that is not as it was written.
func (b *Bundle) checkTags(r *Report) (contents, packs map[string]string) {
	tags := map[string][]byte{} // that are as they were written
	for _, name := range tagNames {
		if text, err := b.read(name); err == nil {
			tags[name] = text
		} else if name != signatureName || r.Signed {
			r.addErr(name, err)
		}
	}
	listed := []string{bagInfoName, bagitName, manifestName, packedName}
	hashes := manifest(r, tagsName, tags, listed)
	for _, name := range listed {
		if text, ok := tags[name]; ok && hashes != nil && hashes[name] != fmt.Sprintf("%x", sha256.Sum256(text)) {
			r.add(name, "its bytes are not those that %s names", tagsName)
			delete(tags, name)
		}
	}
	if text, ok := tags[bagitName]; ok && string(text) != bagit {
		r.add(bagitName, "is not what a bundle has")
	}
	octets := int64(0)
	for _, name := range b.payloads() {
		octets += int64(b.members[name].UncompressedSize64)
	}
	if text, ok := tags[bagInfoName]; ok && !bytes.Equal(text, bagInfo(b.About, octets, len(b.payloads()))) {
		r.add(bagInfoName, "does not say what is inside")
	}
	return manifest(r, manifestName, tags, b.payloads()), manifest(r, packedName, tags, b.payloads())
}

// manifest reads a manifest, which lists members, each with its hash. It is nil if that cannot be done.
func manifest(r *Report, name string, tags map[string][]byte, members []string) map[string]string {
	text, ok := tags[name]
	if !ok {
		return nil
	}
	hashes, err := parseManifest(text)
	if err != nil {
		r.add(name, "%v", err)
		return nil
	}
	var list strings.Builder
	for _, member := range members {
		fmt.Fprintf(&list, "%s  %s\n", hashes[member], member)
	}
	if list.String() != string(text) {
		r.add(name, "does not list the members that it is for in order, and nothing else")
	}
	return hashes
}

// checkContainer writes the zip anew and compares: all of it follows from the members.
func (b *Bundle) checkContainer(r *Report) {
	there := &likeness{r: b.r}
	z := zip.NewWriter(there)
	for _, name := range b.names {
		f := b.members[name]
		if !strings.HasPrefix(name, dataDir) && f.Method != zip.Store {
			r.add(container, "was changed: %s is packed", name)
			return
		}
		to, err := z.CreateRaw(header(b.top+name, b.About.ExportedAt, f.Method, f.CRC32, f.CompressedSize64, f.UncompressedSize64))
		if err = errors.Join(err, z.Flush()); err != nil {
			r.add(container, "was changed at the header of %s", name)
			return
		}
		raw, err := f.OpenRaw()
		if err == nil {
			_, err = io.Copy(to, raw)
		}
		if err = errors.Join(err, z.Flush()); err != nil {
			r.add(container, "was changed at %s", name)
			return
		}
	}
	if err := z.Close(); err != nil {
		r.add(container, "was changed in its directory")
	} else if there.pos != b.size {
		r.add(container, "was changed: %d bytes follow its end", b.size-there.pos)
	}
}

// likeness is a writer that fails at what is not in r at the same place.
type likeness struct {
	r   io.ReaderAt
	pos int64
}

func (l *likeness) Write(want []byte) (int, error) {
	got := make([]byte, len(want))
	n, _ := l.r.ReadAt(got, l.pos) // what cannot be read is not there
	if !bytes.Equal(got[:n], want) {
		return 0, errors.New("it differs")
	}
	l.pos += int64(n)
	return n, nil
}

// checkContent holds traces, result, blobs and about.json against each other.
func (b *Bundle) checkContent(r *Report) {
	if b.top != topPrefix+b.About.TraceID.String()+"/" {
		r.add(aboutName, "is about another run, %s", b.About.TraceID)
		return
	}
	run, err := b.Run()
	if err != nil {
		r.addErr(traceName(b.About.TraceID), err)
		return
	}
	r.Run = run
	needed := map[string]bool{aboutName: true, resultName: true}
	var ids []marchwarden.TraceID
	for _, part := range run.All() {
		needed[traceName(part.ID)] = true
		ids = append(ids, part.ID)
		if part.Log.Torn > 0 {
			r.add(traceName(part.ID), "ends in %d bytes that are no step", part.Log.Torn)
		}
	}
	for _, ref := range run.Refs() {
		name := blobName(ref)
		needed[name] = true
		if b.members[name] == nil {
			r.add(name, "is missing: a trace needs it")
		}
	}
	for _, name := range b.payloads() {
		if !needed[name] {
			r.add(name, "nothing in the bundle needs it")
		}
	}
	said := make([]marchwarden.TraceID, len(b.About.Runs))
	for i, info := range b.About.Runs {
		said[i] = info.TraceID
	}
	if !slices.Equal(said, ids) {
		r.add(aboutName, "names other runs than the traces do")
	}
	if b.About.Format != formatOf(run) {
		r.add(aboutName, "is of format %d, which is not that of its runs", b.About.Format)
	}
	if b.About.Question != run.Start.Request.Question {
		r.add(aboutName, "has another question than the trace")
	}
	done := run.Log.Latest()
	if done == nil {
		r.add(traceName(run.ID), "the run did not end")
		return
	}
	if b.hashes[resultName] != done.Result.Hex() {
		r.add(resultName, "is not the result that the trace names")
	}
}
