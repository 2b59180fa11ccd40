package main

import (
	"os"
	"path/filepath"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// TestRunRefuses: what is no model is refused before anything is written. That a
// model comes out as it went in is the business of embed/bert.
func TestRunRefuses(t *testing.T) {
	dir := t.TempDir()
	layers, out := filepath.Join(dir, "layers"), filepath.Join(dir, "out")
	if err := os.WriteFile(layers, []byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(layers, "../../embed/minilm/minilm.q8", out); marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("something is written")
	}
}
