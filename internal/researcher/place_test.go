package researcher_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

// shelf is a folder with one document.
func shelf(t *testing.T, name, content string) *fetch.Folder {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "note.md"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := fetch.OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A folder that is gone is a gap, whether or not it was indexed once, and the others
// are searched.
func TestAFolderThatIsGoneIsAGap(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		good, gone := shelf(t, "good", "Peas like cool soil."), shelf(t, "gone", "Pods like warm sun.")
		h := newHome(t, gone, good)
		ask := func() *marchwarden.Result { return h.ask(t, marchwarden.Request{Question: "What do peas like?"}) }
		if known {
			if res := ask(); len(res.Gaps) > 0 && slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool { return strings.HasPrefix(g.Topic, "folder ") }) {
				t.Fatalf("%+v", res.Gaps)
			}
		}
		if err := os.RemoveAll(gone.Name); err != nil {
			t.Fatal(err)
		}
		res := ask()
		if !strings.Contains(res.Answer, "cool soil") {
			t.Errorf("indexed before: %v: the other folder was not searched: %s", known, res.Answer)
		}
		if !slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool { return g.Topic == "folder "+gone.Name }) {
			t.Errorf("indexed before: %v: no gap says so: %+v", known, res.Gaps)
		}
		if _, err := os.Stat(filepath.Join(h.path, "library", "index.db")); err != nil {
			t.Errorf("what is wrong with a folder is no reason to have no index: %v", err)
		}
	}
}

// Where an index cannot be made, it is made in memory.
func TestAnIndexThatCannotBeWrittenIsMadeInMemory(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(library string) error{
		"its folder is a file": func(library string) error { return os.WriteFile(library, nil, 0o600) },
		"it is a folder":       func(library string) error { return os.MkdirAll(filepath.Join(library, "index.db", "x"), 0o700) },
	} {
		h := newHome(t, shelf(t, "good", "Peas like cool soil."))
		if err := spoil(filepath.Join(h.path, "library")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			res := h.ask(t, marchwarden.Request{Question: "What do peas like?"})
			if !strings.Contains(res.Answer, "cool soil") || slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool { return strings.HasPrefix(g.Topic, "folder ") }) {
				t.Errorf("%s: %s, %+v", name, res.Answer, res.Gaps)
			}
		}
	}
}

// TestDamageIsRepairedAtTheNextQuestion breaks the index between two questions to one
// researcher: the first that meets the damage says so, and the next is answered.
func TestDamageIsRepairedAtTheNextQuestion(t *testing.T) {
	t.Parallel()
	h := newHome(t, shelf(t, "good", "# Dam\n\nThe Pineview Dam was completed in 1937.\n"))
	asked := marchwarden.Request{Question: "When was the Pineview Dam completed?"}
	h.ask(t, asked)
	path := filepath.Join(h.path, "library", "index.db")
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.Exec("DELETE FROM texts; UPDATE folders SET state = state + 1")
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	res := h.ask(t, asked)
	if len(res.Citations) > 0 || len(res.Gaps) == 0 || !strings.Contains(res.Gaps[0].Detail, "damaged") {
		t.Errorf("%d citations from a damaged index, gaps %+v", len(res.Citations), res.Gaps)
	}
	if res = h.ask(t, asked); !strings.Contains(res.Answer, "1937") {
		t.Errorf("after the repair: %s, gaps %+v", res.Answer, res.Gaps)
	}
}
