package hub

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// What a folder shall remember is written again if that has failed, and is never forgotten.
func TestRemember(t *testing.T) {
	dir := t.TempDir()
	open := func() *store {
		t.Helper()
		s, err := openStore(Config{Store: dir})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	path := s.path
	s.path = filepath.Join(dir, "none", hubName)
	if err := s.remember(true); err == nil || s.form.Closed {
		t.Errorf("it says %+v after %v", s.form, err)
	}
	s.path = path
	for _, closed := range []bool{true, false} {
		if err := s.remember(closed); err != nil {
			t.Fatal(err)
		}
	}
	want := hubForm{Name: s.form.Name, Closed: true}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	if d := cmp.Diff(want, s.form); d != "" {
		text, _ := os.ReadFile(path)
		t.Errorf("the folder says %s%s", text, d)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

// A folder with streams of several accounts, as earlier versions had them, is left alone.
func TestOtherAccountsAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	text := `{"name":"hub-x","accounts":["main","press"]}`
	if err := os.WriteFile(filepath.Join(dir, hubName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(Config{Store: dir}); marchwarden.CodeOf(err) != marchwarden.CodeInvalid || marchwarden.HintOf(err) == "" {
		t.Errorf("it opens: %v", err)
	}
	if left, err := os.ReadFile(filepath.Join(dir, hubName)); err != nil || string(left) != text {
		t.Errorf("it says %s, %v", left, err)
	}
}

// A key without a role that is known may do nothing.
func TestNoRole(t *testing.T) {
	r := Key{Public: "U"}.rights()
	if r == nil || !slices.Equal(r.Publish.Allow, []string{"_INBOX_U.>"}) || !slices.Equal(r.Subscribe.Allow, r.Publish.Allow) {
		t.Errorf("it may %+v", r)
	}
}
