package extract

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	readability "codeberg.org/readeck/go-readability/v2"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

var update = flag.Bool("update", false, "rewrite testdata/quality.txt")

// sharedData holds public benchmark sets beside the repository; they are not part of it.
const sharedData = "../../../../shared/data"

// TestQuality measures extraction on public sets and compares with the committed numbers. A change for the worse or the better shows in the diff of
// testdata/quality.txt, rewritten with -update.
func TestQuality(t *testing.T) {
	if testing.Short() {
		t.Skip("quality: skipped with -short")
	}
	if _, err := os.Stat(sharedData); err != nil {
		t.Skipf("quality: no benchmark data at %s", sharedData)
	}
	x := New(Config{CacheDir: pdfCache(t)})
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	var report strings.Builder
	report.WriteString("# set metric value; compared within 0.005\n")
	readabilityQuality(t, x, &report)
	trafilaturaQuality(t, x, &report)
	pdfQuality(t, x, &report)
	t.Log("\n" + report.String())
	const golden = "testdata/quality.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(report.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	compareNumbers(t, string(want), report.String())
}

func compareNumbers(t *testing.T, want, got string) {
	t.Helper()
	w, g := strings.Split(strings.TrimSpace(want), "\n"), strings.Split(strings.TrimSpace(got), "\n")
	if len(w) != len(g) {
		t.Fatalf("quality has %d lines, golden file %d; run with -update and look at the diff", len(g), len(w))
	}
	for i := range w {
		var a, b float64
		wi, gi := strings.LastIndexByte(w[i], ' '), strings.LastIndexByte(g[i], ' ')
		_, errA := fmt.Sscan(w[i][wi+1:], &a)
		_, errB := fmt.Sscan(g[i][gi+1:], &b)
		if w[i] == g[i] {
			continue
		}
		if w[i][:wi] != g[i][:gi] || errA != nil || errB != nil || math.Abs(a-b) > 0.005 {
			t.Errorf("quality changed:\n got %s\nwant %s", g[i], w[i])
		}
	}
}

// readabilityQuality takes the word-level F1 against the expected article. The set was made by running readability, so the library without our pruning has its own
// output for its goal: its number stands beside ours as the upper mark.
func readabilityQuality(t *testing.T, x *Extractor, report *strings.Builder) {
	files := untar(t, "pages/readability.tar.gz")
	var f1, plain float64
	var worst []string
	var spent time.Duration
	pages := 0
	for _, name := range sortedNames(files) {
		dir, base := path.Split(name)
		if base != "source.html" {
			continue
		}
		pages++
		start := time.Now()
		doc, err := x.Extract(context.Background(), "http://fakehost/test/page.html", files[name])
		spent += time.Since(start)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if again, err := x.Extract(context.Background(), "http://fakehost/test/page.html", files[name]); err != nil || !cmp.Equal(doc, again) {
			t.Errorf("%s: a second extraction differs: %v", name, err)
		}
		expected := htmlText(mustParse(t, files[dir+"expected.html"]))
		f := wordF1(expected, doc.Text)
		f1 += f
		plain += wordF1(expected, plainReadability(t, files[name]))
		if f < 0.8 {
			worst = append(worst, fmt.Sprintf("%s %.2f", dir, f))
		}
	}
	t.Logf("readability: %d pages, %.1f ms a page; below 0.8: %s", pages, float64(spent.Milliseconds())/float64(pages), strings.Join(worst, ", "))
	n := float64(pages)
	fmt.Fprintf(report, "readability pages %d\nreadability word-F1 %.4f\nreadability word-F1-library-alone %.4f\n", pages, f1/n, plain/n)
}

// trafilaturaQuality counts strings that must and must not be in the text, as that project's own evaluation does.
func trafilaturaQuality(t *testing.T, x *Extractor, report *strings.Builder) {
	files := untar(t, "pages/trafilatura-sample.tar.gz")
	var pages map[string]struct {
		File, Title, Author, Date string
		With, Without             []string
	}
	if err := json.Unmarshal(files["evaldata.json"], &pages); err != nil {
		t.Fatal(err)
	}
	var tp, fn, fp, tn, title, titles, author, authors, date, dates float64
	var spent time.Duration
	for _, address := range sortedNames(pages) {
		p := pages[address]
		start := time.Now()
		doc, err := x.Extract(context.Background(), p.File, files["html/"+p.File])
		spent += time.Since(start)
		if err != nil {
			t.Errorf("%s: %v", p.File, err)
			continue
		}
		text := strings.Join(strings.Fields(doc.Text), " ")
		for _, s := range p.With {
			tally(strings.Contains(text, strings.Join(strings.Fields(s), " ")), &tp, &fn)
		}
		for _, s := range p.Without {
			tally(strings.Contains(text, strings.Join(strings.Fields(s), " ")), &fp, &tn)
		}
		count(&title, &titles, p.Title, doc.Title)
		count(&author, &authors, p.Author, doc.Author)
		count(&date, &dates, p.Date, doc.Published)
	}
	t.Logf("trafilatura: %d pages, %.1f ms a page", len(pages), float64(spent.Milliseconds())/float64(len(pages)))
	precision, recall := tp/(tp+fp), tp/(tp+fn)
	fmt.Fprintf(report, "trafilatura pages %d\ntrafilatura must-have %.4f\ntrafilatura must-not-have-absent %.4f\ntrafilatura F1 %.4f\n",
		len(pages), recall, tn/(tn+fp), 2*precision*recall/(precision+recall))
	fmt.Fprintf(report, "trafilatura title %.4f\ntrafilatura author %.4f\ntrafilatura date %.4f\n", title/titles, author/authors, date/dates)
}

func pdfQuality(t *testing.T, x *Extractor, report *strings.Builder) {
	files := untar(t, "pdf/py-pdf-samples.tar.gz")
	var read, pictures, encrypted, refused, panics int
	start := time.Now()
	for _, name := range sortedNames(files) {
		if path.Ext(name) != ".pdf" {
			continue
		}
		doc, err := x.Extract(context.Background(), name, files[name])
		switch {
		case errors.Is(err, ErrEncrypted):
			encrypted++
		case err != nil && strings.Contains(err.Error(), "panic"):
			panics++
		case err != nil:
			refused++
		case doc.NonText:
			pictures++
		default:
			read++
		}
	}
	t.Logf("pdf: %d files in %v", len(files), time.Since(start).Round(time.Millisecond))
	fmt.Fprintf(report, "pdf read %d\npdf without-text %d\npdf encrypted %d\npdf refused %d\npdf panics %d\n", read, pictures, encrypted, refused, panics)
}

func tally(found bool, yes, no *float64) {
	if found {
		*yes++
	} else {
		*no++
	}
}

// count compares a metadata field where the set gives one.
func count(right, all *float64, want, got string) {
	if want = oneLine(want, 500); want != "" {
		*all++
		if strings.EqualFold(want, got) {
			*right++
		}
	}
}

func plainReadability(t *testing.T, raw []byte) string {
	t.Helper()
	base := &url.URL{Scheme: "http", Host: "fakehost", Path: "/test/page.html"}
	parser := readability.NewParser()
	article, err := parser.ParseAndMutate(mustParse(t, raw), base)
	if err != nil || article.Node == nil {
		return ""
	}
	return htmlText(article.Node)
}

func mustParse(t *testing.T, raw []byte) *html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(decode(raw, fmtHTML)))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// wordF1 compares two texts as bags of words.
func wordF1(want, got string) float64 {
	words := func(s string) []string {
		return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	}
	w, g := words(want), words(got)
	if len(w) == 0 && len(g) == 0 {
		return 1
	}
	bag := make(map[string]int)
	for _, s := range w {
		bag[s]++
	}
	common := 0
	for _, s := range g {
		if bag[s] > 0 {
			bag[s]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(w)+len(g))
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func untar(t *testing.T, name string) map[string][]byte {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(sharedData, name))
	if err != nil {
		t.Skipf("quality: %v", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[path.Clean(h.Name)], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// pdfCache is a compiled-module cache that all tests of one run share.
func pdfCache(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "marchwarden-extract-test")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
