package settings

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// configOf reads a config.yaml of a content.
func configOf(t *testing.T, content string) (map[string][]string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), FromFile)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	file, _, err := readConfigFile(path)
	return file, err
}

func TestParse(t *testing.T) {
	got, err := configOf(t, "# mine\ndepth: deep\nrender: auto\nfallback_model: a/b\nembed_model: c\ndoi_url: https://doi.org\nlibrary:\n  - a\n  - b\nmodel:\n")
	want := map[string][]string{"depth": {"deep"}, "library": {"a", "b"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, empty := range []string{"", "# nothing\n", "---\n"} {
		if got, err := configOf(t, empty); len(got) > 0 || err != nil {
			t.Errorf("%q: %v, %v", empty, got, err)
		}
	}
	for _, bad := range []string{"- model\n", "model: {b: c}\n", "library: [b, [c]]\n", "model: b\n---\ndepth: deep\n", "model: \"b\n", "researchers: [a]\n", "researchers: a\n"} {
		if _, err := configOf(t, bad); marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("depth: deep\n")
	f.Add("library: [a, &x b, *x]\n")
	f.Add("? {a: b}\n: c")
	f.Fuzz(func(t *testing.T, content string) {
		if _, err := configOf(t, content); err != nil && marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
			t.Errorf("%v", err)
		}
	})
}
