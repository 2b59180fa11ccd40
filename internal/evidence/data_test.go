package evidence

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sharedData holds public benchmark sets beside the repository; they are not
// part of it.
const sharedData = "../../../shared/data"

// readRows reads a set of the benchmark data, one row a line, or skips the test.
func readRows[T any](t *testing.T, name string) []T {
	t.Helper()
	f, err := os.Open(filepath.Join(sharedData, name+".jsonl.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("not measured: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var rows []T
	sc := bufio.NewScanner(zr)
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

// order is a number that looks random and is always the same.
func order(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// untar reads a set of files of the benchmark data, or skips the test.
func untar(t *testing.T, name string) map[string][]byte {
	t.Helper()
	f, err := os.Open(filepath.Join(sharedData, name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("not measured: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for tr := tar.NewReader(zr); ; {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "./")] = raw
	}
}
