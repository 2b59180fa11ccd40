package local

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

func segmentCount(t *testing.T, ix *Index) (n int) {
	t.Helper()
	if err := ix.r.QueryRow("SELECT count(*) FROM segments").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// However often a folder changes, few segments hold it, nothing that is gone is
// kept for long, and what is found is what a fresh index finds.
func TestManySmallUpdatesLeaveFewSegments(t *testing.T) {
	fsys := fstest.MapFS{}
	f := fetch.EmbeddedFolder("library", "embedded", fsys)
	used, fresh := open(t, ""), open(t, "")
	for i := range 200 {
		fsys[fmt.Sprintf("f%d.md", i%70)] = &fstest.MapFile{Data: fmt.Appendf(nil, "apple pear%d, text number%d\n\n%s", i%5, i, strings.Repeat("filler ", i%40))}
		if i%9 == 8 {
			delete(fsys, fmt.Sprintf("f%d.md", i%70-3))
		}
		update(t, used, f, plainExtractor{})
		if n := segmentCount(t, used); n > 3*mergeAt {
			t.Fatalf("%d segments after %d updates", n, i+1)
		}
	}
	update(t, fresh, f, plainExtractor{})
	for _, q := range []string{"apple", "pear3", "number199", "filler text"} {
		a, errA := used.Engine(nil, f).Search(t.Context(), search.Query{Text: q, Limit: 100})
		b, errB := fresh.Engine(nil, f).Search(t.Context(), search.Query{Text: q, Limit: 100})
		if errA != nil || errB != nil || len(b) == 0 {
			t.Fatalf("%q: %d hits, %v %v", q, len(b), errA, errB)
		}
		equal(t, q, a, b)
	}
	var chunks, gone int
	if err := used.r.QueryRow("SELECT sum(chunks), sum(chunks) - (SELECT sum(chunks) FROM docs) FROM segments").Scan(&chunks, &gone); err != nil || gone*2 > chunks {
		t.Errorf("of %d chunks in the segments %d are gone (%v)", chunks, gone, err)
	}
}

// A batch of files becomes one segment, and enough of these one again.
func TestBatchesAreMerged(t *testing.T) {
	fsys := fstest.MapFS{}
	for i := range batchFiles * (mergeAt + 2) {
		fsys[fmt.Sprintf("f%04d.md", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "word number%d", i)}
	}
	f := fetch.EmbeddedFolder("library", "embedded", fsys)
	ix := open(t, "")
	update(t, ix, f, plainExtractor{})
	equal(t, "segments", segmentCount(t, ix), 3)
	for _, i := range []int{0, 49, 50, 399, 400, 499} {
		equal(t, "found", find(t, ix, f, fmt.Sprintf("number%d", i)), []string{fmt.Sprintf("f%04d.md", i)})
	}
}

// A file of many chunks is kept in several rows; every chunk can be shown.
func TestEveryChunkOfALongFileIsFound(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "needle%d %s.\n\n", i, strings.Repeat("é filler ", 90+i%20))
	}
	f := tree(t, "long.md", text.String(), "other.md", "needle")
	ix := open(t, "")
	update(t, ix, f, plainExtractor{})
	for i := range 100 {
		word := fmt.Sprintf("needle%d", i)
		hits, err := ix.Engine(nil, f).Search(t.Context(), search.Query{Text: word})
		if err != nil || len(hits) != 1 || !strings.HasPrefix(hits[0].Snippet, word+" ") {
			t.Errorf("%s: %+v, %v", word, hits, err)
		}
	}
}

// What one handle has loaded does not hide what another has written since.
func TestOtherHandlesAreSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	f := tree(t, "a.md", "alpha")
	reader, writer := open(t, path), open(t, path)
	update(t, writer, f, plainExtractor{})
	equal(t, "before", find(t, reader, f, "alpha beta"), []string{"a.md"})
	write(t, filepath.Join(f.Name, "b.md"), "beta beta")
	update(t, writer, f, plainExtractor{})
	equal(t, "after", find(t, reader, f, "beta"), []string{"b.md"})
	if err := writer.Remove(t.Context(), f.Name); err != nil {
		t.Fatal(err)
	}
	equal(t, "removed", find(t, reader, f, "alpha"), []string{})
	update(t, writer, f, plainExtractor{})
	equal(t, "again", find(t, reader, f, "alpha"), []string{"a.md"})
}

func TestScoresAreOfTheFoldersSearched(t *testing.T) {
	f, g := tree(t, "a.md", "apple pear", "b.md", "fig"), tree(t, "c.md", "apple", "d.md", "apple apple", "e.md", "apple fig")
	both, alone := open(t, ""), open(t, "")
	update(t, both, g, plainExtractor{})
	update(t, both, f, plainExtractor{})
	update(t, alone, f, plainExtractor{})
	q := search.Query{Text: "apple", Limit: 5}
	a, errA := both.Engine(nil, f).Search(t.Context(), q)
	b, errB := alone.Engine(nil, f).Search(t.Context(), q)
	if errA != nil || errB != nil || len(b) != 1 {
		t.Fatalf("%v %v, %d hits", errA, errB, len(b))
	}
	equal(t, "what other folders hold counts for nothing", a, b)
}

func TestADamagedSegment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	ix, f := open(t, path), tree(t, "a.md", "alpha")
	update(t, ix, f, plainExtractor{})
	if _, err := ix.w.Exec("UPDATE segments SET data = CAST(substr(data, 1, length(data) - 1) || x'ff' AS BLOB)"); err != nil {
		t.Fatal(err)
	}
	// An update that has to read it fails, and the next Open starts the index anew.
	for i := range mergeAt {
		write(t, filepath.Join(f.Name, fmt.Sprintf("b%d.md", i)), "beta")
		if _, err := ix.Update(t.Context(), f, UpdateOptions{Extract: plainExtractor{}}); err != nil {
			wantDamage(t, err)
			again := open(t, path)
			if report := update(t, again, f, plainExtractor{}); report.Rebuilt == "" {
				t.Errorf("report %+v, want a new index", report)
			}
			equal(t, "found", len(find(t, again, f, "alpha beta")), i+2)
			return
		}
	}
	t.Error("the damage was never met")
}

// An index whose tables do not fit each other is damaged: it says so and is made anew.
func TestTablesThatDoNotFit(t *testing.T) {
	for name, harm := range map[string]string{
		"a chunk without its text":        "DELETE FROM texts",
		"a file of a folder that is none": "UPDATE docs SET folder = folder + 9",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "index.db")
			ix, f := open(t, path), tree(t, "a.md", "alpha")
			update(t, ix, f, plainExtractor{})
			if _, err := ix.w.Exec(harm); err != nil {
				t.Fatal(err)
			}
			_, err := ix.Engine(nil, f).Search(t.Context(), search.Query{Text: "alpha"})
			wantDamage(t, err)
			if err := ix.Close(); err != nil {
				t.Fatal(err)
			}
			again := open(t, path)
			update(t, again, f, plainExtractor{})
			equal(t, "found", find(t, again, f, "alpha"), []string{"a.md"})
		})
	}
}
