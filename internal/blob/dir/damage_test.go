package dir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
)

// Both kinds of body, every bit of the file: each flip is found by Get and
// named, none is found by luck of the digest only, and a Put heals the last.
func TestEveryFlippedBitIsFound(t *testing.T) {
	for kind, content := range map[byte]string{
		blob.RawBody:  "a short page",
		blob.ZstdBody: strings.Repeat("a page that compresses ", 20),
	} {
		t.Run(string(kind), func(t *testing.T) {
			path := t.TempDir()
			s := open(t, path)
			ref := put(t, s, content)
			name := filepath.Join(path, nameOf(ref))
			intact := readFile(t, name)
			if intact[4] != kind {
				t.Fatalf("stored as %q, want %q", intact[4], kind)
			}
			for bit := range 8 * len(intact) {
				damaged := bytes.Clone(intact)
				damaged[bit/8] ^= 1 << (bit % 8)
				writeFile(t, name, damaged)
				wantCorrupt(t, s, ref, fmt.Sprintf("bit %d of byte %d", bit%8, bit/8))
			}
			put(t, s, content)
			if got := readFile(t, name); !bytes.Equal(got, intact) {
				t.Error("Put did not restore the file")
			}
		})
	}
}

func TestDamageIsFoundAndHealed(t *testing.T) {
	content := strings.Repeat("a page that compresses ", 20)
	damages := map[string]func(t *testing.T, name string, file []byte){
		"cut in the header": func(t *testing.T, name string, file []byte) { writeFile(t, name, file[:10]) },
		"cut in the body":   func(t *testing.T, name string, file []byte) { writeFile(t, name, file[:len(file)-1]) },
		"emptied":           func(t *testing.T, name string, _ []byte) { writeFile(t, name, nil) },
		"extended":          func(t *testing.T, name string, file []byte) { writeFile(t, name, append(file, 0)) },
		"zeroed":            func(t *testing.T, name string, file []byte) { writeFile(t, name, make([]byte, len(file))) },
		"bare content":      func(t *testing.T, name string, _ []byte) { writeFile(t, name, []byte(content)) },
		"another blob's file": func(t *testing.T, name string, _ []byte) {
			other := open(t, t.TempDir())
			ref := put(t, other, "other content")
			writeFile(t, name, readFile(t, filepath.Join(other.files.path, nameOf(ref))))
		},
		"replaced by a link to the same bytes": func(t *testing.T, name string, file []byte) {
			beside := filepath.Join(filepath.Dir(name), "beside")
			writeFile(t, beside, file)
			if err := errors.Join(os.Remove(name), os.Symlink("beside", name)); err != nil {
				t.Skip(err)
			}
		},
	}
	for what, damage := range damages {
		t.Run(what, func(t *testing.T) {
			path := t.TempDir()
			s := open(t, path)
			ref := put(t, s, content)
			name := filepath.Join(path, nameOf(ref))
			damage(t, name, readFile(t, name))
			wantCorrupt(t, s, ref, what)
			put(t, s, content)
			wantContent(t, s, ref, content)
		})
	}
}

// What is found on disk cannot make reading it dear: a forged or overgrown file
// is refused for a small part of the memory it asks for.
func TestReadingIsBounded(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	ref := put(t, s, "small")
	name := filepath.Join(path, nameOf(ref))
	forge := func(size int, body []byte) {
		file := append(make([]byte, blob.FormHeader), body...)
		blob.Seal(file, ref, blob.ZstdBody, size)
		writeFile(t, name, file)
	}
	bomb := s.files.codec.Encode(ref, make([]byte, 256<<20))[blob.FormHeader:]
	for what, plant := range map[string]func(){
		"bomb behind a small length": func() { forge(100, bomb) },
		"length over the limit":      func() { forge(blob.MaxSize+1, bomb) },
		"file over the limit": func() {
			if err := os.Truncate(name, blob.MaxForm+1); err != nil { // sparse
				t.Skip(err)
			}
		},
	} {
		plant()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		wantCorrupt(t, s, ref, what)
		runtime.ReadMemStats(&after)
		if spent := (after.TotalAlloc - before.TotalAlloc) >> 20; spent > 16 {
			t.Errorf("%s: refusing it took %d MiB, want at most 16", what, spent)
		}
	}
	forge(blob.MaxSize+1, nil)
	if info, err := s.Stat(context.Background(), ref); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("Stat = %v, %v, want ErrCorrupt", info, err)
	}
}
