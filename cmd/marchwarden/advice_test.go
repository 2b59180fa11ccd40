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

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

func TestAdvised(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(path string, errno syscall.Errno) error {
		return marchwarden.Wrap(fmt.Errorf("put: %w", &fs.PathError{Op: "write", Path: path, Err: errno}), marchwarden.CodeUnavailable, "store")
	}
	for name, tc := range map[string]struct {
		home string
		err  error
		want string // the hint
	}{
		"full":              {dir, at("/elsewhere/r.md", syscall.ENOSPC), "make room on the disk"},
		"full at home":      {dir, at(filepath.Join(dir, "blobs", "x"), syscall.ENOSPC), "make room on the disk, or set MARCHWARDEN_HOME to a folder on another one"},
		"quota":             {"", at("/elsewhere/r.md", syscall.EDQUOT), "make room on the disk"},
		"a neighbour":       {dir, at(dir+"2/x", syscall.ENOSPC), "make room on the disk"},
		"home is a file":    {file, at(filepath.Join(file, "library"), syscall.ENOTDIR), file + " is a file; set MARCHWARDEN_HOME to a folder that can be written"},
		"home below a file": {filepath.Join(file, "a", "b"), at(filepath.Join(file, "a", "b", "library"), syscall.ENOTDIR), file + " is a file; set MARCHWARDEN_HOME to a folder that can be written"},
		"another file":      {dir, at("/elsewhere/x", syscall.ENOTDIR), ""},
		"something else":    {dir, at(filepath.Join(dir, "x"), syscall.EIO), ""},
		"its own":           {dir, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "m", Hint: "h", Err: syscall.ENOSPC}, "h"},
	} {
		t.Run(name, func(t *testing.T) {
			got := settings.Advised(tc.err, tc.home)
			if hint := marchwarden.HintOf(got); hint != tc.want {
				t.Errorf("hint %q, want %q", hint, tc.want)
			}
			if got.Error() != tc.err.Error() || marchwarden.CodeOf(got) != marchwarden.CodeOf(tc.err) {
				t.Errorf("%v (%s) became %v (%s)", tc.err, marchwarden.CodeOf(tc.err), got, marchwarden.CodeOf(got))
			}
		})
	}
}

// The words of the reader's own file are said once, and not those of the one beside
// it that is renamed.
func TestWriteOutSaysOnceWhatIsWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.md")
	err := writeOut(path, func(w io.Writer) error {
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
