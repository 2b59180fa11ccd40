package main

import (
	"os"
	"path/filepath"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// What is no model is refused before anything is written. That a model comes out as it
// went in is the business of embed/bert.
func TestPackRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"config.json": `{"model_type":"t5"}`, "layers": "\x02\x00\x00\x00\x00\x00\x00\x00{}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "out")
	for name, err := range map[string]error{
		"vectors": packVectors(dir, out, out+".txt"),
		"reader":  packReader(filepath.Join(dir, "layers"), "../../internal/embed/bert/minilm.q8", out),
	} {
		if marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if written, _ := filepath.Glob(out + "*"); len(written) > 0 {
		t.Errorf("written: %q", written)
	}
}
