package durable_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// A line is sound only as it was written, and only as what it was written for.
func TestLines(t *testing.T) {
	line := durable.SealLine("cats", []byte(`{"name":"Mia"}`+"\n"))
	text := bytes.TrimSuffix(line, []byte("\n"))
	if !json.Valid(text) || len(line) != len(text)+1 {
		t.Fatalf("the line is %q", line)
	}
	for _, c := range []struct {
		tag, text string
		sealed    bool
		err       error
	}{
		{"cats", string(text), true, nil},
		{"dogs", string(text), true, durable.ErrSum},
		{"cats", strings.Replace(string(text), "Mia", "Mio", 1), true, durable.ErrSum},
		{"cats", `{"name":"Mia"}`, false, nil},
		{"cats", "", false, nil},
	} {
		if sealed, err := durable.CheckLine(c.tag, []byte(c.text)); sealed != c.sealed || !errors.Is(err, c.err) {
			t.Errorf("%s %q: %t, %v", c.tag, c.text, sealed, err)
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
	for i, want := range []bool{true, false} { // the second time it is not there
		if struck, err := lines[1].Strike(path); struck != want || err != nil {
			t.Errorf("time %d: %t, %v", i+1, struck, err)
		}
	}
	if left := read(); len(left) != 2 || left[0].N != 1 || left[1].N != 3 {
		t.Errorf("left: %v", left)
	}
}
