package form

import (
	"errors"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
)

// A header that is right in itself must not talk the decoder into more than it
// announces, nor is a body of other content left to the digest to find, except one that
// is right in everything else.
func TestForgeriesAreFound(t *testing.T) {
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	ref := blob.Of([]byte("the real content"))
	bomb := c.enc.EncodeAll(make([]byte, 50<<20), nil)
	forge := func(kind byte, size int, body []byte) []byte {
		file := append(make([]byte, HeaderLen), body...)
		Seal(file, ref, kind, size)
		return file
	}
	for what, file := range map[string][]byte{
		"longer than it says":    forge(Raw, 4, []byte("false")),
		"bomb":                   forge(Zstd, 100, bomb),
		"frame shorter than it":  forge(Zstd, 100<<20, bomb),
		"over the limit":         forge(Zstd, blob.MaxSize+1, bomb),
		"not a frame":            forge(Zstd, 5, []byte("false")),
		"no frame":               forge(Zstd, 5, nil),
		"body of unknown kind":   forge('?', 5, []byte("false")),
		"real content of a kind": forge('?', 16, []byte("the real content")),
	} {
		if content, err := c.Decode(ref, file); !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("%s: %.60q, %v, want ErrCorrupt", what, content, err)
		}
	}
}

// The bytes of the form do not change: stores of earlier versions hold them.
func TestFormIsFixed(t *testing.T) {
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	content := []byte("a page")
	const raw = "MWB1r\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x06\x90\x03\x97}h\xe2\x8f\xf7a page"
	file := c.Encode(blob.Of(content), content)
	if string(file) != raw {
		t.Errorf("the form is %q, want %q", file, raw)
	}
	if n, err := Size(blob.Of(content), file[:HeaderLen]); n != len(content) || err != nil {
		t.Errorf("Size = %d, %v", n, err)
	}
	// Only read: another version of the encoder may find a shorter frame.
	const compressed = "MWB1z\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xd2n\x83\xb4]\xc91\x90\xea(\xb5/\xfd\x00\x00}\x00\x008a page \x01T\a\x03+H\x05"
	want := strings.Repeat("a page ", 30)
	if got, err := c.Decode(blob.Of([]byte(want)), []byte(compressed)); string(got) != want || err != nil {
		t.Errorf("Decode = %q, %v", got, err)
	}
}

// FuzzDecode feeds the decoder bodies that its checksums vouch for.
func FuzzDecode(f *testing.F) {
	c, err := New()
	if err != nil {
		f.Fatal(err)
	}
	content := []byte(strings.Repeat("a page ", 30))
	ref := blob.Of(content)
	f.Add(byte(Zstd), len(content), c.Encode(ref, content)[HeaderLen:])
	f.Add(byte(Raw), len(content), content)
	f.Fuzz(func(t *testing.T, kind byte, size int, body []byte) {
		size &= 1<<20 - 1
		file := append(make([]byte, HeaderLen), body...)
		Seal(file, ref, kind, size)
		got, err := c.Decode(ref, file)
		if err != nil && !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("error %v, want ErrCorrupt", err)
		}
		if err == nil && len(got) != size {
			t.Errorf("%d bytes, want %d", len(got), size)
		}
	})
}
