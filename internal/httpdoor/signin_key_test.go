package httpdoor

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func TestOpenKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "web", "key")
	if _, err := OpenKey(path, iotest.ErrReader(errors.New("dry"))); !errors.Is(err, marchwarden.CodeUnavailable) {
		t.Errorf("without random bytes: %v", err)
	}
	key, err := OpenKey(path, rand.Reader)
	if err != nil || len(key) != KeySize {
		t.Fatalf("%d bytes, %v", len(key), err)
	}
	again, err := OpenKey(path, iotest.ErrReader(errors.New("dry")))
	if err != nil || !bytes.Equal(key, again) {
		t.Errorf("once more: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKey(path, rand.Reader); !errors.Is(err, marchwarden.CodeDenied) {
		t.Errorf("that others can read: %v", err)
	}
	for _, text := range []string{"", "secretsecret", strings.Repeat("ab", KeySize-1), strings.Repeat("ab", KeySize+8), strings.Repeat("xy", KeySize)} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenKey(path, rand.Reader)
		if !errors.Is(err, marchwarden.CodeCorrupt) || len(text) > 3 && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != text {
			t.Errorf("%q became %q, %v", text, now, err)
		}
	}
}
