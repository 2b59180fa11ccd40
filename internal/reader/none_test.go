//go:build nomodel

package reader

import (
	"errors"
	"testing"
)

func TestWithoutModel(t *testing.T) {
	if r, err := New(); r != nil || !errors.Is(err, ErrNoModel) {
		t.Errorf("New: %v, %v", r, err)
	}
}
