//go:build nomodel

package bert

import (
	"errors"
	"testing"
)

func TestWithoutModel(t *testing.T) {
	if e, err := MiniLM(); e != nil || !errors.Is(err, ErrNoModel) {
		t.Errorf("MiniLM: %v, %v", e, err)
	}
	if b, words, err := MiniLMFiles(); b != nil || words != "" || !errors.Is(err, ErrNoModel) {
		t.Errorf("MiniLMFiles: %d bytes, %q, %v", len(b), words, err)
	}
}
