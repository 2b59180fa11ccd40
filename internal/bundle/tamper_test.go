package bundle

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// named reports whether a problem names a member or the container.
func named(problem string) bool {
	for _, name := range append([]string{container, "its directory", aboutName, resultName, tracesDir, blobsDir, topPrefix}, tagNames...) {
		if strings.Contains(problem, name) {
			return true
		}
	}
	return strings.HasPrefix(problem, `"`) || strings.Contains(problem, ": a bundle has no member of this name")
}

var raceEnabled = false // see race_test.go

// Whatever byte changes, it is found, and what is found has a name. All bits of all
// bytes take a minute; CI looks at every byte.
func TestEveryByte(t *testing.T) {
	data := signed(t, pack(t))
	step, masks := 13, []byte{0x20}
	switch os.Getenv("MARCHWARDEN_TEST_FULL") {
	case "":
	case "torture":
		step, masks = 1, []byte{1, 2, 4, 8, 16, 32, 64, 128, 255}
	default:
		step, masks = 1, []byte{0x20}
	}
	if testing.Short() || raceEnabled {
		step *= 29
	}
	for i := 0; i < len(data); i += step {
		for _, mask := range masks {
			changed := bytes.Clone(data)
			changed[i] ^= mask
			found := problems(t, changed)
			if len(found) == 0 {
				t.Errorf("byte %d of %d changed by %#x: not found", i, len(data), mask)
			}
			for _, p := range found {
				if !named(p) {
					t.Errorf("byte %d changed by %#x: %q names nothing", i, mask, p)
				}
			}
		}
	}
}

// A manifest that is damaged is blamed itself, and no member for not being what it
// says: whether the zip knows of the damage or not.
func TestDamagedManifest(t *testing.T) {
	data := pack(t)
	b, err := open(data)
	check(t, err)
	line := 2*sha256.Size + len("  ") + len(aboutName)
	for _, name := range []string{manifestName, packedName} {
		content, err := b.read(name)
		check(t, err)
		for what, pos := range map[string]int{"a hash": line + 9, "the end of a line": line, "a name": line - 3} {
			changed := bytes.Clone(content)
			changed[pos] ^= 1
			flipped := bytes.Replace(data, content, changed, 1)
			for how, bad := range map[string][]byte{"flipped": flipped, "with its checksum": rebuilt(t, b, name, changed)} {
				if found := problems(t, bad); len(found) != 1 || !strings.HasPrefix(found[0], name+": ") {
					t.Errorf("%s, %s, %s: %q", name, what, how, found)
				}
			}
		}
	}
}

// rebuilt is a bundle with other content in one tag file, or with one more, and a container to match.
func rebuilt(t testing.TB, b *Bundle, name string, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	names := slices.Clone(b.names)
	if b.members[name] == nil {
		names = append(names, name)
		slices.SortFunc(names, before)
	}
	for _, n := range names {
		if n == name {
			addRaw(t, z, n, zip.Store, content, content)
			continue
		}
		f := b.members[n]
		raw, err := f.OpenRaw()
		check(t, err)
		packed, err := io.ReadAll(raw)
		check(t, err)
		whole, err := b.read(n)
		check(t, err)
		addRaw(t, z, n, f.Method, packed, whole)
	}
	check(t, z.Close())
	return out.Bytes()
}

// signed is a bundle with a signature in it, as earlier versions made them.
func signed(t testing.TB, data []byte) []byte {
	t.Helper()
	b, err := open(data)
	check(t, err)
	return rebuilt(t, b, signatureName, []byte(`{"format": 1}`))
}

func addRaw(t testing.TB, z *zip.Writer, name string, method uint16, packed, content []byte) {
	t.Helper()
	w, err := z.CreateRaw(header(topPrefix+mainID+"/"+name, when, method, crc32.ChecksumIEEE(content), uint64(len(packed)), uint64(len(content))))
	check(t, err)
	_, err = w.Write(packed)
	check(t, err)
}

func TestCutAndExtended(t *testing.T) {
	data := pack(t)
	step := 13
	if os.Getenv("MARCHWARDEN_TEST_FULL") != "" {
		step = 1
	}
	if raceEnabled {
		step *= 29
	}
	for n := 0; n < len(data); n += step {
		if found := problems(t, data[:n]); len(found) == 0 || !named(found[0]) {
			t.Fatalf("the first %d bytes of %d: %q", n, len(data), found)
		}
	}
	for what, changed := range map[string][]byte{
		"a byte more":     append(bytes.Clone(data), 0),
		"a byte before":   append([]byte{'x'}, data...),
		"twice the same":  append(bytes.Clone(data), data...),
		"two bundles":     append(bytes.Clone(data), signed(t, data)...),
		"a zip's comment": append(bytes.Clone(data[:len(data)-2]), 2, 0, 'h', 'i'),
	} {
		if found := problems(t, changed); len(found) == 0 || !named(found[0]) {
			t.Errorf("%s: %q", what, found)
		}
	}
}

// file is a member of a bundle in the making.
type file struct {
	name    string
	content []byte
}

func unpack(t *testing.T, data []byte) []file {
	t.Helper()
	b, err := open(data)
	check(t, err)
	var files []file
	for _, name := range b.names {
		content, err := b.read(name)
		check(t, err)
		files = append(files, file{name, content})
	}
	return files
}

func newPacker(w io.Writer) *packer {
	return &packer{zip: zip.NewWriter(w), top: topPrefix + mainID + "/", when: when}
}

// forge makes a bundle of these members whose manifests fit, as a forger would who knows the form.
func forge(t *testing.T, files []file) []byte {
	t.Helper()
	var b bytes.Buffer
	p := newPacker(&b)
	var about About
	for _, f := range files {
		if f.name == aboutName {
			check(t, json.Unmarshal(f.content, &about))
		}
		if strings.HasPrefix(f.name, dataDir) {
			p.add(f.name, f.content)
		}
	}
	check(t, p.close(about))
	return b.Bytes()
}

// A bundle whose hashes all fit, and that says something else.
func TestForged(t *testing.T) {
	files := unpack(t, pack(t))
	if found := problems(t, forge(t, files)); found != nil {
		t.Fatalf("the forger is no good: %q", found)
	}
	change := func(name, old, new string) func([]file) []file {
		return func(fs []file) []file {
			i := slices.IndexFunc(fs, func(f file) bool { return strings.HasPrefix(f.name, name) })
			fs[i].content = bytes.Replace(fs[i].content, []byte(old), []byte(new), 1)
			return fs
		}
	}
	extra := []byte("nobody needs this")
	for _, tt := range []struct {
		what, want string
		change     func([]file) []file
	}{
		{"another result", "result.json: is not the result that the trace names", change(resultName, "1887", "1888")},
		{"another blob", "its bytes are not those that its name says", change(blobsDir, "", "x")},
		{"another question", "has another question", change(aboutName, `What is\n`, `Who was\n`)},
		{"another run", "is about another run", change(aboutName, mainID, rihlaID)},
		{"a later format", "the bundle is of format 3; this program reads formats up to 2", change(aboutName, `"format": 1`, `"format": 3`)},
		{"another format", "is of format 2, which is not that of its runs", change(aboutName, `"format": 1`, `"format": 2`)},
		{"a trace that ends early", ".jsonl: ", change(tracesDir, "\n", "\n{")},
		{"a torn trace", "ends in 5 bytes that are no step", func(fs []file) []file {
			i := slices.IndexFunc(fs, func(f file) bool { return f.name == tracesDir+rihlaID+traceSuffix })
			fs[i].content = append(fs[i].content, `{"ste`...)
			return fs
		}},
		{"another run's trace", "holds another run, " + awayID, func(fs []file) []file {
			other := home(t)
			write(t, other, rihlaID, start(t, awayID))
			text, err := linesOf(other, id(t, rihlaID))
			check(t, err)
			i := slices.IndexFunc(fs, func(f file) bool { return f.name == tracesDir+rihlaID+traceSuffix })
			fs[i].content = text
			return fs
		}},
		{"a blob less", "is missing: a trace needs it", func(fs []file) []file {
			return slices.DeleteFunc(fs, func(f file) bool { return f.name == blobName(blob.Of([]byte("report"))) })
		}},
		{"a trace less", "names other runs", func(fs []file) []file {
			return slices.DeleteFunc(fs, func(f file) bool { return f.name == tracesDir+rihlaID+traceSuffix })
		}},
		{"a blob more", "nothing in the bundle needs it", func(fs []file) []file {
			fs = append(fs, file{blobName(blob.Of(extra)), extra})
			slices.SortFunc(fs, func(a, b file) int { return before(a.name, b.name) })
			return fs
		}},
		{"another order", "the container: was changed at the header of", func(fs []file) []file {
			fs[1], fs[2] = fs[2], fs[1]
			return fs
		}},
		{"a foreign member", "data/run.sh: a bundle has no member of this name", func(fs []file) []file {
			return append([]file{{"data/run.sh", extra}}, fs...)
		}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			var fs []file
			for _, f := range files {
				fs = append(fs, file{f.name, bytes.Clone(f.content)})
			}
			if found := problems(t, forge(t, tt.change(fs))); !strings.Contains(strings.Join(found, "\n"), tt.want) {
				t.Errorf("found %q, want %q", found, tt.want)
			}
		})
	}
}

// Tag files that say something else, in a bundle whose hashes all fit.
func TestForgedTags(t *testing.T) {
	files := unpack(t, pack(t))
	forge := func(change func(name string, content []byte) []byte) []byte {
		var out bytes.Buffer
		p := newPacker(&out)
		for _, f := range files {
			if strings.HasPrefix(f.name, dataDir) {
				p.add(f.name, f.content)
			}
		}
		for _, f := range files {
			if !strings.HasPrefix(f.name, dataDir) && f.name != tagsName {
				p.add(f.name, change(f.name, bytes.Clone(f.content)))
			}
		}
		p.add(tagsName, change(tagsName, bytes.Clone(p.tags.Bytes())))
		check(t, p.err)
		check(t, p.zip.Close())
		return out.Bytes()
	}
	if found := problems(t, forge(func(_ string, content []byte) []byte { return content })); found != nil {
		t.Fatalf("the forger is no good: %q", found)
	}
	none := strings.Repeat("0", 2*sha256.Size) + "  data/none\n"
	lines := func(content []byte) [][]byte {
		return bytes.SplitAfter(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"))
	}
	more := func(content []byte) []byte { return append(content, none...) }
	less := func(content []byte) []byte { return bytes.Join(lines(content)[1:], nil) }
	swapped := func(content []byte) []byte {
		l := lines(content)
		l[0], l[1] = l[1], l[0]
		return bytes.Join(append(l, []byte("\n")), nil)
	}
	noLine := func(content []byte) []byte { return append([]byte("nothing\n"), content...) }
	for _, tt := range []struct {
		name, what, want string
		change           func([]byte) []byte
	}{
		{manifestName, "a line more", "and nothing else", more},
		{manifestName, "another order", "in order", swapped},
		{packedName, "a line more", "and nothing else", more},
		{packedName, "a line less", "does not name it", less},
		{packedName, "another order", "in order", swapped},
		{packedName, "no list", "line 1 is not a hash and a name", noLine},
		{tagsName, "a line more", "and nothing else", more},
		{tagsName, "another order", "and nothing else", swapped},
		{bagitName, "another version", "is not what a bundle has", func(c []byte) []byte { return bytes.Replace(c, []byte("1.0"), []byte("0.9"), 1) }},
		{bagInfoName, "another size", "does not say what is inside", func(c []byte) []byte { return bytes.Replace(c, []byte("Payload-Oxum: "), []byte("Payload-Oxum: 1"), 1) }},
	} {
		t.Run(tt.name+", "+tt.what, func(t *testing.T) {
			bad := forge(func(name string, content []byte) []byte {
				if name == tt.name {
					return tt.change(content)
				}
				return content
			})
			found := strings.Join(problems(t, bad), "\n")
			if !strings.Contains(found, tt.name) || !strings.Contains(found, tt.want) {
				t.Errorf("found %q, want %q", found, tt.want)
			}
		})
	}
}

// The same member deflated in another way, with every header and checksum right.
func TestRepacked(t *testing.T) {
	files := unpack(t, pack(t))
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		if !strings.HasPrefix(f.name, dataDir) {
			addRaw(t, z, f.name, zip.Store, f.content, f.content)
			continue
		}
		var packed bytes.Buffer
		w, err := flate.NewWriter(&packed, flate.HuffmanOnly)
		check(t, err)
		_, err = w.Write(f.content)
		check(t, err)
		check(t, w.Close())
		addRaw(t, z, f.name, zip.Deflate, packed.Bytes(), f.content)
	}
	check(t, z.Close())
	found := problems(t, b.Bytes())
	if len(found) == 0 || !strings.Contains(found[0], "was packed anew") {
		t.Errorf("found %q", found)
	}
}

// Members that lead somewhere else or cost too much are refused by name before
// anything is unpacked.
func TestHostile(t *testing.T) {
	top := topPrefix + mainID + "/"
	bomb := make([]byte, 17<<20+1)
	blobAt := top + blobName(blob.Of(bomb[:1<<20]))
	for _, tt := range []struct {
		what, want string
		files      []zip.FileHeader
		content    []byte
	}{
		{"up", `../../etc/passwd: a bundle has no member`, []zip.FileHeader{{Name: "../../etc/passwd"}}, nil},
		{"up from inside", `/../../x: a bundle has no member`, []zip.FileHeader{{Name: top + "../../x"}}, nil},
		{"absolute", `/etc/passwd: a bundle has no member`, []zip.FileHeader{{Name: "/etc/passwd"}}, nil},
		{"backslash", `a bundle has no member`, []zip.FileHeader{{Name: top + `data\about.json`}}, nil},
		{"control characters", `"\x1b[31m/x": a bundle has no member`, []zip.FileHeader{{Name: "\x1b[31m/x"}}, nil},
		{"two folders", `a bundle has no member`, []zip.FileHeader{{Name: top + aboutName}, {Name: topPrefix + rihlaID + "/" + bagitName}}, nil},
		{"twice", `about.json: is there twice`, []zip.FileHeader{{Name: top + aboutName}, {Name: top + aboutName}}, nil},
		{"link", `about.json: is not a plain file`, []zip.FileHeader{{Name: top + aboutName, CreatorVersion: 3 << 8, ExternalAttrs: 0o120777 << 16}}, nil},
		{"bomb", "unpacks to more than 200 times its size", []zip.FileHeader{{Name: blobAt, Method: zip.Deflate}}, bomb[:1<<20]},
		{"large tag file", "at most 16777216 are read", []zip.FileHeader{{Name: top + aboutName, Method: zip.Deflate}}, bomb},
		{"nothing", "about.json: is missing", nil, nil},
	} {
		t.Run(tt.what, func(t *testing.T) {
			var b bytes.Buffer
			z := zip.NewWriter(&b)
			for _, h := range tt.files {
				w, err := z.CreateHeader(&h)
				check(t, err)
				_, err = w.Write(tt.content)
				check(t, err)
			}
			check(t, z.Close())
			if _, err := open(b.Bytes()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Open: %v, want %q", err, tt.want)
			}
		})
	}
}

// Members that share their bytes could unpack to far more than a file can hold.
func TestOverlapping(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	content := make([]byte, 1000)
	addRaw(t, z, aboutName, zip.Store, content, content)
	for i := range 500 {
		_, err := z.CreateRaw(header(topPrefix+mainID+"/"+blobName(blob.Of(fmt.Append(nil, i))), when, zip.Store, crc32.ChecksumIEEE(content), 1000, 1000))
		check(t, err)
	}
	check(t, z.Close())
	if _, err := open(b.Bytes()); err == nil || !strings.Contains(err.Error(), "larger than the bundle") {
		t.Errorf("Open: %v", err)
	}
}

// However many ways lead to a run, it is read once.
func TestManyWays(t *testing.T) {
	s := home(t)
	const levels = 40
	name := func(level, n int) string { return fmt.Sprintf("0198c0de-7a3b-7c11-9d55-%08d%04d", level, n) }
	data, err := marchwarden.EncodeResult(&marchwarden.Result{Answer: "No.", TraceID: id(t, name(0, 0))})
	check(t, err)
	result := put(t, s, string(data))
	for level := range levels {
		for n := range 2 {
			head := start(t, name(level, n))
			head.Investigation = &trace.Investigation{}
			steps := []trace.Step{head}
			for below := range 2 {
				steps = append(steps, &trace.RihlaComplete{Effect: trace.Effect{OutputID: result}, TraceID: id(t, name(level+1, below))})
			}
			write(t, s, name(level, n), append(steps, &trace.Complete{Result: result})...)
		}
	}
	run, err := s.Load(id(t, name(0, 0)))
	check(t, err)
	var b bytes.Buffer
	check(t, Write(context.Background(), &b, s, run, Options{Now: when}))
	if found := problems(t, b.Bytes()); found != nil {
		t.Error(found)
	}
}

// Traces that name each other do not lead a reader round in circles.
func TestCircle(t *testing.T) {
	s, _ := recorded(t)
	run, err := s.Load(id(t, mainID))
	check(t, err)
	result, _, err := s.Result(context.Background(), run)
	check(t, err)
	loop := home(t)
	loop.Blobs = s.Blobs
	whole := start(t, mainID)
	whole.Investigation = &trace.Investigation{}
	part := start(t, rihlaID)
	part.Investigation = &trace.Investigation{}
	ref := blob.Of(result)
	write(t, loop, mainID, whole, &trace.RihlaComplete{Effect: trace.Effect{OutputID: ref}, TraceID: id(t, rihlaID)}, &trace.Complete{Result: ref})
	write(t, loop, rihlaID, part, &trace.RihlaComplete{Effect: trace.Effect{OutputID: ref}, TraceID: id(t, mainID)}, &trace.Complete{Result: ref})
	var b bytes.Buffer
	p := newPacker(&b)
	about := About{Format: formatAlone, TraceID: id(t, mainID), ExportedAt: when}
	head, err := durable.EncodeJSON(about, "  ")
	check(t, err)
	p.add(aboutName, head)
	p.add(blobName(ref), result)
	p.add(resultName, result)
	for _, name := range []string{mainID, rihlaID} {
		text, err := linesOf(loop, id(t, name))
		check(t, err)
		p.add(traceName(id(t, name)), text)
	}
	check(t, p.close(about))
	if found := problems(t, b.Bytes()); len(found) == 0 || !strings.Contains(found[0], "is a rihla of itself") {
		t.Errorf("found %q", found)
	}
}

func TestVerifyStops(t *testing.T) {
	b, err := open(pack(t))
	check(t, err)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := b.Verify(ctx); marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
		t.Errorf("Verify: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(signed(f, pack(f)))
	f.Add(pack(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := open(data)
		if err != nil {
			return
		}
		_, err = b.Verify(context.Background())
		check(t, err)
	})
}

// linesOf are the whole lines of a trace that is there.
func linesOf(s run.Store, id marchwarden.TraceID) ([]byte, error) {
	log, err := s.Traces.Load(id)
	if err != nil {
		return nil, err
	}
	return traceBytes(s, &run.Run{ID: id, Log: log})
}
