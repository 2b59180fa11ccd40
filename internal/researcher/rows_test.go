package researcher_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

var raceEnabled = false // see race_test.go

// folderOf is a library of files with these texts.
func folderOf(t *testing.T, texts map[string]string) *fetch.Folder {
	t.Helper()
	path := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := fetch.OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	return folder
}

// TestARowIsCitedAlone asks for one row of a table: that row is cited, with its
// line, and no other.
func TestARowIsCitedAlone(t *testing.T) {
	const people = "name,job,town\nAda Bright,architect,Harn\nBen Cole,baker,Lowick\nCora Dale,carpenter,Harn\nDan Eames,doctor,Penfold\n"
	records := ""
	for _, line := range strings.Split(strings.TrimSpace(people), "\n")[1:] {
		cells := strings.Split(line, ",")
		records += fmt.Sprintf("{\"name\": %q, \"job\": %q, \"town\": %q}\n", cells[0], cells[1], cells[2])
	}
	for name, c := range map[string]struct {
		text  string
		shift int // lines above the first row
	}{"people.csv": {people, 1}, "people.tsv": {strings.ReplaceAll(people, ",", "\t"), 1}, "people.jsonl": {records, 0}} {
		t.Run(name, func(t *testing.T) {
			folder := folderOf(t, map[string]string{name: c.text})
			h := newHome(t, folder)
			for question, want := range map[string]struct {
				row  int
				text string
			}{
				"Who is the architect?":              {1, "name: Ada Bright; job: architect; town: Harn."},
				"Who is the doctor?":                 {4, "name: Dan Eames; job: doctor; town: Penfold."},
				"What is the job of Cora Dale?":      {3, "name: Cora Dale; job: carpenter; town: Harn."},
				"In which town does Ben Cole bake?":  {2, "name: Ben Cole; job: baker; town: Lowick."},
				"Which town does Dan Eames live in?": {4, "name: Dan Eames; job: doctor; town: Penfold."},
			} {
				res := h.ask(t, marchwarden.Request{Question: question})
				if len(res.Citations) != 1 || res.Citations[0].RawExcerpt != want.text {
					t.Errorf("%q: answer %q, citations %+v, want %q alone", question, res.Answer, res.Citations, want.text)
					continue
				}
				if at := fmt.Sprintf("%s#L%d", filepath.Join(folder.Name, name), want.row+c.shift); res.Citations[0].Locator != at {
					t.Errorf("%q: cited at %s, want %s", question, res.Citations[0].Locator, at)
				}
			}
		})
	}
}

// TestPlainContradictions asks where two files plainly disagree: two short sentences,
// and a row with a sentence.
func TestPlainContradictions(t *testing.T) {
	for _, c := range []struct {
		question string
		texts    map[string]string
		values   [2]string
	}{
		{"What price was agreed?", map[string]string{"a.md": "The price agreed is 42,000 euros.\n", "b.md": "The price agreed is 38,000 euros.\n"}, [2]string{"42,000 euros", "38,000 euros"}},
		{"What is the price of the Copper kettle?", map[string]string{"a.csv": "name,price\nCopper kettle,49.9\nIron pan,30\n", "b.md": "The price of the Copper kettle is 60.\n"}, [2]string{"49.9", "60"}},
	} {
		res := newHome(t, folderOf(t, c.texts)).ask(t, marchwarden.Request{Question: c.question})
		if len(res.Contradictions) != 1 || len(res.Citations) != 2 {
			t.Errorf("%q: %q, %d citations, contradictions %+v", c.question, res.Answer, len(res.Citations), res.Contradictions)
			continue
		}
		a, b := res.Contradictions[0].A.Value, res.Contradictions[0].B.Value
		if got := [2]string{a, b}; got != c.values && got != [2]string{c.values[1], c.values[0]} {
			t.Errorf("%q: values %q, want %q", c.question, got, c.values)
		}
	}
}

// TestALargeTable reads a table of five megabytes: every passage is a row, the
// row that is asked for is found, in reasonable time and memory.
func TestALargeTable(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("skipped with -short and -race: indexes five megabytes")
	}
	var table strings.Builder
	table.WriteString("id,parcel,owner,note\n")
	rows := 0
	size, parcel := 1<<20, "P007007"
	if datatest.Full() {
		size, parcel = 5<<20, "P031007"
	}
	for ; table.Len() < size; rows++ {
		fmt.Fprintf(&table, "%d,Parcel P%06d,Owner %c%c%d,\"Surveyed on foot, fenced along the brook and let for grazing.\"\n", rows, rows, 'A'+rows%26, 'A'+rows/26%26, rows%97)
	}
	x := extract.New(extract.Config{})
	defer x.Close()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	doc, err := x.Extract(t.Context(), "parcels.csv", []byte(table.String()))
	if err != nil {
		t.Fatal(err)
	}
	read := time.Since(began)
	passages := evidence.Split(doc.Text)
	split := time.Since(began) - read
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20
	t.Logf("%d rows, %d MiB of text: read in %v, split in %v, %d MiB held", rows, len(doc.Text)>>20, read.Round(time.Millisecond), split.Round(time.Millisecond), grown)
	if len(passages) != rows {
		t.Errorf("%d passages of %d rows", len(passages), rows)
	}
	for i, p := range passages {
		if !strings.HasPrefix(p.Text, fmt.Sprintf("id: %d; parcel: Parcel P%06d; owner: ", i, i)) || !strings.HasSuffix(p.Text, "let for grazing.") || len(p.Sentences) != 1 {
			t.Fatalf("passage %d is %q", i, p.Text)
		}
	}
	if grown > 100 {
		t.Errorf("%d MiB are held for a table of 5", grown)
	}
	runtime.KeepAlive(passages)

	h := newHome(t, folderOf(t, map[string]string{"parcels.csv": table.String()}))
	began = time.Now()
	res := h.ask(t, marchwarden.Request{Question: "Who is the owner of Parcel " + parcel + "?"})
	t.Logf("indexed and asked in %v", time.Since(began).Round(time.Millisecond))
	if len(res.Citations) == 0 || !strings.Contains(res.Citations[0].RawExcerpt, parcel) {
		t.Errorf("answer %q, citations %+v", res.Answer, res.Citations)
	}
	for _, c := range res.Citations {
		if !strings.HasPrefix(c.RawExcerpt, "id: ") || strings.Count(c.RawExcerpt, "parcel: ") != 1 {
			t.Errorf("not one row: %q", c.RawExcerpt)
		}
	}
}
