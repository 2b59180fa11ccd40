package logbook

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

type note struct {
	Text string `json:"text"`
}

// reader is a book, and all that it has told.
type reader struct {
	*Book
	told []string
	anew int
}

func read(path string) *reader {
	r := &reader{}
	r.Book = Open(path, "test/1", func(entry []byte, _ int64) {
		var n note
		if json.Unmarshal(entry, &n) == nil {
			r.told = append(r.told, n.Text)
		}
	}, func() { r.told = nil; r.anew++ })
	return r
}

func (r *reader) add(t *testing.T, text string) {
	t.Helper()
	if err := r.Append(false, func() (any, error) { return note{text}, nil }); err != nil {
		t.Fatal(err)
	}
}

// Several who append each know all that went before, in one order.
func TestOneOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "log")
	const writers, each = 4, 10
	books := make([]*reader, writers)
	var all sync.WaitGroup
	for i := range books {
		books[i] = read(path)
		all.Go(func() {
			for range each {
				err := books[i].Append(i%2 == 0, func() (any, error) { return note{fmt.Sprint(len(books[i].told))}, nil })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	var want []string
	for n := range writers * each {
		want = append(want, fmt.Sprint(n))
	}
	for i, b := range books {
		if err := b.Refresh(); err != nil || !slices.Equal(b.told, want) {
			t.Errorf("book %d: %v, %v", i, b.told, err)
		}
	}
	var late []string
	ends := []int64{0}
	err := books[0].Scan(0, func(_ []byte, end int64) bool { ends = append(ends, end); return true })
	if err != nil || len(ends) != writers*each+1 {
		t.Fatal(len(ends), err)
	}
	err = books[0].Scan(ends[len(ends)-3], func(entry []byte, _ int64) bool { late = append(late, string(entry)); return true })
	if err != nil || len(late) != 2 {
		t.Errorf("%v, %v", late, err)
	}
}

func TestNothingIsWrittenAfterAnError(t *testing.T) {
	r := read(filepath.Join(t.TempDir(), "log"))
	r.add(t, "a")
	no := errors.New("no")
	if err := r.Append(false, func() (any, error) { return nil, no }); !errors.Is(err, no) {
		t.Error(err)
	}
	r.add(t, "b")
	again := read(r.path)
	if err := again.Refresh(); err != nil || !slices.Equal(again.told, []string{"a", "b"}) {
		t.Errorf("%v, %v", again.told, err)
	}
}

// A stump is passed over and cut off; damage in front of something sound is said.
func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	r := read(path)
	for _, text := range []string{"a", "b", "c"} {
		r.add(t, text)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := len(whole) / 3
	for cut := line; cut <= len(whole); cut += 1 + cut%4 {
		for _, tail := range []string{"", "\x00\x00", "\n", "rubbish\nmore\n"} {
			if err := os.WriteFile(path, append(whole[:cut:cut], tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			cold, want := read(path), []string{"a", "b", "c"}[:cut/line]
			if cut%line == line-1 && tail == "\n" {
				want = []string{"a", "b", "c"}[:cut/line+1] // just what was missing
			}
			if err := cold.Refresh(); err != nil || !slices.Equal(cold.told, want) {
				t.Fatalf("cut at %d, then %q: %v, %v", cut, tail, cold.told, err)
			}
			cold.add(t, "d")
			if after := read(path); after.Refresh() != nil || !slices.Equal(after.told, append(want, "d")) {
				t.Fatalf("cut at %d, then %q, and gone on: %v", cut, tail, after.told)
			}
		}
	}
	for at := range 2*line - 1 { // a last newline that is lost looks like a stump
		bad := slices.Clone(whole)
		bad[at] ^= 1
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := read(path).Refresh(); !errors.Is(err, marchwarden.CodeCorrupt) {
			t.Fatalf("damaged at %d: %v", at, err)
		}
	}
}

// A book that is replaced is told anew to all its readers, and appends go to the new one.
func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	one, two := read(path), read(path)
	one.add(t, "a")
	two.add(t, "b")
	if err := one.Replace(func() []any { return nil }); err != nil || one.anew != 0 {
		t.Errorf("left as it was: %v, %d", err, one.anew)
	}
	if err := one.Replace(func() []any { return []any{note{"B"}} }); err != nil {
		t.Fatal(err)
	}
	two.add(t, "c")
	one.add(t, "d")
	if err := two.Refresh(); err != nil {
		t.Fatal(err)
	}
	for i, r := range []*reader{one, two} {
		if want := []string{"B", "c", "d"}; !slices.Equal(r.told, want) || r.anew != 1 {
			t.Errorf("reader %d: %v, anew %d times", i+1, r.told, r.anew)
		}
	}
}
