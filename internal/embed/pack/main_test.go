package main

import (
	"path/filepath"
	"testing"
	"testing/fstest"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// TestRunRefuses: what is no model is refused before anything is written. That a
// model comes out as it went in is the business of embed/bert.
func TestRunRefuses(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	err := run(fstest.MapFS{"config.json": {Data: []byte(`{"model_type":"t5"}`)}}, out, out+".txt")
	if marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
		t.Errorf("error %v", err)
	}
	if written, _ := filepath.Glob(out + "*"); len(written) > 0 {
		t.Errorf("written: %q", written)
	}
}
