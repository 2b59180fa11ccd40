package blob

import (
	"errors"
	"strings"
	"testing"
)

// A header that is right in itself must not talk the decoder into more than it
// announces, nor is a body of other content left to the digest to find, except one that
// is right in everything else.
func TestForgeriesAreFound(t *testing.T) {
	c, err := NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	ref := Of([]byte("the real content"))
	bomb := c.enc.EncodeAll(make([]byte, 50<<20), nil)
	forge := func(kind byte, size int, body []byte) []byte {
		file := append(make([]byte, FormHeader), body...)
		Seal(file, ref, kind, size)
		return file
	}
	for what, file := range map[string][]byte{
		"longer than it says":    forge(RawBody, 4, []byte("false")),
		"bomb":                   forge(ZstdBody, 100, bomb),
		"frame shorter than it":  forge(ZstdBody, 100<<20, bomb),
		"over the limit":         forge(ZstdBody, MaxSize+1, bomb),
		"not a frame":            forge(ZstdBody, 5, []byte("false")),
		"no frame":               forge(ZstdBody, 5, nil),
		"body of unknown kind":   forge('?', 5, []byte("false")),
		"real content of a kind": forge('?', 16, []byte("the real content")),
	} {
		if content, err := c.Decode(ref, file); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %.60q, %v, want ErrCorrupt", what, content, err)
		}
	}
}

// The bytes of the form do not change: stores of earlier versions hold them.
func TestFormIsFixed(t *testing.T) {
	c, err := NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	content := []byte("a page")
	const raw = "MWB1r\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x06\x90\x03\x97}h\xe2\x8f\xf7a page"
	file := c.Encode(Of(content), content)
	if string(file) != raw {
		t.Errorf("the form is %q, want %q", file, raw)
	}
	if n, err := FormSize(Of(content), file[:FormHeader]); n != len(content) || err != nil {
		t.Errorf("Size = %d, %v", n, err)
	}
	// Only read: another version of the encoder may find a shorter frame.
	const compressed = "MWB1z\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xd2n\x83\xb4]\xc91\x90\xea(\xb5/\xfd\x00\x00}\x00\x008a page \x01T\a\x03+H\x05"
	want := strings.Repeat("a page ", 30)
	if got, err := c.Decode(Of([]byte(want)), []byte(compressed)); string(got) != want || err != nil {
		t.Errorf("Decode = %q, %v", got, err)
	}
}

// FuzzDecode feeds the decoder bodies that its checksums vouch for.
func FuzzDecode(f *testing.F) {
	c, err := NewCodec()
	if err != nil {
		f.Fatal(err)
	}
	content := []byte(strings.Repeat("a page ", 30))
	ref := Of(content)
	f.Add(byte(ZstdBody), len(content), c.Encode(ref, content)[FormHeader:])
	f.Add(byte(RawBody), len(content), content)
	f.Fuzz(func(t *testing.T, kind byte, size int, body []byte) {
		size &= 1<<20 - 1
		file := append(make([]byte, FormHeader), body...)
		Seal(file, ref, kind, size)
		got, err := c.Decode(ref, file)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("error %v, want ErrCorrupt", err)
		}
		if err == nil && len(got) != size {
			t.Errorf("%d bytes, want %d", len(got), size)
		}
	})
}
