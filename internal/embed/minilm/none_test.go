//go:build nomodel

package minilm

import (
	"errors"
	"testing"
)

func TestWithoutModel(t *testing.T) {
	if e, err := New(); e != nil || !errors.Is(err, ErrNoModel) {
		t.Errorf("New: %v, %v", e, err)
	}
	if b, words, err := Files(); b != nil || words != "" || !errors.Is(err, ErrNoModel) {
		t.Errorf("Files: %d bytes, %q, %v", len(b), words, err)
	}
}
