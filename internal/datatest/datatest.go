// Package datatest reads the public data sets that lie beside the repository, in
// shared/data, for the tests that measure on them. The sets are no part of the
// project: where they are missing a test that asks for one is skipped, and says so.
// What is measured is held against a committed file.
package datatest

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Path is where a data set is, such as "qa/squad2.jsonl.gz". It skips the test when
// the set is not there.
func Path(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the test does not run below the module's root")
		}
	}
	path := filepath.Join(dir, "..", "shared", "data", filepath.FromSlash(name))
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("not measured: %v", err)
	}
	return path
}

// Rows reads a set of one JSON object a line, named without its ".jsonl.gz".
func Rows[T any](t testing.TB, name string) []T {
	t.Helper()
	r := unzip(t, Path(t, name+".jsonl.gz"))
	var rows []T
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var row T
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if sc.Err() != nil || len(rows) == 0 {
		t.Fatalf("%s: %d rows: %v", name, len(rows), sc.Err())
	}
	return rows
}

// File is one file of an archive.
type File struct {
	Name string
	Data []byte
}

// Files reads those files of an archive, named with its ".tar.gz", whose names are
// wanted, in the order of the archive.
func Files(t testing.TB, name string, wanted func(name string) bool) []File {
	t.Helper()
	tr := tar.NewReader(unzip(t, Path(t, name)))
	var files []File
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || !wanted(h.Name) {
			continue
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, File{h.Name, data})
	}
	if len(files) == 0 {
		t.Fatalf("%s holds no file that is wanted", name)
	}
	return files
}

func unzip(t testing.TB, path string) io.Reader {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // read-only
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return zr
}

// Golden compares with a committed file, or rewrites it on update.
func Golden(t testing.TB, path, got string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; if the change is meant, run the test with -update\n--- want\n%s--- got\n%s", path, want, got)
	}
}
