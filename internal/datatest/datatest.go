// Package datatest reads the public data sets that lie beside the repository, in
// shared/data, for the tests that measure on them. The sets are no part of the
// project: where they are missing a test that asks for one is skipped, and says so.
// What is measured is held against a committed file. The package also says which form
// of a test is asked for.
package datatest

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Full reports whether the whole form of a test is asked for: MARCHWARDEN_TEST_FULL is
// set, as .ci/run and make do. The everyday form measures on a sample.
func Full() bool { return os.Getenv("MARCHWARDEN_TEST_FULL") != "" }

// Tried reports whether the i-th of many cases is tried: one of n every day, every one in
// the whole form.
func Tried(i, n int) bool { return Full() || i%n == 0 }

// Abreast lets so many parallel tests of a package run at once, whatever the number of
// processors, unless the command line says how many. It is for TestMain, in packages whose
// tests wait more than they work.
func Abreast(n int) {
	if f := flag.Lookup("test.parallel"); f != nil {
		f.DefValue = strconv.Itoa(n)
		if err := f.Value.Set(f.DefValue); err != nil {
			panic(err)
		}
	}
}

// FewChecks has rapid check a property twenty times instead of a hundred, except in the
// whole form. It is for tests that take long and are not parallel.
func FewChecks(t testing.TB) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if Full() || checks == nil {
		return
	}
	before := checks.Value.String()
	t.Cleanup(func() { _ = checks.Value.Set(before) }) // it was set to it
	if err := checks.Value.Set("20"); err != nil {
		t.Fatal(err)
	}
}

// PDFCache is a folder for the compiled reader of PDFs, which all tests share: to compile
// it takes seconds. The text of PDFs cannot be kept there, since a file has the name of its
// folder: each test reads its PDFs, beside others that run at the same time.
func PDFCache(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(temporary, "marchwarden-pdfium-test")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pdf-text"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

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

// GoldenNumbers compares lines of a set, words and a number with a committed file, or
// rewrites it on update: the words must be the same, the numbers as near as the tolerance
// says. In the everyday form, lines about sets that were not measured do not count.
func GoldenNumbers(t testing.TB, path, got string, tolerance float64, update bool) {
	t.Helper()
	if update && Full() {
		Golden(t, path, got, update)
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(data)
	if strings.TrimSpace(got) == "" {
		t.Fatalf("nothing was measured to compare with %s", path)
	}
	if !Full() {
		want = Measured(want, got)
	}
	w, g := strings.Split(strings.TrimSpace(want), "\n"), strings.Split(strings.TrimSpace(got), "\n")
	if len(w) != len(g) {
		t.Fatalf("%d lines, %s has %d; run with MARCHWARDEN_TEST_FULL=1 and -update, and look at the diff", len(g), path, len(w))
	}
	for i := range w {
		wi, gi := strings.LastIndexByte(w[i], ' ')+1, strings.LastIndexByte(g[i], ' ')+1
		a, errA := strconv.ParseFloat(w[i][wi:], 64)
		b, errB := strconv.ParseFloat(g[i][gi:], 64)
		if w[i] != g[i] && (w[i][:wi] != g[i][:gi] || errA != nil || errB != nil || math.Abs(a-b) > tolerance) {
			t.Errorf("%s changed:\n got %s\nwant %s", path, g[i], w[i])
		}
	}
}

// Measured is a golden file without the lines whose first word, the set, begins no line
// of what was measured.
func Measured(golden, got string) string {
	set := func(line string) string { return strings.SplitN(strings.TrimSpace(line), " ", 2)[0] }
	measured := map[string]bool{}
	for line := range strings.Lines(got) {
		measured[set(line)] = true
	}
	var b strings.Builder
	for line := range strings.Lines(golden) {
		if measured[set(line)] {
			b.WriteString(line)
		}
	}
	return b.String()
}
