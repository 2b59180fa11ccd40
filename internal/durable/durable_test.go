package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

func TestSyncDir(t *testing.T) {
	dir := t.TempDir()
	d, err := os.Open(dir)
	if err := durable.SyncDir(d, err); err != nil {
		t.Error(err)
	}
	if err := d.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the folder was left open: %v", err)
	}
	if err := durable.SyncDir(os.Open(filepath.Join(dir, "none"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
}
