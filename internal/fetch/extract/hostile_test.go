package extract

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

// TestHostileFiles gives every file of the hostile and PDF sets, and every member of their archives, to the extractor under names that lead to different readers.
// None may panic, none may take longer than its size allows, and what comes out has the promised form. In the everyday form each file has one of the names.
func TestHostileFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("hostile: skipped with -short")
	}
	files := make(map[string][]byte)
	for _, dir := range []string{"pdf", "hostile"} {
		root := filepath.Join(sharedData, dir)
		if _, err := os.Stat(root); err != nil {
			t.Skipf("hostile: no data at %s", root)
		}
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			raw, err := os.ReadFile(name)
			files[name] = raw
			if rel, inside := strings.CutPrefix(filepath.ToSlash(name), sharedData+"/"); inside && strings.HasSuffix(rel, ".tar.gz") {
				for member, raw := range untar(t, rel) {
					files[path.Join(rel, member)] = raw
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 400 {
		t.Fatalf("only %d files", len(files))
	}
	x := newExtractor(t, Config{})
	_, _ = x.Extract(t.Context(), "a.pdf", []byte("%PDF-1.7\n")) // compiles the module
	start, slowest, slowestName := time.Now(), 0.0, ""
	types := []struct{ name, contentType string }{
		{"x.html", ""}, {"x.json", ""}, {"x.xml", ""}, {"x", ""}, {"https://example.org/x", "text/html; charset=shift_jis"}, {"x.pdf", "application/pdf"},
	}
	for i, name := range sortedNames(files) {
		for j, as := range types {
			if i%len(types) != j && !datatest.Full() {
				continue
			}
			allowed := 5*time.Second + time.Duration(len(files[name])>>10)*20*time.Millisecond
			began := time.Now()
			d, err := x.ExtractAs(t.Context(), as.name, as.contentType, files[name])
			spent := time.Since(began)
			if share := float64(spent) / float64(allowed); share > slowest {
				slowest, slowestName = share, name+" as "+as.name
			}
			switch {
			case spent > allowed:
				t.Errorf("%s as %s: took %v of %v", name, as.name, spent, allowed)
			case err == nil:
				checkForm(t, d)
			case strings.Contains(err.Error(), "panic"):
				t.Errorf("%s as %s: %v", name, as.name, err)
			case !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrEncrypted):
				t.Errorf("%s as %s: an error of no known kind: %v", name, as.name, err)
			}
		}
	}
	t.Logf("%d files in %v; nearest to its limit (%.0f %%): %s", len(files), time.Since(start).Round(time.Millisecond), 100*slowest, slowestName)
}
