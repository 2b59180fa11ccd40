package local

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

func TestDamagedFileIsStartedAnew(t *testing.T) {
	for name, damage := range map[string]func(db []byte) []byte{
		"no database":   func([]byte) []byte { return []byte(strings.Repeat("this is no database ", 500)) },
		"header":        func(db []byte) []byte { copy(db, "not sqlite at all"); return db },
		"schema page":   func(db []byte) []byte { clear(db[100:4096]); return db },
		"cut short":     func(db []byte) []byte { return db[:len(db)/2/4096*4096] },
		"every page":    func(db []byte) []byte { clear(db[4096:]); return db },
		"cut to naught": func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "index.db")
			f, x := tree(t, "a.md", "alpha", "b.md", strings.Repeat("beta is a word ", 2000)), newCounter(t)
			ix, err := Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			update(t, ix, f, x)
			if err := ix.Close(); err != nil {
				t.Fatal(err)
			}
			db, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(db), 0o600); err != nil {
				t.Fatal(err)
			}
			if name == "every page" { // Open reads the first alone: an update meets the damage, and the next Open repairs it
				_, err := open(t, path).Update(t.Context(), f, UpdateOptions{Extract: x})
				wantDamage(t, err)
			}
			report := update(t, open(t, path), f, x)
			if report.Added != 2 {
				t.Errorf("report %+v, want both files added again", report)
			}
			if said := report.Rebuilt != ""; said == (name == "cut to naught") {
				t.Errorf("rebuilt: %q", report.Rebuilt)
			}
			equal(t, "found", find(t, open(t, path), f, "alpha"), []string{"a.md"})
		})
	}
}

// wantDamage checks that an error says that the index is damaged, and what to do.
func wantDamage(t *testing.T, err error) {
	t.Helper()
	if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || !strings.Contains(err.Error(), "damaged") || marchwarden.HintOf(err) == "" {
		t.Fatalf("a damaged index gave %v, want %v with a hint", err, marchwarden.CodeUnavailable)
	}
}

// TestDamageMetBySearch breaks a segment only, which an update of unchanged files
// never looks at.
func TestDamageMetBySearch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	f, x := tree(t, "a.md", "alpha"), newCounter(t)
	ix := open(t, path)
	update(t, ix, f, x)
	if _, err := ix.w.Exec("UPDATE segments SET data = CAST(substr(data, 1, length(data) - 1) || x'ff' AS BLOB)"); err != nil {
		t.Fatal(err)
	}
	_, err := ix.Engine(nil, f).Search(t.Context(), search.Query{Text: "alpha", Limit: 5})
	wantDamage(t, err)
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, path)
	if report := update(t, again, f, x); report.Added != 1 || report.Rebuilt == "" {
		t.Errorf("report %+v, want a new index", report)
	}
	equal(t, "found", find(t, again, f, "alpha"), []string{"a.md"})
	if _, err := os.Stat(again.marker()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("mark of damage is still there: %v", err)
	}
}

func TestOtherVersionIsStartedAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	f, x := tree(t, "a.md", "alpha"), newCounter(t)
	ix := open(t, path)
	update(t, ix, f, x)
	if _, err := ix.w.Exec("PRAGMA user_version = 999"); err != nil {
		t.Fatal(err)
	}
	report := update(t, open(t, path), f, x)
	if report.Added != 1 || !strings.Contains(report.Rebuilt, "version") {
		t.Errorf("report %+v, want a new index because of its version", report)
	}
	if report := update(t, open(t, path), f, x); report.Unchanged != 1 || report.Rebuilt != "" {
		t.Errorf("report %+v, want it kept the next time", report)
	}
}

func TestForeignDatabaseIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE precious (x); INSERT INTO precious VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path); !errors.Is(err, marchwarden.CodeInvalid) {
		t.Errorf("Open gave %v, want %v", err, marchwarden.CodeInvalid)
	}
	var n int
	if err := db.QueryRow("SELECT count(*) FROM precious").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows (%v), want 1", n, err)
	}
}

func TestFilesArePrivateAndNamesAreNotSyntax(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "odd ?_pragma=query_only(1)&x=%41#é")
	ix := open(t, filepath.Join(dir, "index.db"))
	f := tree(t, "a.md", "alpha")
	update(t, ix, f, newCounter(t))
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatalf("entries %v, %v", entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v (%v), want 0600", e.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder has mode %v (%v), want 0700", info.Mode(), err)
	}
}

func TestClosedIndex(t *testing.T) {
	ix, err := Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ix.Close(), ix.Close()); err != nil {
		t.Error(err)
	}
	f := tree(t, "a.md", "alpha")
	if _, err := ix.Engine(nil, f).Search(t.Context(), search.Query{Text: "alpha"}); !errors.Is(err, marchwarden.CodeUnavailable) {
		t.Errorf("search gave %v, want %v", err, marchwarden.CodeUnavailable)
	}
	if _, err := ix.Update(t.Context(), f, UpdateOptions{Extract: newCounter(t)}); !errors.Is(err, marchwarden.CodeUnavailable) {
		t.Errorf("update gave %v, want %v", err, marchwarden.CodeUnavailable)
	}
}

// childEnv makes the test binary one of the processes of TestManyProcesses.
const childEnv = "LOCAL_TEST_CHILD"

func TestMain(m *testing.M) {
	if args := os.Getenv(childEnv); args != "" {
		if err := child(strings.Split(args, "\n")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child waits for a line, opens the index, updates it and searches.
func child(args []string) error {
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	ctx := context.Background()
	ix, err := Open(ctx, args[0])
	if err != nil {
		return err
	}
	defer ix.Close()
	f, err := fetch.OpenFolder(args[1])
	if err != nil {
		return err
	}
	defer f.Close()
	for round := range 5 {
		// Every process changes a file of its own, so that all of them always write.
		if err := replaceOwn(args[1], args[2], round); err != nil {
			return err
		}
		report, err := ix.Update(ctx, f, UpdateOptions{Extract: plainExtractor{}})
		if err != nil {
			return err
		}
		if report.Rebuilt != "" {
			return fmt.Errorf("rebuilt: %s", report.Rebuilt)
		}
		for query, want := range map[string]int{"shared": 50, fmt.Sprintf("process%s", args[2]): 1, fmt.Sprintf("round%d", round): 1} {
			hits, err := ix.Engine(nil, f).Search(ctx, search.Query{Text: query, Limit: 100})
			if err != nil {
				return err
			}
			if len(hits) < want {
				return fmt.Errorf("round %d: %q has %d hits, want %d", round, query, len(hits), want)
			}
		}
	}
	return nil
}

// replaceOwn writes a file the way editors do, whole or not at all, each time
// with a later time, which file systems do not promise for so quick a sequence.
func replaceOwn(dir, id string, round int) error {
	draft, stamp := filepath.Join(dir, ".draft"+id), time.Unix(1_700_000_000+int64(round), 0)
	return errors.Join(
		os.WriteFile(draft, fmt.Appendf(nil, "process%s round%d", id, round), 0o600),
		os.Chtimes(draft, stamp, stamp),
		os.Rename(draft, filepath.Join(dir, "own"+id+".md")))
}

func TestManyProcesses(t *testing.T) {
	const n = 8
	f := tree(t)
	for i := range 50 {
		write(t, filepath.Join(f.Name, fmt.Sprintf("f%d.md", i)), fmt.Sprintf("shared text number%d", i))
	}
	path := filepath.Join(t.TempDir(), "index.db")
	var children [n]*exec.Cmd
	var outputs [n]strings.Builder
	var wg sync.WaitGroup
	for i := range children {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{path, f.Name, fmt.Sprint(i)}, "\n"))
		c.Stdout, c.Stderr = &outputs[i], &outputs[i]
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		children[i] = c
		wg.Go(func() { // all of them begin at once
			if _, err := in.Write([]byte("go\n")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, c := range children {
		if err := c.Wait(); err != nil {
			t.Errorf("process %d: %v\n%s", i, err, outputs[i].String())
		}
	}
	ix := open(t, path)
	update(t, ix, f, plainExtractor{})
	equal(t, "files in the end", len(find(t, ix, f, "shared process0 process1 process2 process3 process4 process5 process6 process7")), 50)
	for i := range n {
		equal(t, "last round", find(t, ix, f, fmt.Sprintf("process%d", i)), []string{fmt.Sprintf("own%d.md", i)})
	}
	var check string
	if err := ix.r.QueryRow("PRAGMA integrity_check").Scan(&check); err != nil || check != "ok" {
		t.Errorf("integrity: %s %v", check, err)
	}
	var chunks, gone int
	err := ix.r.QueryRow("SELECT sum(chunks), sum(chunks) - (SELECT sum(chunks) FROM docs) FROM segments").Scan(&chunks, &gone)
	if err != nil || chunks-gone != 50+n {
		t.Errorf("segments hold %d chunks of which %d are gone (%v); want %d left", chunks, gone, err, 50+n)
	}
}
