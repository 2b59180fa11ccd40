package page

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLook writes all pages, and what they load, into the folder that
// MARCHWARDEN_TEST_LOOK names, for those who want to see them: a server of that folder
// shows them as a browser of marchwarden ui would.
func TestLook(t *testing.T) {
	dir := os.Getenv("MARCHWARDEN_TEST_LOOK")
	if dir == "" {
		t.Skip("MARCHWARDEN_TEST_LOOK names no folder")
	}
	set := newSet(t)
	put := func(name string, body []byte) {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, f := range set.Static().files {
		put("static/"+name, f.body)
	}
	for _, p := range typical() {
		put(p.name+".html", p.render(t, set))
	}
}
