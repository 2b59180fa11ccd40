package record_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

func TestCheckOfASoundHome(t *testing.T) {
	p, runs := investigated(t, questions[2])
	if _, err := p.blobs.Put(t.Context(), []byte("an orphan")); err != nil {
		t.Fatal(err)
	}
	r := check(t, p, record.CheckOptions{Repair: true})
	if len(r.Findings) != 0 || r.Orphans == 0 || r.Traces != len(runs[0].All()) || r.Blobs == 0 || r.Unsummed != 0 {
		t.Errorf("%+v\n%s", r, describe(r))
	}
}

// A bit of each of a thousand objects flips: all are found and named, blobs as well
// as traces.
func TestEveryFlippedBitIsFoundAndNamed(t *testing.T) {
	flips := 200
	if full() {
		flips = 1000
	}
	p, _ := investigated(t, questions...)
	var objects []string
	for _, folder := range []string{"blobs/sha256", "traces"} {
		err := filepath.WalkDir(filepath.Join(p.path, folder), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				objects = append(objects, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// So many more pages that there are as many objects as flips.
	random := rand.New(rand.NewPCG(5, 24))
	for i := len(objects); i < flips; i++ {
		ref, err := p.blobs.Put(t.Context(), fmt.Appendf(nil, "page %d: %s", i, strings.Repeat("word ", random.IntN(200))))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, p.blob(ref))
	}
	for _, path := range objects {
		data := read(t, path)
		bit := random.IntN(8 * len(data))
		data[bit/8] ^= 1 << (bit % 8)
		write(t, path, data)
	}
	r := check(t, p, record.CheckOptions{})
	named := map[string]bool{}
	for _, f := range r.Findings {
		named[f.Object] = true
	}
	found := 0
	for _, path := range objects {
		name := "trace " + strings.TrimSuffix(filepath.Base(path), ".jsonl")
		if !strings.HasSuffix(path, ".jsonl") {
			name = "blob sha256:" + filepath.Base(filepath.Dir(path)) + filepath.Base(path)
		}
		if !named[name] {
			t.Errorf("%s was not found", name)
			continue
		}
		found++
	}
	t.Logf("%d flips, %d found", len(objects), found)
}

// Each bit of one trace, so that no place in a line is left out.
func TestEveryBitOfATraceCounts(t *testing.T) {
	p, runs := investigated(t, questions[0])
	id := runs[0].Rihlas[0].ID
	whole := read(t, p.trace(id))
	step := 97
	switch os.Getenv("MARCHWARDEN_TEST_FULL") {
	case "":
	case "torture":
		step = 1
	default:
		step = 11
	}
	for bit := 0; bit < 8*len(whole); bit += step {
		data := append([]byte(nil), whole...)
		data[bit/8] ^= 1 << (bit % 8)
		log, err := trace.Read(strings.NewReader(string(data)))
		if err == nil && log.Torn == 0 {
			t.Fatalf("bit %d of byte %d of %d is not noticed", bit%8, bit/8, len(whole))
		}
	}
}

func TestCheckSaysWhoDependsOnIt(t *testing.T) {
	p, runs := investigated(t, questions[0])
	rihla := runs[0].Rihlas[0]
	var fetched *trace.FetchComplete
	for _, s := range rihla.Log.Steps {
		if f, ok := s.(*trace.FetchComplete); ok && f.Error == "" {
			fetched = f
		}
	}
	write(t, p.blob(fetched.ContentHash), []byte("no blob"))
	if err := os.Remove(p.blob(fetched.RawHash)); err != nil && fetched.RawHash != fetched.ContentHash {
		t.Fatal(err)
	}
	r := check(t, p, record.CheckOptions{})
	said := describe(r)
	for _, want := range []string{
		"damaged_blob blob " + fetched.ContentHash.String(),
		fmt.Sprintf("run %s step %d (fetch_url_complete %s), which is a rihla of %s", rihla.ID, fetched.Step, fetched.URL, runs[0].ID),
		"(evidence_checked ",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}

func TestRepair(t *testing.T) {
	p, runs := investigated(t, questions[0])
	run, rihla := runs[0], runs[0].Rihlas[0]
	// A torn tail.
	whole := read(t, p.trace(rihla.ID))
	write(t, p.trace(rihla.ID), append(append([]byte(nil), whole...), []byte(`{"step":99,"act`)...))
	// A damaged blob that can be had from another record: the rihla's result.
	result := rihla.Log.Complete().Result
	write(t, p.blob(result), []byte("damaged"))
	// One whose writer was broken off before the rename.
	lost := run.Log.Complete().Result
	if err := os.Rename(p.blob(lost), p.blob(lost)+".ABCDEF.tmp"); err != nil {
		t.Fatal(err)
	}
	// One that nobody needs, and one that is lost for good.
	orphan, err := p.blobs.Put(t.Context(), []byte("an orphan"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.blob(orphan), []byte("damaged"))
	var gone blob.Ref
	for _, s := range rihla.Log.Steps {
		if f, ok := s.(*trace.SearchComplete); ok {
			gone = f.OutputID
		}
	}
	write(t, p.blob(gone), []byte("damaged"))

	r := check(t, p, record.CheckOptions{Repair: true})
	said := describe(r)
	want := map[string]bool{"trace " + rihla.ID.String(): true, "blob " + result.String(): true, "blob " + lost.String(): true, "blob " + orphan.String(): true, "blob " + gone.String(): false}
	if len(r.Findings) != len(want) {
		t.Fatalf("found:\n%s", said)
	}
	for _, f := range r.Findings {
		if fixed, ok := want[f.Object]; !ok || f.Fixed != fixed || f.Done == "" && fixed {
			t.Errorf("%s: fixed %t (%s), want %t", f.Object, f.Fixed, f.Done, fixed)
		}
	}
	if got := read(t, p.trace(rihla.ID)); string(got) != string(whole) {
		t.Error("the trace is not what it was before its tail")
	}
	aside, err := os.ReadDir(filepath.Join(p.path, "damaged"))
	if err != nil || len(aside) != 4 {
		t.Errorf("set aside: %v, %v", aside, err)
	}
	// Again: nothing is done a second time, and what is lost is still said.
	again := check(t, p, record.CheckOptions{Repair: true, Now: time.Now().Add(2 * time.Hour)})
	if len(again.Findings) != 1 || again.Findings[0].Kind != record.MissingBlob || again.Findings[0].Done != "" || again.Wrong() != 1 {
		t.Errorf("the second time:\n%s", describe(again))
	}
	if left, err := filepath.Glob(filepath.Join(p.path, "blobs/sha256/*/*.tmp")); len(left) > 0 || err != nil {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// Of a run that is going on nothing is cut or missed.
func TestCheckLeavesARunningTraceAlone(t *testing.T) {
	p := open(t, t.TempDir())
	id, err := marchwarden.ParseTraceID("01980000-0000-7000-8000-000000000001")
	if err != nil {
		t.Fatal(err)
	}
	w, err := p.traces.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Append(&trace.Start{Format: trace.Format, TraceID: id}); err != nil {
		t.Fatal(err)
	}
	stump := append(read(t, p.trace(id)), []byte(`{"step":2`)...)
	write(t, p.trace(id), stump)
	r := check(t, p, record.CheckOptions{Repair: true})
	if len(r.Findings) != 0 || r.Running != 1 {
		t.Errorf("%+v", r)
	}
	if got := read(t, p.trace(id)); string(got) != string(stump) {
		t.Error("the trace was changed")
	}
}
