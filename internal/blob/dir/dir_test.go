package dir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/blobtest"
)

func TestDir(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return open(t, t.TempDir()) })
}

func TestOpenCreatesPrivateDirectories(t *testing.T) {
	base := t.TempDir()
	path := filepath.Join(base, "home", "blobs")
	s := open(t, path)
	ref := put(t, s, "a page")
	modes := map[string]fs.FileMode{
		"home":                       0o700 | fs.ModeDir,
		"home/blobs":                 0o700 | fs.ModeDir,
		"home/blobs/sha256":          0o700 | fs.ModeDir,
		"home/blobs/" + shardOf(ref): 0o700 | fs.ModeDir,
		"home/blobs/" + nameOf(ref):  0o600,
	}
	for name, want := range modes {
		info, err := os.Lstat(filepath.Join(base, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
	if got := tree(t, path); len(got) != 1 {
		t.Errorf("files in the store: %v, want only the blob", got)
	}
}

func TestContentOutlivesTheStore(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	ref := put(t, s, "kept")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(context.Background(), ref); err == nil {
		t.Error("Get after Close succeeded")
	}
	wantContent(t, open(t, path), ref, "kept")
}

func TestTextIsCompressed(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	ref := put(t, s, strings.Repeat("Peas are sown in March. ", 1000))
	info, err := os.Stat(filepath.Join(path, nameOf(ref)))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 200 {
		t.Errorf("24,000 repetitive bytes take %d on disk", info.Size())
	}
}

func TestFailedPutLeavesNothingBehind(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	ref := blob.Of([]byte("no room"))
	if err := os.MkdirAll(filepath.Join(path, nameOf(ref), "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := s.Put(context.Background(), []byte("no room"))
	if err == nil || !strings.Contains(err.Error(), ref.String()) {
		t.Errorf("Put over a directory: error %v, want one that names %s", err, ref)
	}
	if got := tree(t, path); len(got) != 0 {
		t.Errorf("files left behind: %v", got)
	}
}

func TestLeftoversAreIgnoredAndSwept(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	ref, lost := put(t, s, "finished"), blob.Of([]byte("cut short"))
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	old := filepath.Join(path, nameOf(ref)+".OLD.tmp")
	young := filepath.Join(path, nameOf(ref)+".YOUNG.tmp")
	foreign := filepath.Join(path, shardOf(ref), "README")
	for name, age := range map[string]time.Duration{old: 2 * time.Hour, young: time.Minute, foreign: 2 * time.Hour} {
		writeFile(t, name, []byte("half a fi"))
		if err := os.Chtimes(name, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(path, digestDir, "notes.txt"), nil)

	s = open(t, path)
	if _, err := s.Get(context.Background(), lost); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get of the unfinished blob: %v, want ErrNotFound", err)
	}

	if n, err := s.Sweep(context.Background(), now.Add(-time.Hour)); n != 1 || err != nil {
		t.Errorf("Sweep = %d, %v, want 1", n, err)
	}
	for name, want := range map[string]bool{old: false, young: true, foreign: true} {
		if _, err := os.Lstat(name); (err == nil) != want {
			t.Errorf("after Sweep, %s exists: %t, want %t", filepath.Base(name), err == nil, want)
		}
	}
	wantContent(t, s, ref, "finished")
}

func TestOpenErrors(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	writeFile(t, file, nil)
	occupied := filepath.Join(base, "occupied")
	if err := os.Mkdir(occupied, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(occupied, digestDir), nil)
	for _, path := range []string{file, filepath.Join(file, "below"), occupied} {
		s, err := Open(path)
		if err == nil {
			t.Errorf("Open(%s) succeeded with %v", path, s)
			continue
		}
		if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "not a directory") {
			t.Errorf("error %q does not say that %s is not a directory", err, path)
		}
	}
}

// Links may point where they like: nothing outside is read or written.
func TestLinksOutOfTheStoreAreNotFollowed(t *testing.T) {
	const content = "what the link would reveal"
	ref := blob.Of([]byte(content))
	outside := t.TempDir()
	far := open(t, outside)
	put(t, far, content) // the very same layout outside, so only the link decides
	link := func(t *testing.T, target, name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, name); err != nil {
			t.Skip(err)
		}
	}

	t.Run("blob", func(t *testing.T) {
		path := t.TempDir()
		link(t, filepath.Join(outside, nameOf(ref)), filepath.Join(path, nameOf(ref)))
		s := open(t, path)
		wantCorrupt(t, s, ref, "link")
		before := tree(t, outside)
		put(t, s, content)
		wantContent(t, s, ref, content)
		if info, err := os.Lstat(filepath.Join(path, nameOf(ref))); err != nil || !info.Mode().IsRegular() {
			t.Errorf("Put left %v, %v, want a regular file", info, err)
		}
		if after := tree(t, outside); len(after) != len(before) {
			t.Errorf("outside: %v, want %v", after, before)
		}
	})
	t.Run("shard", func(t *testing.T) {
		path := t.TempDir()
		link(t, filepath.Join(outside, shardOf(ref)), filepath.Join(path, shardOf(ref)))
		s := open(t, path)
		before := tree(t, outside)
		if content, err := s.Get(context.Background(), ref); err == nil || errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Get = %q, %v, want an error other than ErrNotFound", content, err)
		}
		if _, err := s.Put(context.Background(), []byte(content)); err == nil {
			t.Error("Put through the link succeeded")
		}
		if err := s.Files(context.Background(), func(blob.File) error { return nil }); err == nil {
			t.Error("Files through the link succeeded")
		}
		if after := tree(t, outside); len(after) != len(before) {
			t.Errorf("outside: %v, want %v", after, before)
		}
	})
	t.Run("sha256", func(t *testing.T) {
		path := t.TempDir()
		link(t, filepath.Join(outside, digestDir), filepath.Join(path, digestDir))
		if _, err := Open(path); err == nil {
			t.Error("Open through the link succeeded")
		}
	})
}

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func put(t *testing.T, s blob.Store, content string) blob.Ref {
	t.Helper()
	ref, err := s.Put(context.Background(), []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func wantContent(t *testing.T, s blob.Store, ref blob.Ref, want string) {
	t.Helper()
	if got, err := s.Get(context.Background(), ref); err != nil || string(got) != want {
		t.Errorf("Get(%s) = %.60q, %v, want %.60q", ref, got, err, want)
	}
}

func wantCorrupt(t *testing.T, s blob.Store, ref blob.Ref, what string) {
	t.Helper()
	content, err := s.Get(context.Background(), ref)
	if content != nil || !errors.Is(err, blob.ErrCorrupt) || errors.Is(err, blob.ErrNotFound) {
		t.Errorf("%s: Get = %.60q, %v, want nothing and ErrCorrupt", what, content, err)
	} else if !strings.Contains(err.Error(), ref.String()) {
		t.Errorf("%s: error %q does not name %s", what, err, ref)
	}
}

// tree lists the files below a directory.
func tree(t *testing.T, path string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != lockName {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
