package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const (
	what = "list of guests"
	most = 64
)

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

// A file is read if only its owner can read it and it is no larger than it may be; whatever
// is wrong is said without a word of what is in it.
func TestRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text string
		mode fs.FileMode
		code marchwarden.Code
	}{
		"owner":          {"anna", 0o600, ""},
		"owner reads":    {"anna", 0o400, ""},
		"owner runs":     {"anna", 0o700, ""},
		"empty":          {"", 0o600, ""},
		"just so":        {strings.Repeat("a", most), 0o600, ""},
		"too large":      {"anna" + strings.Repeat("a", most), 0o600, marchwarden.CodeCorrupt},
		"group reads":    {"anna", 0o640, marchwarden.CodeDenied},
		"group writes":   {"anna", 0o620, marchwarden.CodeDenied},
		"others read":    {"anna", 0o604, marchwarden.CodeDenied},
		"others write":   {"anna", 0o602, marchwarden.CodeDenied},
		"allMembers may": {"anna", 0o666, marchwarden.CodeDenied},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		write(t, path, c.text, c.mode)
		text, err := durable.ReadPrivate(path, what, most)
		if marchwarden.CodeOf(err) != c.code || err == nil && string(text) != c.text {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if err != nil && (!strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "anna")) {
			t.Errorf("%s: it says %v", name, err)
		}
		if c.code == marchwarden.CodeDenied && !strings.Contains(marchwarden.HintOf(err), "chmod 600 "+path) {
			t.Errorf("%s: the hint is %q", name, marchwarden.HintOf(err))
		}
	}
	if _, err := durable.ReadPrivate(filepath.Join(dir, "none"), what, most); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	if _, err := durable.ReadPrivate(dir, what, most); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
		t.Errorf("a folder: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("others-read", link); err != nil {
		t.Fatal(err)
	}
	if _, err := durable.ReadPrivate(link, what, most); marchwarden.CodeOf(err) != marchwarden.CodeDenied {
		t.Errorf("a link to what others can read: %v", err)
	}
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"anna"}`:             "",
		" {\"name\":\"anna\"}\n":      "",
		`{"name":"anna","until":"x"}`: "not JSON with the fields",
		`{"name":["anna"]}`:           "not JSON with the fields",
		`{"name":"anna"`:              "not JSON with the fields",
		``:                            "not JSON with the fields",
		`{"name":"anna"}{}`:           "more behind its end",
		`{"name":"anna"} x`:           "more behind its end",
	} {
		var into struct {
			Name string `json:"name"`
		}
		err := durable.DecodeStrict([]byte(text), &into)
		if want == "" && (err != nil || into.Name != "anna") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %+v, %v", text, into, err)
		}
		if err != nil && strings.Contains(err.Error(), "anna") {
			t.Errorf("%s: it quotes: %v", text, err)
		}
	}
}

// guest adds a name; it expects what is there.
func guest(name, want string) func([]byte, bool) ([]byte, error) {
	return func(old []byte, exists bool) ([]byte, error) {
		if string(old) != want || exists != (want != "") {
			return nil, marchwarden.Errorf(marchwarden.CodeInternal, "there is %q (%t), want %q", old, exists, want)
		}
		return append(old, name...), nil
	}
}

// A file is made with its folder, is changed as a whole, and stays where links lead.
func TestEdit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	path, link := filepath.Join(dir, "guests"), filepath.Join(t.TempDir(), "link")
	if err := durable.EditPrivate(path, what, most, guest("anna ", "")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err) // as on Windows, for most
	}
	if err := durable.EditPrivate(link, what, most, guest("bert ", "anna ")); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); to != path || err != nil {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	refused := errors.New("no")
	if err := durable.EditPrivate(path, what, most, func([]byte, bool) ([]byte, error) { return []byte("other"), refused }); !errors.Is(err, refused) {
		t.Errorf("the error of who edits: %v", err)
	}
	if text, err := durable.ReadPrivate(path, what, most); string(text) != "anna bert " || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// What cannot be read is not replaced.
func TestEditRefuses(t *testing.T) {
	dir := t.TempDir()
	open, large, loop := filepath.Join(dir, "open"), filepath.Join(dir, "large"), filepath.Join(dir, "loop")
	write(t, open, "anna", 0o644)
	write(t, large, strings.Repeat("a", most+1), 0o600)
	wrong := map[string]marchwarden.Code{large: marchwarden.CodeCorrupt, dir: marchwarden.CodeUnavailable, filepath.Join(large, "below"): marchwarden.CodeUnavailable}
	if runtime.GOOS != "windows" {
		if err := os.Symlink("loop", loop); err != nil {
			t.Fatal(err)
		}
		wrong[open], wrong[loop] = marchwarden.CodeDenied, marchwarden.CodeUnavailable
	}
	for path, code := range wrong {
		err := durable.EditPrivate(path, what, most, func([]byte, bool) ([]byte, error) {
			t.Errorf("%s is edited", path)
			return nil, nil
		})
		if marchwarden.CodeOf(err) != code || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v, want %s", path, err, code)
		}
	}
}

// Processes that edit at the same time lose nothing of each other's.
func TestEditAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guests")
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if err := durable.EditPrivate(path, what, most, func(old []byte, _ bool) ([]byte, error) { return append(old, 'x'), nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if text, err := durable.ReadPrivate(path, what, most); len(text) != 16 || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
