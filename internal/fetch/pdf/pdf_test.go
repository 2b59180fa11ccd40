package pdf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

// makePDF writes a PDF with one page for each text.
func makePDF(pages ...string) string {
	var b strings.Builder
	var offsets []int
	object := func(body string) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(offsets), body)
	}
	b.WriteString("%PDF-1.4\n")
	object("<< /Type /Catalog /Pages 2 0 R >>")
	var kids strings.Builder
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", 5+2*i)
	}
	object(fmt.Sprintf("<< /Type /Pages /Kids [ %s] /Count %d >>", &kids, len(pages)))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	object("<< /Title (Garden plan) /Author (Ann Example) /CreationDate (D:20240305101500+01'00') >>")
	for i, text := range pages {
		object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", 6+2*i))
		var content strings.Builder
		content.WriteString("BT /F1 12 Tf 14 TL 40 740 Td ")
		for line := range strings.SplitSeq(text, "\n") {
			fmt.Fprintf(&content, "(%s) Tj T* ", line)
		}
		content.WriteString("ET")
		object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", content.Len(), &content))
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, xref)
	return b.String()
}

func newExtractor(t testing.TB, cfg Config) *extract.Extractor {
	t.Helper()
	cfg.CacheDir = datatest.PDFCache(t)
	x := extract.New(extract.Config{PDF: New(cfg)})
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func TestPDF(t *testing.T) {
	x := newExtractor(t, Config{})
	good := makePDF("Beans fix nitrogen.\nSee https://example.org/x.", "Second page.")
	const text = "Beans fix nitrogen.\nSee https://example.org/x.\n\nSecond page."
	want := extract.Document{
		Text: text, Title: "Garden plan", Author: "Ann Example", Published: "2024-03-05", Links: []string{"https://example.org/x"},
		MediaType: "application/pdf", Extractor: "pdf/2", Pages: []int{0, strings.Index(text, "Second")},
	}
	check := func(name string) {
		t.Helper()
		d, err := x.ExtractAs(t.Context(), name, "text/html", []byte(good))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, d); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
	check("a.pdf")
	for name, c := range map[string]struct {
		raw  string
		want error
	}{
		"cut":       {good[:300], extract.ErrDamaged},
		"header":    {"%PDF-1.7\n", extract.ErrDamaged},
		"not a pdf": {"hello", extract.ErrDamaged},
		"encrypted": {strings.Replace(good, "/Info 4 0 R", "/Info 4 0 R /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <"+
			strings.Repeat("00", 32)+"> /U <"+strings.Repeat("00", 32)+"> >> /ID [<00><00>]", 1), extract.ErrEncrypted},
		"no pages": {strings.Replace(good, "/Kids [ 5 0 R 7 0 R ] /Count 2", "/Kids [ ] /Count 0", 1), extract.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := x.Extract(t.Context(), "a.pdf", []byte(c.raw)); !errors.Is(err, c.want) {
				t.Errorf("err %v, want %v", err, c.want)
			}
			check("https://example.org/no-extension")
		})
	}
	if d, err := x.Extract(t.Context(), "blank.pdf", []byte(makePDF(""))); err != nil || !d.NonText {
		t.Errorf("a page without text: %+v %v", d, err)
	}
}

func TestPDFInterrupted(t *testing.T) {
	// Six million characters on one page take seconds.
	slow := []byte(makePDF(strings.Repeat(strings.Repeat("x", 2000)+"\n", 3000)))
	x := newExtractor(t, Config{})
	if _, err := x.Extract(t.Context(), "a.pdf", []byte(makePDF("warm up"))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := x.Extract(ctx, "a.pdf", slow); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err %v", err)
	}
	if spent := time.Since(start); spent > 10*time.Second {
		t.Errorf("took %v to stop", spent)
	}
	limited := newExtractor(t, Config{Timeout: 50 * time.Millisecond})
	if _, err := limited.Extract(t.Context(), "a.pdf", slow); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err %v", err)
	}
	if d, err := x.Extract(t.Context(), "a.pdf", []byte(makePDF("still works"))); err != nil || d.Text != "still works" {
		t.Errorf("text %q err %v", d.Text, err)
	}
}

func TestPDFTooLarge(t *testing.T) {
	x := extract.New(extract.Config{MaxBytes: 1000, PDF: New(Config{CacheDir: datatest.PDFCache(t)})})
	t.Cleanup(func() { _ = x.Close() })
	if _, err := x.Extract(t.Context(), "a.pdf", []byte(makePDF(strings.Repeat("word ", 500)))); !errors.Is(err, extract.ErrTooLarge) {
		t.Error(err)
	}
}

func TestPDFMemoryLimit(t *testing.T) {
	x := newExtractor(t, Config{Memory: 24 << 20})
	huge := makePDF(strings.Repeat("y", 8<<20))
	if _, err := x.Extract(t.Context(), "a.pdf", []byte(huge+strings.Repeat(" ", 16<<20))); !errors.Is(err, extract.ErrDamaged) {
		t.Errorf("err %v", err)
	}
	if d, err := x.Extract(t.Context(), "a.pdf", []byte(makePDF("still works"))); err != nil || d.Text != "still works" {
		t.Errorf("text %q err %v", d.Text, err)
	}
}

func TestPDFConcurrentAndClosed(t *testing.T) {
	defer goleak.VerifyNone(t)
	x := extract.New(extract.Config{PDF: New(Config{CacheDir: datatest.PDFCache(t), Workers: 3})})
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			want := fmt.Sprintf("document %d", i)
			if d, err := x.Extract(t.Context(), "a.pdf", []byte(makePDF(want))); err != nil || d.Text != want {
				t.Errorf("%s: text %q err %v", want, d.Text, err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(x.Close(), x.Close()); err != nil {
		t.Error(err)
	}
	if _, err := x.Extract(t.Context(), "a.pdf", []byte(makePDF("late"))); !errors.Is(err, extract.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if d, err := x.Extract(t.Context(), "a.txt", []byte("late")); err != nil || d.Text != "late" {
		t.Errorf("after Close: %q %v", d.Text, err)
	}
}

func TestPDFUnusableCache(t *testing.T) {
	if !datatest.Full() {
		t.Skip("compiles the module, which takes seconds: set MARCHWARDEN_TEST_FULL=1")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	x := extract.New(extract.Config{PDF: New(Config{CacheDir: file})})
	if d, err := x.Extract(t.Context(), "a.pdf", []byte(makePDF("hello"))); err != nil || d.Text != "hello" {
		t.Errorf("text %q err %v", d.Text, err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

// TestCloseDoesNotWaitForTheCompiler holds Ctrl-C to its two seconds: compiling
// the module takes longer on a slow machine, and cannot be interrupted.
func TestCloseDoesNotWaitForTheCompiler(t *testing.T) {
	if !datatest.Full() {
		t.Skip("compiles the module once more: set MARCHWARDEN_TEST_FULL=1")
	}
	r := New(Config{}) // no cache directory: it has to compile
	x := extract.New(extract.Config{PDF: r})
	ctx, cancel := context.WithCancel(t.Context())
	starting := r.starts.DoChan("", r.boot)
	done := make(chan error, 1)
	go func() {
		_, err := x.Extract(ctx, "a.pdf", []byte(makePDF("Peas like cool soil.")))
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the interrupted PDF: %v", err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-starting:
		t.Error("Close came back only when the module was compiled")
	default:
	}
	<-starting // the late module is freed, not kept
	if r.pool != nil {
		t.Error("the late module was kept")
	}
}

// Pages say where each page's text begins, those without any included.
func TestPDFPages(t *testing.T) {
	x := newExtractor(t, Config{})
	d, err := x.Extract(t.Context(), "a.pdf", []byte(makePDF("", "Beans fix nitrogen.\nThey do not", "need much.", "", "", "Peas like cool soil.", "")))
	if err != nil {
		t.Fatal(err)
	}
	if want := "Beans fix nitrogen.\nThey do not\n\nneed much.\n\nPeas like cool soil."; d.Text != want {
		t.Errorf("text %q, want %q", d.Text, want)
	}
	second, fifth := strings.Index(d.Text, "need"), strings.Index(d.Text, "Peas")
	if diff := cmp.Diff([]int{0, 0, second, fifth - 2, fifth - 2, fifth, len(d.Text)}, d.Pages); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if d, err = x.Extract(t.Context(), "a.pdf", []byte(makePDF("", ""))); err != nil || d.Pages != nil {
		t.Errorf("pictures have pages %v, %v", d.Pages, err)
	}
}
