package report

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// TestPDF writes texts of many scripts, twice, and reads the pages back where pdftotext is at hand.
func TestPDF(t *testing.T) {
	plant := func(s string) string { return s + " – “Ψυχή” Привет 中文 🌍" }
	var first, again bytes.Buffer
	for _, to := range []*bytes.Buffer{&first, &again} {
		if err := PDF(to, sample(t, plant)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), again.Bytes()) {
		t.Error("equal reports give other bytes")
	}
	if !bytes.HasPrefix(first.Bytes(), []byte("%PDF-")) || !bytes.Contains(first.Bytes(), []byte("/URI (https://example.org/frost?a=1&b=_c_)")) {
		t.Error("it is no PDF, or has no links")
	}
	read, err := exec.LookPath("pdftotext")
	if err != nil {
		t.Skip("there is no pdftotext")
	}
	cmd := exec.Command(read, "-raw", "-", "-")
	cmd.Stdin = &first
	pages, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	shown := plaintext.Fold(string(pages))
	tail := " – “Ψυχή” Привет 中文 [U+1F30D]"
	for _, want := range []string{"Marchwarden research report", "When is the last frost in Salt Lake City?" + tail, "Take note:", "Answer", "The last frost is on 26 April." + tail + " [1] [2] It was later in 1990." + tail + " [3] (partial)",
		"Contradictions", "26 April" + tail, "Gaps", "References", "Journal of Frost", "https://doi.org/10.1000/xyz_1", "How to check this report", "marchwarden verify 0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10",
		"Appendix: excerpts", "Source 1", "The average last frost falls on 26 April." + tail, "Source 6", "Boxes stand for characters"} {
		_, rest, ok := strings.Cut(shown, want)
		if !ok {
			t.Fatalf("%q does not stand in its place; what is left: %.300s", want, shown)
		}
		shown = rest
	}
}

// TestPDFTakesAnything writes texts that want to be more than text, and long ones without a space.
func TestPDFTakesAnything(t *testing.T) {
	for _, payload := range append([]string{strings.Repeat("long", 2000), strings.Repeat("中", 500), "(\\) Tj ET", "\x00\x1b]0;x\a\u202e\ufffe"}, payloads...) {
		var out bytes.Buffer
		if err := PDF(&out, sample(t, func(s string) string { return s + payload })); err != nil {
			t.Errorf("%.40q: %v", payload, err)
		}
		if bytes.Contains(out.Bytes(), []byte("/JavaScript")) || bytes.Contains(out.Bytes(), []byte("/URI (javascript")) {
			t.Errorf("%.40q acts", payload)
		}
	}
}
