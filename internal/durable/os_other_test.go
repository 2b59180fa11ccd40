//go:build !windows

package durable

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

type ownedBy uint32

func (ownedBy) Name() string       { return "secret" }
func (ownedBy) Size() int64        { return 0 }
func (ownedBy) Mode() fs.FileMode  { return 0o440 }
func (ownedBy) ModTime() time.Time { return time.Time{} }
func (ownedBy) IsDir() bool        { return false }
func (o ownedBy) Sys() any         { return &syscall.Stat_t{Uid: uint32(o)} }

// A group may read what root hands to another user; in no other case may any but the owner read,
// and only the owner may ever write.
func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		owner uint32
		user  int
		want  bool
	}{{0, 1000, true}, {0, 0, false}, {1000, 1000, false}, {1000, 0, false}, {1001, 1000, false}} {
		if got := mounted(c.owner, c.user); got != c.want {
			t.Errorf("a file of %d, read by %d: %t", c.owner, c.user, got)
		}
	}
	if got := allowed(ownedBy(4242)); got != 0o700 {
		t.Errorf("a user's file: %#o", got)
	}
}

// A pipe is refused, not waited for.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := ReadPrivate(path, "pipe", 64); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("it says %v", err)
	}
}

// A lock that was given back is free, though a child that is being started still has the file.
func TestReleaseWhileAChildStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := Own(path, func(f *os.File) error { return Lock(f, false) })
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := open()
	child, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(child)
	if err := Release(f); err != nil {
		t.Fatal(err)
	}
	if err := Release(open()); err != nil {
		t.Fatal(err)
	}
}
