package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/corpus"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searchtest"
	"github.com/google/go-cmp/cmp"
)

// counter is an extractor that counts what it was given.
type counter struct {
	next  fetch.Extractor
	calls atomic.Int64
	then  func(name string) // called before each extraction, if set
}

func (c *counter) Extract(ctx context.Context, name string, raw []byte) (extract.Document, error) {
	c.calls.Add(1)
	if c.then != nil {
		c.then(name)
	}
	return c.next.Extract(ctx, name, raw)
}

func newCounter(t testing.TB) *counter {
	x := extract.New(extract.Config{})
	t.Cleanup(func() { _ = x.Close() })
	return &counter{next: x}
}

func open(t testing.TB, path string) *Index {
	t.Helper()
	ix, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ix.Close(); err != nil {
			t.Error(err)
		}
	})
	return ix
}

// tree writes files, given as "path", "content" pairs, below a new folder.
func tree(t testing.TB, files ...string) *fetch.Folder {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		write(t, filepath.Join(dir, files[i]), files[i+1])
	}
	f, err := fetch.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func update(t testing.TB, ix *Index, f *fetch.Folder, x fetch.Extractor) Report {
	t.Helper()
	report, err := ix.Update(t.Context(), f, UpdateOptions{Extract: x})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// find returns the names of the files that a query finds, best first.
func find(t testing.TB, ix *Index, f *fetch.Folder, query string) []string {
	t.Helper()
	hits, err := ix.Engine(nil, f).Search(t.Context(), search.Query{Text: query, Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, h := range hits {
		name, ok := f.Resolve(h.Locator)
		if !ok {
			t.Fatalf("hit %q is not in the folder", h.Locator)
		}
		names = append(names, name)
	}
	return names
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestEngineConforms(t *testing.T) {
	for _, where := range []string{"memory", "disk"} {
		t.Run(where, func(t *testing.T) {
			searchtest.Run(t, func(t *testing.T, docs map[string]string) search.Engine {
				path := ""
				if where == "disk" {
					path = filepath.Join(t.TempDir(), "library", "index.db")
				}
				fsys := fstest.MapFS{}
				for name, text := range docs {
					fsys[name] = &fstest.MapFile{Data: []byte(text)}
				}
				f := fetch.EmbeddedFolder("test library", "embedded", fsys)
				ix := open(t, path)
				update(t, ix, f, newCounter(t))
				return ix.Engine(nil, f)
			})
		})
	}
}

func TestUpdateReadsOnlyWhatChanged(t *testing.T) {
	f := tree(t, "a.md", "alpha", "b.md", "beta", "sub/c.txt", "gamma")
	path := filepath.Join(t.TempDir(), "index.db")
	ix, x := open(t, path), newCounter(t)

	report := update(t, ix, f, x)
	equal(t, "first", report, Report{Folder: f.Name, Added: 3})
	equal(t, "extractions", x.calls.Load(), int64(3))

	report = update(t, ix, f, x)
	equal(t, "nothing changed", report, Report{Folder: f.Name, Unchanged: 3})
	equal(t, "extractions", x.calls.Load(), int64(3))

	// A new time alone costs a look at the bytes, not an extraction.
	if err := os.Chtimes(filepath.Join(f.Name, "a.md"), time.Time{}, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(f.Name, "b.md"), "delta!")
	write(t, filepath.Join(f.Name, "d.md"), "epsilon")
	if err := os.Remove(filepath.Join(f.Name, "sub/c.txt")); err != nil {
		t.Fatal(err)
	}
	// Another process would open the index anew.
	report = update(t, open(t, path), f, x)
	equal(t, "changes", report, Report{Folder: f.Name, Added: 1, Changed: 1, Removed: 1, Unchanged: 1})
	equal(t, "extractions", x.calls.Load(), int64(5))
	for query, want := range map[string][]string{"alpha": {"a.md"}, "beta": {}, "gamma": {}, "delta": {"b.md"}, "epsilon": {"d.md"}} {
		equal(t, query, find(t, ix, f, query), want)
	}
}

func TestUpdateMistrustsFreshTimes(t *testing.T) {
	f := tree(t, "a.md", "alpha")
	ix, x := open(t, ""), newCounter(t)
	stamp := time.Unix(1_700_000_000, 0)
	file := filepath.Join(f.Name, "a.md")
	set := func(text string) {
		write(t, file, text)
		if err := os.Chtimes(file, stamp, stamp); err != nil {
			t.Fatal(err)
		}
	}
	opts := UpdateOptions{Extract: x, Now: func() time.Time { return stamp.Add(time.Second) }}
	set("alpha")
	if _, err := ix.Update(t.Context(), f, opts); err != nil {
		t.Fatal(err)
	}
	set("omega") // same size, same time
	report, err := ix.Update(t.Context(), f, opts)
	if err != nil || report.Changed != 1 {
		t.Errorf("report %+v, %v; want the change found", report, err)
	}
	infos, err := ix.Folders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "folders", infos, []FolderInfo{{Path: f.Name, Files: 1, Chunks: 1, Bytes: 5, Updated: stamp.Add(time.Second).UTC()}})
}

func TestUpdateSkipsAndNotes(t *testing.T) {
	f := tree(t,
		"good.md", "findable", ".hidden.md", "findable", ".git/config.md", "findable", "photo.png", "findable",
		"binary.txt", "\x00\x01\x02findable\x00\x00\x00\x7f\x00", "broken.docx", "PK\x03\x04 findable", "empty.md", "")
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret.md"), "findable")
	for link, target := range map[string]string{"out.md": filepath.Join(outside, "secret.md"), "outdir": outside, "in.md": "good.md"} {
		if err := os.Symlink(target, filepath.Join(f.Name, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(f.Name, "folder.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	big, err := os.Create(filepath.Join(f.Name, "big.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(big.Truncate(fetch.MaxFileBytes+1), big.Close()); err != nil {
		t.Fatal(err)
	}
	ix, x := open(t, ""), newCounter(t)
	first := update(t, ix, f, x)
	equal(t, "found", find(t, ix, f, "findable"), []string{"good.md"})
	equal(t, "kinds", len(first.Skipped.Kinds), 1)
	first.Skipped.Kinds = nil
	equal(t, "skipped", first.Skipped, Skipped{Hidden: 2, Links: 3, Unknown: 1, Large: 1})
	equal(t, "added", first.Added, 2)
	var noted []string
	for _, n := range first.Notes {
		if n.Reason == "" || strings.Contains(n.Reason, f.Name) {
			t.Errorf("note %+v, want a reason without the path", n)
		}
		noted = append(noted, n.Name)
	}
	equal(t, "noted", noted, []string{"big.txt", "binary.txt", "broken.docx"})

	calls := x.calls.Load()
	second := update(t, ix, f, x)
	equal(t, "notes again, without reading", second.Notes, first.Notes)
	equal(t, "extractions", x.calls.Load(), calls)
}

// scanner is an extractor of scanned PDFs: each has a typed word, or none, and a picture of another.
type scanner struct {
	counter
	scans, fails bool
}

func (s *scanner) Scans() bool { return s.scans }

func (s *scanner) Extract(_ context.Context, _ string, raw []byte) (extract.Document, error) {
	s.calls.Add(1)
	typed, picture, _ := strings.Cut(string(raw), "|")
	d := extract.Document{Text: typed}
	switch {
	case s.fails:
		d.Unread, d.Again = "failed", true
	case s.scans:
		d.Text = strings.TrimSpace(typed + " " + picture)
	default:
		d.Unread = "install it"
	}
	d.NonText = d.Text == ""
	return d, nil
}

func TestScannedAreReadOnceTheyCanBe(t *testing.T) {
	f := tree(t, "part.pdf", "typed|scanned", "whole.pdf", "|scanned", "blank.pdf", "|")
	ix, x := open(t, ""), &scanner{}
	step := func(what string, calls int64, notes int, found ...string) {
		t.Helper()
		x.calls.Store(0)
		report := update(t, ix, f, x)
		equal(t, what+": extractions", x.calls.Load(), calls)
		equal(t, what+": notes", len(report.Notes), notes)
		got := find(t, ix, f, "scanned")
		slices.Sort(got)
		equal(t, what+": found", got, append([]string{}, found...))
	}
	state := func() (n int) {
		t.Helper()
		if err := ix.r.QueryRow("SELECT state FROM folders").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	x.scans, x.fails = true, true
	step("fails", 3, 2)
	before := state()
	step("fails again", 3, 2)
	equal(t, "writes of what fails again", state()-before, 0)
	x.scans, x.fails = false, false
	step("not there", 3, 2)
	step("not there again", 0, 2)
	x.scans = true
	step("there", 3, 1, "part.pdf", "whole.pdf")
	step("there again", 0, 1, "part.pdf", "whole.pdf")
	x.scans = false
	step("gone", 0, 1, "part.pdf", "whole.pdf")
}

// failing is a file system that refuses some names.
type failing struct {
	fstest.MapFS
	refuse map[string]error
}

func (f failing) Open(name string) (fs.File, error) {
	if err := f.refuse[name]; err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return f.MapFS.Open(name)
}

func (f failing) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.refuse[name]; err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return f.MapFS.ReadDir(name)
}

func TestUnreadableFilesAreNotesUntilTheyCanBeRead(t *testing.T) {
	fsys := failing{fstest.MapFS{
		"a.md": {Data: []byte("word")}, "b.md": {Data: []byte("word")}, "dir/c.md": {Data: []byte("word")}, "e/.gitignore": {Data: []byte("*")},
	}, map[string]error{}}
	f := fetch.EmbeddedFolder("library", "embedded", fsys)
	ix, x := open(t, ""), newCounter(t)
	equal(t, "all readable", update(t, ix, f, x).Added, 3)

	fsys.refuse["b.md"], fsys.refuse["dir"], fsys.refuse["e/.gitignore"] = fs.ErrPermission, fs.ErrPermission, fs.ErrPermission
	report := update(t, ix, f, x)
	equal(t, "notes", report.Notes, []Note{{"b.md", "permission denied"}, {"dir", "permission denied"}, {"e/.gitignore", "permission denied"}})
	equal(t, "found", find(t, ix, f, "word"), []string{"a.md"})

	clear(fsys.refuse)
	report = update(t, ix, f, x)
	equal(t, "readable again", report, Report{Folder: "library", Added: 2, Unchanged: 1, Skipped: Skipped{Hidden: 1}})
	equal(t, "found", find(t, ix, f, "word"), []string{"a.md", "b.md", "dir/c.md"})

	fsys.refuse["."] = fs.ErrPermission
	if _, err := ix.Update(t.Context(), f, UpdateOptions{Extract: x}); !errors.Is(err, marchwarden.CodeUnavailable) {
		t.Errorf("unreadable root gave %v, want %v", err, marchwarden.CodeUnavailable)
	}
	equal(t, "an unreadable root removes nothing", find(t, ix, f, "word"), []string{"a.md", "b.md", "dir/c.md"})
}

func TestCancelledUpdateKeepsWhatIsDone(t *testing.T) {
	fsys := fstest.MapFS{}
	for i := range 300 {
		fsys[fmt.Sprintf("f%03d.md", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "common word%d", i)}
	}
	f := fetch.EmbeddedFolder("library", "embedded", fsys)
	ix, x := open(t, ""), newCounter(t)
	ctx, cancel := context.WithCancel(t.Context())
	x.then = func(name string) {
		if name == "f120.md" {
			cancel()
		}
	}
	var events []marchwarden.Event
	report, err := ix.Update(ctx, f, UpdateOptions{Extract: x, Progress: func(e marchwarden.Event) { events = append(events, e) }})
	if !errors.Is(err, marchwarden.CodeCanceled) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, marchwarden.CodeCanceled)
	}
	if report.Added < 100 || report.Added > 150 {
		t.Errorf("added %d, want the two whole batches and part of the third", report.Added)
	}
	infos, err := ix.Folders(t.Context())
	if err != nil || infos[0].Files != report.Added {
		t.Errorf("index holds %+v, %v; the report says %d", infos, err, report.Added)
	}
	calls := x.calls.Load()
	x.then = nil
	rest := update(t, ix, f, x)
	equal(t, "the rest", rest, Report{Folder: "library", Added: 300 - report.Added, Unchanged: report.Added})
	equal(t, "extractions of the rest", x.calls.Load()-calls, int64(300-report.Added))
	if len(events) < 3 || events[0].Done != 0 || events[0].Total != 300 || events[1].Done != 50 || events[1].Stage != marchwarden.StageIndex {
		t.Errorf("events %+v, want one at the start and one a batch", events)
	}
}

// TestCancelledSearchLeavesTheIndexWhole is about the index in memory: it lives
// and dies with its one connection.
func TestCancelledSearchLeavesTheIndexWhole(t *testing.T) {
	fsys := fstest.MapFS{}
	for i := range 500 {
		fsys[fmt.Sprintf("f%03d.md", i)] = &fstest.MapFile{Data: []byte(strings.Repeat("common words of many kinds ", 40))}
	}
	f := fetch.EmbeddedFolder("library", "embedded", fsys)
	ix := open(t, "")
	update(t, ix, f, newCounter(t))
	e := ix.Engine(nil, f)
	cancelled := 0
	for i := range 60 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*50)*time.Microsecond)
		_, err := e.Search(ctx, search.Query{Text: "common words of many kinds", Limit: 10})
		cancel()
		if err != nil && !errors.Is(err, marchwarden.CodeCanceled) {
			t.Fatalf("cancelled search gave %v, want %v", err, marchwarden.CodeCanceled)
		}
		if err != nil {
			cancelled++
		}
	}
	if cancelled == 0 {
		t.Error("no search was cancelled")
	}
	equal(t, "still there", len(find(t, ix, f, "common")), 50)
}

func TestRemoveAndFingerprint(t *testing.T) {
	f, g := tree(t, "a.md", "alpha", "b.md", "beta"), tree(t, "c.md", "gamma alpha")
	ix, x := open(t, ""), newCounter(t)
	print := func(ix *Index, folders ...*fetch.Folder) string {
		t.Helper()
		s, err := ix.Fingerprint(t.Context(), folders...)
		if err != nil || !strings.HasPrefix(s, "sha256:") {
			t.Fatalf("fingerprint %q, %v", s, err)
		}
		return s
	}
	empty := print(ix, f, g)
	update(t, ix, f, x)
	update(t, ix, g, x)
	both := print(ix, f, g)
	equal(t, "order", print(ix, g, f, g), both)
	other := open(t, "")
	update(t, other, g, x)
	update(t, other, f, x)
	equal(t, "history", print(other, f, g), both)
	write(t, filepath.Join(f.Name, "b.md"), "beta.")
	update(t, ix, f, x)
	if print(ix, f, g) == both {
		t.Error("a changed file left the fingerprint as it was")
	}

	equal(t, "only in its folder", find(t, ix, g, "alpha"), []string{"c.md"})
	if err := ix.Remove(t.Context(), f.Name); err != nil {
		t.Fatal(err)
	}
	equal(t, "removed", find(t, ix, f, "alpha beta"), []string{})
	equal(t, "kept", find(t, ix, g, "alpha"), []string{"c.md"})
	if err := ix.Remove(t.Context(), f.Name); !errors.Is(err, marchwarden.CodeNotFound) {
		t.Errorf("removing twice gave %v, want %v", err, marchwarden.CodeNotFound)
	}
	if err := ix.Remove(t.Context(), g.Name); err != nil {
		t.Fatal(err)
	}
	equal(t, "empty again", print(ix, f, g), empty)
	for _, table := range []string{"docs", "texts", "segments", "folders"} {
		var n int
		if err := ix.r.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s holds %d rows (%v) after everything was removed", table, n, err)
		}
	}
}

func TestRankingForgetsRemovedFiles(t *testing.T) {
	files := []string{"a.md", "apple pear", "b.md", "apple apple fig", "c.md", "pear fig plum apple", "d.md", "quince and nothing else here"}
	f := tree(t, files...)
	fresh, used, x := open(t, ""), open(t, ""), newCounter(t)
	update(t, fresh, f, x)
	for i := range 40 {
		write(t, filepath.Join(f.Name, fmt.Sprintf("z%d.md", i)), "apple apple plum")
	}
	update(t, used, f, x)
	for i := range 40 {
		if err := os.Remove(filepath.Join(f.Name, fmt.Sprintf("z%d.md", i))); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "removed", update(t, used, f, x).Removed, 40)
	for _, q := range []string{"apple", "fig plum", "quince"} {
		a, err := fresh.Engine(nil, f).Search(t.Context(), search.Query{Text: q, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		b, err := used.Engine(nil, f).Search(t.Context(), search.Query{Text: q, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, q, b, a)
	}
}

func TestFilterLooksAtDeclaredHostAndFileName(t *testing.T) {
	f := tree(t, "a.md", "---\ntitle: A\nurl: https://www.usda.gov/zones\n---\n\nzones", "b.txt", "zones", "c.md", "zones")
	ix := open(t, "")
	update(t, ix, f, newCounter(t))
	for filter, want := range map[string][]string{
		".gov": {"a.md"}, "usda.gov": {"a.md"}, ".txt": {"b.txt"}, ".gov,.txt": {"a.md", "b.txt"}, "": {"a.md", "b.txt", "c.md"}, "c.md": {"c.md"},
	} {
		parsed, err := marchwarden.ParseSourceFilter(filter)
		if err != nil {
			t.Fatal(err)
		}
		hits, err := ix.Engine(nil, f).Search(t.Context(), search.Query{Text: "zones", Limit: 10, Filter: parsed})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, h := range hits {
			got[filepath.Base(h.Locator)] = true
		}
		wanted := map[string]bool{}
		for _, w := range want {
			wanted[w] = true
		}
		equal(t, "filter "+filter, got, wanted)
	}
}

func TestEmbeddedLibrary(t *testing.T) {
	f := fetch.EmbeddedFolder("embedded library", "embedded", corpus.FS())
	x := newCounter(t)
	start := time.Now()
	ix := open(t, "")
	report := update(t, ix, f, x)
	built := time.Since(start)
	start = time.Now()
	hits, err := ix.Engine(nil, f).Search(t.Context(), search.Query{Text: "What are ideal crops for a garden in Utah?", Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d documents indexed in %v, searched in %v", report.Added, built, time.Since(start))
	if report.Added < 24 || len(report.Notes) > 0 {
		t.Errorf("report %+v, want at least 24 documents and no notes", report)
	}
	if len(hits) != 10 {
		t.Errorf("%d hits, want 10", len(hits))
	}
	for _, h := range hits {
		raw, err := fs.ReadFile(f.FS, strings.TrimPrefix(h.Locator, "embedded:"))
		if err != nil {
			t.Error(err)
			continue
		}
		word := strings.Fields(h.Snippet)[0]
		if len([]rune(h.Snippet)) > snippetRunes || !bytes.Contains(raw, []byte(word)) {
			t.Errorf("snippet of %s is no part of it: %q", h.Locator, h.Snippet)
		}
		t.Logf("%.2f %s: %s", h.Score, h.Locator, h.Title)
	}
	calls := x.calls.Load()
	equal(t, "again", update(t, ix, f, x), Report{Folder: f.Name, Unchanged: report.Added})
	equal(t, "extractions", x.calls.Load(), calls)
}

func TestSkippedIsSaid(t *testing.T) {
	var s Skipped
	equal(t, "nothing", s.String(), "")
	for _, name := range []string{"a.PNG", "b/b.png", "c.zip", "core"} {
		s.unknown(name)
	}
	s.Hidden = 2
	equal(t, "said", s.String(), "4 of kinds that are not read (.png 2, .zip 1, no ending 1), 2 hidden")
}
