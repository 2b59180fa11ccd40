package bundle

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Bundle is an open bundle. What it hands out is held against the manifest first,
// but only Verify looks at all of it. It is safe for concurrent use as long as its
// reader is.
type Bundle struct {
	About About

	r       io.ReaderAt
	size    int64
	top     string   // the folder, with its slash
	names   []string // of all members, in order
	members map[string]*zip.File
	hashes  map[string]string // of the members below data/, by the manifest
}

// OpenFile opens a bundle and reads nothing else. The caller closes the file.
func OpenFile(path string) (*Bundle, io.Closer, error) {
	f, err := durable.OpenRegular(path)
	if err != nil {
		return nil, nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "FILE", Message: fmt.Sprintf("%q cannot be read: %s", path, durable.Cause(err))}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(marchwarden.Wrap(err, marchwarden.CodeUnavailable, "look at %s", path), f.Close())
	}
	b, err := Open(f, info.Size())
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s is not a bundle that stands: %w", path, err), f.Close())
	}
	return b, f, nil
}

// Open reads the directory and the manifest of a bundle. What is no bundle, has
// members that a bundle cannot have, or is over a limit, is CodeCorrupt with the
// name of the member; a later format is CodeUnsupported.
func Open(r io.ReaderAt, size int64) (*Bundle, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, corrupt("its directory", "cannot be read: %v", err)
	}
	b := &Bundle{r: r, size: size, members: map[string]*zip.File{}}
	if err := b.list(z.File); err != nil {
		return nil, err
	}
	about, err := b.read(aboutName)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(about, &b.About); err != nil {
		return nil, corrupt(aboutName, "cannot be read: %v", err)
	}
	if f := b.About.Format; f != formatAlone && f != formatNow {
		return nil, marchwarden.Errorf(marchwarden.CodeUnsupported, "the bundle is of format %d; this program reads formats up to %d", f, formatNow)
	}
	manifest, err := b.read(manifestName)
	if err != nil {
		return nil, err
	}
	if b.hashes, err = parseManifest(manifest); err != nil {
		return nil, corrupt(manifestName, "%v", err)
	}
	return b, nil
}

func corrupt(member, format string, args ...any) error {
	return marchwarden.Errorf(marchwarden.CodeCorrupt, "%s: "+format, append([]any{member}, args...)...)
}

// list takes in the members, and refuses those that a bundle cannot have.
func (b *Bundle) list(files []*zip.File) error {
	if len(files) > maxMembers+len(tagNames) {
		return corrupt("its directory", "names %d members; a bundle has at most %d", len(files), maxMembers)
	}
	var total, packed uint64
	for _, f := range files {
		top, name, ok := strings.Cut(f.Name, "/")
		if b.top == "" && ok {
			b.top = top + "/"
		}
		if problem := b.odd(f, name); problem != "" {
			return corrupt(shown(f.Name), "%s", problem)
		}
		if total += f.UncompressedSize64; total > maxTotal {
			return corrupt(shown(name), "with it the members unpack to more than %d bytes", int64(maxTotal))
		}
		if packed += f.CompressedSize64; packed > uint64(b.size) {
			return corrupt(shown(name), "with it the members are larger than the bundle")
		}
		b.members[name] = f
		b.names = append(b.names, name)
	}
	slices.SortFunc(b.names, before)
	for _, name := range append([]string{aboutName, resultName}, tagNames...) {
		if b.members[name] == nil && name != signatureName {
			return corrupt(name, "is missing")
		}
	}
	return nil
}

// payloads are the names of the members below data/, in order.
func (b *Bundle) payloads() []string {
	return b.names[:slices.IndexFunc(b.names, func(name string) bool { return !strings.HasPrefix(name, dataDir) })]
}

// odd says why a bundle cannot have such a member; "" if it can.
func (b *Bundle) odd(f *zip.File, name string) string {
	id, err := marchwarden.ParseTraceID(strings.TrimSuffix(strings.TrimPrefix(b.top, topPrefix), "/"))
	known := slices.Contains(tagNames, name) || name == aboutName || name == resultName || blobOf(name).Valid() || traceOf(name).Valid()
	most := uint64(maxMember)
	if slices.Contains(tagNames, name) || name == aboutName {
		most = maxTag
	}
	switch {
	case err != nil || b.top != topPrefix+id.String()+"/" || f.Name != b.top+name || !known:
		return "a bundle has no member of this name"
	case b.members[name] != nil:
		return "is there twice"
	case f.Mode().Type() != 0:
		return "is not a plain file"
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return fmt.Sprintf("is packed by method %d", f.Method)
	case f.UncompressedSize64 > most:
		return fmt.Sprintf("has %d bytes; at most %d are read", f.UncompressedSize64, most)
	case f.CompressedSize64 > uint64(b.size):
		return "is larger than the bundle"
	case f.UncompressedSize64 > f.CompressedSize64*maxRatio:
		return fmt.Sprintf("unpacks to more than %d times its size", maxRatio)
	}
	return ""
}

// shown is a name from outside for a message.
func shown(name string) string {
	const most = 200
	if len(name) > most {
		name = name[:most] + "…"
	}
	if quoted := fmt.Sprintf("%q", name); quoted != `"`+name+`"` || name == "" {
		return quoted
	}
	return name
}

// read unpacks a member. It reads no more than the directory says there is.
func (b *Bundle) read(name string) ([]byte, error) {
	f := b.members[name]
	if f == nil {
		return nil, corrupt(name, "is missing")
	}
	r, err := f.Open()
	if err != nil {
		return nil, corrupt(name, "cannot be unpacked: %v", err)
	}
	defer r.Close()
	var content bytes.Buffer
	n, err := io.Copy(&content, io.LimitReader(r, int64(f.UncompressedSize64)+1))
	if err != nil {
		return nil, corrupt(name, "cannot be unpacked: %v", err)
	}
	if uint64(n) != f.UncompressedSize64 {
		return nil, corrupt(name, "unpacks to another size than the directory says")
	}
	return content.Bytes(), nil
}

// payload unpacks a member below data/ and holds it against the manifest.
func (b *Bundle) payload(name string) ([]byte, error) {
	content, err := b.read(name)
	if err != nil {
		return nil, err
	}
	switch want := b.hashes[name]; {
	case want == "":
		return nil, corrupt(name, "no manifest names it")
	case want != fmt.Sprintf("%x", sha256.Sum256(content)):
		return nil, corrupt(name, "its bytes are not those that the manifest names")
	}
	return content, nil
}

// parseManifest reads the lines of a manifest: hash by name.
func parseManifest(data []byte) (map[string]string, error) {
	hashes := map[string]string{}
	for n, text := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		sum, name, ok := strings.Cut(text, "  ")
		if !ok || len(sum) != 2*sha256.Size || name == "" {
			return nil, fmt.Errorf("line %d is not a hash and a name", n+1)
		}
		if hashes[name] != "" {
			return nil, fmt.Errorf("line %d names %s a second time", n+1, shown(name))
		}
		hashes[name] = sum
	}
	return hashes, nil
}

// Load reads a trace. One that is not inside is CodeNotFound.
func (b *Bundle) Load(id marchwarden.TraceID) (*trace.Log, error) {
	name := traceName(id)
	if b.members[name] == nil {
		return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "no trace %s in the bundle", id)
	}
	lines, err := b.payload(name)
	if err != nil {
		return nil, err
	}
	log, err := trace.Read(bytes.NewReader(lines))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if start, err := log.Start(); err == nil && start.TraceID != id {
		return nil, corrupt(name, "holds another run, %s", start.TraceID)
	}
	return log, nil
}

// Run is the run with those of its rihlas, and of the runs that it follows, that are inside.
func (b *Bundle) Run() (*run.Run, error) {
	whole, err := run.LoadTalk(b.About.TraceID, b.Load)
	if err != nil {
		return nil, err
	}
	for _, r := range whole.All() {
		for _, part := range r.Facts().Parts {
			listed := slices.ContainsFunc(r.Rihlas, func(rihla *run.Run) bool { return rihla.ID == part })
			if b.members[traceName(part)] != nil && !listed {
				return nil, corrupt(traceName(part), "the run is a rihla of itself")
			}
		}
	}
	return whole, nil
}

// Blobs is what the bundle holds as a store. Putting into it is CodeUnsupported.
func (b *Bundle) Blobs() blob.Store { return blob.Guard(keeper{b}) }

type keeper struct{ b *Bundle }

func (keeper) Keep(context.Context, blob.Ref, []byte) error {
	return marchwarden.Errorf(marchwarden.CodeUnsupported, "a bundle can only be read")
}

func (k keeper) Read(_ context.Context, ref blob.Ref) ([]byte, error) {
	if k.b.members[blobName(ref)] == nil {
		return nil, blob.ErrNotFound
	}
	content, err := k.b.read(blobName(ref))
	if err != nil {
		return nil, errors.Join(blob.ErrCorrupt, err)
	}
	return content, nil
}

func (k keeper) Size(_ context.Context, ref blob.Ref) (int64, error) {
	f := k.b.members[blobName(ref)]
	if f == nil {
		return 0, blob.ErrNotFound
	}
	return int64(f.UncompressedSize64), nil
}
