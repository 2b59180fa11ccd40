package settings

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	got, err := parseFile([]byte("# mine\ndepth: deep\nlibrary:\n  - a\n  - b\nmodel:\n"))
	want := []entry{{Key: "depth", Line: 2, Texts: []string{"deep"}}, {Key: "library", Line: 3, Texts: []string{"a", "b"}}, {Key: "model", Line: 6}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, empty := range []string{"", "# nothing\n", "---\n"} {
		if got, err := parseFile([]byte(empty)); len(got) > 0 {
			t.Errorf("%q: %v, %v", empty, got, err)
		}
	}
	for _, bad := range []string{"- a\n", "a: {b: c}\n", "a: [b, [c]]\n", "a: b\n---\nc: d\n", "a: \"b\n"} {
		if _, err := parseFile([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("depth: deep\n")
	f.Add("library: [a, &x b, *x]\n")
	f.Add("? {a: b}\n: c")
	f.Fuzz(func(t *testing.T, content string) {
		_, err := parseFile([]byte(content))
		var wrong *fault
		if err != nil && (!errors.As(err, &wrong) || wrong.Message == "") {
			t.Errorf("%v", err)
		}
	})
}
