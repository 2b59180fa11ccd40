package durable_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// A line is sound only as it was written, and only as what it was written for.
func TestLines(t *testing.T) {
	line, sum := durable.SealLine([]byte(`{"name":"Mia"}`+"\n"), "cats")
	text := bytes.TrimSuffix(line, []byte("\n"))
	if want := `{"name":"Mia","sum":"7d85767ad1f69bda"}`; string(text) != want || len(line) != len(text)+1 || sum != "7d85767ad1f69bda" { // files have such lines
		t.Fatalf("the line is %q", line)
	}
	for _, c := range []struct {
		tag, text, body string
		err             error
	}{
		{"cats", string(text), `{"name":"Mia"`, nil},
		{"dogs", string(text), `{"name":"Mia"`, durable.ErrSum},
		{"cats", strings.Replace(string(text), "Mia", "Mio", 1), `{"name":"Mio"`, durable.ErrSum},
		{"cats", `{"name":"Mia"}`, `{"name":"Mia"}`, nil},
		{"cats", "", "", nil},
	} {
		body, got, err := durable.CheckLine([]byte(c.text), c.tag)
		if string(body) != c.body || (got == sum) != (c.body != c.text) || !errors.Is(err, c.err) {
			t.Errorf("%s %q: %q, %q, %v", c.tag, c.text, body, got, err)
		}
	}
	path := filepath.Join(t.TempDir(), "cats.jsonl")
	for range 3 {
		if err := durable.AppendLine(path, line); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (lines []durable.Line) {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := durable.ScanLines(f, 1<<10, func(l durable.Line) { lines = append(lines, l) }); err != nil {
			t.Fatal(err)
		}
		return lines
	}
	lines := read()
	if len(lines) != 3 || lines[2].N != 3 || !bytes.Equal(lines[1].Text, text) {
		t.Fatalf("read %v", lines)
	}
}

// One at a time has a lock; another waits for a while. What cannot be locked is free.
func TestLockFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "lock")
		unlock, err := durable.LockFile(path)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := durable.LockFile(path); !errors.Is(err, durable.ErrLocked) || time.Since(began) < time.Second {
			t.Errorf("a second one: %v after %v", err, time.Since(began))
		}
		time.AfterFunc(time.Second, func() { _ = unlock() })
		unlockThird, err := durable.LockFile(path)
		if err != nil {
			t.Fatalf("a third one, which the first makes way for: %v", err)
		}
		if err := unlockThird(); err != nil {
			t.Error(err)
		}
		closed, err := os.Open(path)
		if err != nil || closed.Close() != nil {
			t.Fatal(err)
		}
		if err := durable.Hold(closed, time.Second); err != nil || durable.Lock(closed, false) == nil {
			t.Errorf("a file without locks: %v", err)
		}
	})
}

// A file is replaced as a whole or not at all, and nothing is left beside it.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pins.json")
	for _, text := range []string{"one", "a longer second", ""} {
		if err := os.WriteFile(path+".new", []byte("half of what a cra"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := durable.ReplaceFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	folder := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(folder, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.ReplaceFile(folder, []byte("no file")); err == nil {
		t.Error("a folder was replaced")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// The owner of a lock has the file of that name, even if the last owner removed it meanwhile.
func TestOwn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is open cannot be removed")
	}
	path := filepath.Join(t.TempDir(), "below", "lock")
	take := func(f *os.File) error { return durable.Lock(f, false) }
	first, err := durable.Own(path, take)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := durable.Own(path, take); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("what somebody owns: %v", err)
	}
	tries := 0
	second, err := durable.Own(path, func(f *os.File) error {
		switch tries++; tries { // it is open, and goes away, or becomes another
		case 1:
			err = errors.Join(os.Remove(path), first.Close())
		case 2:
			err = errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		return take(f)
	})
	if err != nil || tries != 3 {
		t.Fatalf("after %d tries: %v", tries, err)
	}
	defer second.Close()
	if _, err := durable.Own(path, take); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("what was made anew: %v", err)
	}
}
