package runs

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

func recordOf(n int, ended time.Time) record {
	id, err := marchwarden.ParseTraceID(fmt.Sprintf("0198c0de-7a3b-7c11-9d55-%012x", n))
	if err != nil {
		panic(err)
	}
	return record{Format: recordFormat, ID: id, Owner: "token:alice", Status: Completed, Ended: ended, Updated: ended}
}

func owns(s *shelf, owner string, id marchwarden.TraceID) bool {
	return s.has(owner, func(rec record) bool { return rec.ID == id || slices.Contains(rec.Traces, id) })
}

func cites(s *shelf, owner, hash string) bool {
	return s.has(owner, func(rec record) bool { return slices.Contains(rec.Evidence, hash) })
}

// Of too many records of an owner the oldest ended ones go before their time, and never those that
// are to go on.
func TestIndexIsBounded(t *testing.T) {
	x := &shelf{records: map[marchwarden.TraceID]known{}}
	const surplus = 100
	start := time.Unix(1e9, 0)
	going := recordOf(1<<40, time.Time{})
	going.Kept = true
	x.add(known{record: going})
	for n := range maxRecords + surplus {
		rec := recordOf(n, start.Add(time.Duration(n)*time.Second))
		rec.Evidence = []string{"sha256:" + fmt.Sprintf("%064x", n), "sha256:" + fmt.Sprintf("%064x", 1<<30)}
		rec.Traces = []marchwarden.TraceID{recordOf(n|1<<41, start).ID}
		x.add(known{record: rec})
		x.add(known{record: rec}) // the same again is no other
	}
	old := x.expired("", start.Add(-time.Hour))
	if len(old) != surplus || old[0].ID != recordOf(surplus-1, start).ID || old[surplus-1].ID != recordOf(0, start).ID {
		t.Fatalf("%d are to go, the first %v", len(old), old[0].ID)
	}
	for _, rec := range old {
		delete(x.records, rec.ID)
	}
	left := len(x.records)
	if left != maxRecords+1 || len(x.expired("", start.Add(-time.Hour))) != 0 {
		t.Errorf("%d are left", left)
	}
	if got := len(x.expired("", start.Add(maxRecords*time.Hour))); got != left-1 {
		t.Errorf("%d are to go in the end", got)
	}
	hash := func(n int) string { return fmt.Sprintf("sha256:%064x", n) }
	if owns(x, "token:alice", recordOf(1<<41, start).ID) || cites(x, "token:alice", hash(0)) {
		t.Error("what was removed is known")
	}
	last := maxRecords + surplus - 1
	if !owns(x, "token:alice", recordOf(last|1<<41, start).ID) || !cites(x, "token:alice", hash(last)) || !cites(x, "token:alice", hash(1<<30)) {
		t.Error("what stays is not known")
	}
	if owns(x, "token:bob", recordOf(last, start).ID) || cites(x, "token:bob", hash(last)) {
		t.Error("another sees it")
	}
}

// A record that another process has changed meanwhile is not removed, nor one whose run
// goes on.
func TestRemoveLooksAgain(t *testing.T) {
	s, err := openShelf(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	known := recordOf(1, time.Unix(1e9, 0).UTC())
	later := recordOf(1, time.Unix(2e9, 0).UTC())
	if err := s.write(later); err != nil {
		t.Fatal(err)
	}
	if err := s.remove(known); err != durable.ErrLocked {
		t.Errorf("a changed one: %v", err)
	}
	f, err := s.lock(known.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.remove(later); err == nil {
		t.Error("one that is locked is removed")
	}
	s.unlock(known.ID, f)
	if rec, err := s.read(known.ID); err != nil || rec.ID != later.ID || !rec.Ended.Equal(later.Ended) {
		t.Errorf("read %+v, %v", rec, err)
	}
	if err := s.remove(later); err != nil {
		t.Error(err)
	}
	if _, err := s.read(known.ID); err != errNone {
		t.Errorf("a removed one: %v", err)
	}
}

func TestTidy(t *testing.T) {
	dir := t.TempDir()
	s, err := openShelf(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	one, two, three := recordOf(1, time.Unix(1e9, 0)).ID.String(), recordOf(2, time.Time{}).ID.String(), recordOf(3, time.Time{}).ID.String()
	if err := s.write(recordOf(1, time.Unix(1e9, 0))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"." + one + ".json.X.tmp", one + ".json.new", one + ".lock", two + ".lock", two + ".stop", three + ".stop", "notes.txt", "x.lock", one + ".json.damaged"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	held, err := s.lock(recordOf(4, time.Time{}).ID) // at work, though its record is not written yet
	if err != nil {
		t.Fatal(err)
	}
	s.tidy(time.Now())
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(names) != 11 {
		t.Errorf("young files are removed: left are %v", names)
	}
	s.tidy(time.Now().Add(2 * oldScrap))
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{one + ".json", one + ".json.damaged", one + ".lock", recordOf(4, time.Time{}).ID.String() + ".lock", "notes.txt", "x.lock"}; !cmp.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
	s.unlock(recordOf(4, time.Time{}).ID, held)
}

// A record is read once as it is, and again if it changes or is gone.
func TestReadsAgain(t *testing.T) {
	s, err := openShelf(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	other := &shelf{dir: s.dir, log: s.log, records: map[marchwarden.TraceID]known{}}
	rec := recordOf(1, time.Time{})
	for step, owner := range []string{"token:alice", "token:bob"} {
		rec.Owner = owner + "'s"
		if err := other.write(rec); err != nil {
			t.Fatal(err)
		}
		if err := s.refresh(); err != nil || !owns(s, rec.Owner, rec.ID) || step > 0 && owns(s, "token:alice's", rec.ID) {
			t.Errorf("step %d: %v", step, err)
		}
	}
	changed := rec
	changed.Owner = "token:carol"
	s.add(known{record: changed})
	if err := s.refresh(); err != nil || owns(s, rec.Owner, rec.ID) {
		t.Errorf("what has not changed was read again: %v", err)
	}
	if err := other.remove(rec); err != nil {
		t.Fatal(err)
	}
	s.add(known{record: rec})
	if err := s.refresh(); err != nil || owns(s, rec.Owner, rec.ID) {
		t.Errorf("what is gone is known: %v", err)
	}
}
