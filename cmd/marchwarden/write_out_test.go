package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// The words of the reader's own file are said once, and not those of the one beside
// it that is renamed.
func TestWriteOutSaysOnceWhatIsWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.md")
	err := settings.WriteOut(path, func(w io.Writer) error {
		if _, err := io.WriteString(w, "begun"); err != nil {
			return err
		}
		return fmt.Errorf("write result: %w", &fs.PathError{Op: "write", Path: path + ".tmp", Err: syscall.ENOSPC})
	})
	if want := "write " + path + ": no space left on device"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Error("the cause is lost")
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBrief(t *testing.T) {
	for _, tc := range []struct {
		line string
		most int
		want string
	}{
		{"", 10, ""},
		{"query db: refused", 17, "query db: refused"},
		{"query trials@127.0.0.1:5432: refused", 20, "query…"},
		{"dial tcp 127.0.0.1:5432: refused", 26, "dial tcp 127.0.0.1:5432…"},
		{"dial tcp 127.0.0.1:5432: refused", 25, "dial tcp 127.0.0.1:5432…"},
		{"dial tcp 127.0.0.1:5432: refused", 24, "dial tcp…"},
		{"lookup håll på er", 12, "lookup håll…"},
		{strings.Repeat("x", 30), 10, "xxxxxxxxx…"},
	} {
		if got := plaintext.Brief(tc.line, tc.most); got != tc.want {
			t.Errorf("plaintext.Brief(%q, %d) = %q, want %q", tc.line, tc.most, got, tc.want)
		}
	}
}
