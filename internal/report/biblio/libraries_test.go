package biblio

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// TestLibraries has other people's libraries read what is written here, those that
// the machine's Python has (or the one that MARCHWARDEN_PYTHON names).
func TestLibraries(t *testing.T) {
	python, err := exec.LookPath(cmp.Or(os.Getenv("MARCHWARDEN_PYTHON"), "python3"))
	if err != nil {
		t.Skip("there is no python3, so no library reads the files")
	}
	es := slices.Clone(entries)
	for _, title := range []string{"ER  - ", "a\r\nER  - \r\nTY  - JOUR\r\nTI  - evil", "@comment{x}", "}, title = {evil}", `\`, "{", "}}", `\input{x} 100% #1 a_b ~^`, `"quoted" <b>&amp;</b>`, "title\n@misc{evil, title={x}}", "日本語 – ß"} {
		es = append(es, Entry{Title: title, Authors: []Name{{Literal: title}, {Family: title, Given: "A"}}, URL: "https://example.org/", Locator: title, Published: "2024-05-06"})
	}
	path := filepath.Join(t.TempDir(), "x.bib")
	if err := os.WriteFile(path, []byte(written(t, BibTeX, es)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "read.py"), path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var read map[string][]struct{ Type, Key, Title string }
	if err := json.Unmarshal(out, &read); err != nil {
		t.Fatal(err)
	}
	if len(read) == 0 {
		t.Skip("python has neither bibtexparser nor pybtex")
	}
	for name, got := range read {
		if len(got) != len(es) {
			t.Errorf("%s reads %d entries, want %d", name, len(got), len(es))
			continue
		}
		used := map[string]bool{}
		for i, e := range es {
			title, key := latex(got[i].Title), e.fold().key(used)
			if got[i].Key != key || title != plaintext.Fold(e.Title) {
				t.Errorf("%s: entry %d is %q %q, want %q %q", name, i+1, got[i].Key, title, key, e.Title)
			}
		}
		t.Logf("%s reads all %d entries", name, len(got))
	}
}
