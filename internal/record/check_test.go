package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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

// The trace of a rihla that is gone is missed where its investigation is.
func TestATraceThatIsGone(t *testing.T) {
	p, runs := investigated(t, questions[0])
	rihla := runs[0].Rihlas[0]
	if err := os.Remove(p.trace(rihla.ID)); err != nil {
		t.Fatal(err)
	}
	r := check(t, p, record.CheckOptions{})
	if len(r.Findings) != 1 || r.Findings[0].Kind != record.MissingTrace || r.Findings[0].Object != "trace "+rihla.ID.String() || r.Wrong() != 1 ||
		r.Findings[0].NeededBy[0].Run != runs[0].ID || !strings.Contains(r.Findings[0].Remedy, "gc --run "+runs[0].ID.String()) {
		t.Errorf("found:\n%s", describe(r))
	}
	if err := os.Remove(p.trace(runs[0].ID)); err != nil {
		t.Fatal(err)
	}
	if r := check(t, p, record.CheckOptions{}); len(r.Findings) != 0 {
		t.Errorf("nobody misses it, and found:\n%s", describe(r))
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

// What stands in the place of a trace is damage; what nobody of ours made is only
// said; what our own writes left goes when it is old.
func TestStrangeFiles(t *testing.T) {
	p, _ := investigated(t, questions[0])
	id := func(n int) string { return fmt.Sprintf("01980000-0000-7000-8000-%012d", n) }
	path := func(name string) string { return filepath.Join(p.path, "traces", name) }
	if err := os.Symlink("/etc/passwd", path(id(1)+".jsonl")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path(id(2)+".jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	strays := []string{path(".x.tmp"), path("weird name.jsonl"), path(id(3) + ".imported"), filepath.Join(p.path, "blobs", "sha256", "garbage")}
	leftover := path("." + id(4) + ".jsonl." + strings.Repeat("A", 26) + ".tmp")
	for _, path := range append(strays, leftover, path(trace.ImportLock)) {
		write(t, path, []byte("x"))
		date(t, time.Now().Add(-2*time.Hour), path)
	}
	for _, repair := range []bool{false, true} {
		r := check(t, p, record.CheckOptions{Repair: repair})
		left := 1
		if repair {
			left = 0
		}
		if len(r.Findings) != 2 || r.Wrong() != 2*left || r.Repairable() == repair || r.Leftovers != left || r.Failed != "" {
			t.Errorf("repair %t: %+v\n%s", repair, r, describe(r))
		}
		sort := append([]string(nil), r.Strays...)
		if slices.Sort(sort); !slices.Equal(sort, slices.Sorted(slices.Values(strays))) {
			t.Errorf("strays: %q", r.Strays)
		}
	}
	if _, err := os.Stat(leftover); !os.IsNotExist(err) {
		t.Errorf("the leftover: %v", err)
	}
	if r := check(t, p, record.CheckOptions{}); len(r.Findings) != 0 || len(r.Strays) != len(strays) {
		t.Errorf("afterwards: %+v", r)
	}
}

// A trace without a whole first line has no run in it.
func TestTraceWithoutARun(t *testing.T) {
	for _, c := range []struct {
		text string
		age  time.Duration
		kind record.Kind
		kept int // files set aside
	}{
		{"", 0, record.EmptyTrace, 0},
		{"", 2 * time.Hour, record.EmptyTrace, 0},
		{`{"`, time.Minute, record.EmptyTrace, 0},
		{`{"`, 2 * time.Hour, record.EmptyTrace, 1},
		{"{\n", 2 * time.Hour, record.DamagedTrace, 0},
	} {
		p := open(t, t.TempDir())
		path := filepath.Join(p.path, "traces", "01980000-0000-7000-8000-000000000001.jsonl")
		write(t, path, []byte(c.text))
		date(t, time.Now().Add(-c.age), path)
		r := check(t, p, record.CheckOptions{Repair: true})
		removed := c.kind == record.EmptyTrace && c.age > time.Hour // a run may be about to begin in a younger one
		if len(r.Findings) != 1 || r.Findings[0].Kind != c.kind || r.Findings[0].Fixed != removed {
			t.Errorf("%q, %v old: %+v\n%s", c.text, c.age, r, describe(r))
		}
		if _, err := os.Stat(path); os.IsNotExist(err) != removed {
			t.Errorf("%q, %v old: %v", c.text, c.age, err)
		}
		if aside, _ := os.ReadDir(filepath.Join(p.path, "damaged")); len(aside) != c.kept {
			t.Errorf("%q, %v old: set aside %v", c.text, c.age, aside)
		}
	}
}

// A damaged blob that only a damaged trace mentions may be needed, and is not put
// right by moving it aside. What nobody can repair has a remedy, and no promise that
// a repair would help.
func TestWhatADamagedTraceMayNeed(t *testing.T) {
	p, runs := investigated(t, questions[0])
	run, rihla := runs[0], runs[0].Rihlas[0]
	var ref blob.Ref
	for _, s := range rihla.Log.Steps {
		if f, ok := s.(*trace.SearchComplete); ok {
			ref = f.OutputID
		}
	}
	write(t, p.blob(ref), []byte("damaged"))
	data := read(t, p.trace(rihla.ID))
	data[bytes.LastIndex(data, []byte("decision"))] ^= 1 // in no hash that the trace mentions
	write(t, p.trace(rihla.ID), data)
	r := check(t, p, record.CheckOptions{Repair: true})
	if len(r.Findings) != 2 || r.Wrong() != 2 {
		t.Fatalf("found:\n%s", describe(r))
	}
	for _, f := range r.Findings {
		if f.Kind == record.DamagedBlob && !slices.Equal(f.MayNeed, []marchwarden.TraceID{rihla.ID}) {
			t.Errorf("may be needed by %v", f.MayNeed)
		}
		if !strings.Contains(f.Remedy, "marchwarden gc --run "+run.ID.String()) {
			t.Errorf("%s: remedy %q", f.Object, f.Remedy)
		}
	}
	if r := check(t, p, record.CheckOptions{}); r.Repairable() || r.Wrong() != 1 {
		t.Errorf("afterwards:\n%s", describe(r))
	}
}

// Where nothing can be written, all is said that is wrong and why it stays so.
func TestRepairWhereNothingCanBeWritten(t *testing.T) {
	p, runs := investigated(t, questions[0])
	id := runs[0].ID
	write(t, p.trace(id), append(read(t, p.trace(id)), `{"step":99`...))
	result := runs[0].Rihlas[0].Log.Complete().Result
	write(t, p.blob(result), []byte("damaged"))
	write(t, filepath.Join(p.path, "damaged"), nil) // no folder can be made there
	r := check(t, p, record.CheckOptions{Repair: true})
	if len(r.Findings) != 2 || r.Wrong() != 2 || r.Failed == "" {
		t.Errorf("%+v\n%s", r, describe(r))
	}
	for _, f := range r.Findings {
		if !strings.HasPrefix(f.Done, "could not be repaired: ") {
			t.Errorf("%s: %q", f.Object, f.Done)
		}
	}
}

// A check that is broken off says what it found until then.
func TestCheckThatIsBrokenOff(t *testing.T) {
	p, runs := investigated(t, questions[0])
	data := read(t, p.trace(runs[0].ID))
	data[len(data)/2] ^= 1
	write(t, p.trace(runs[0].ID), data)
	ctx, stop := context.WithCancel(t.Context())
	r, err := p.home().Check(ctx, record.CheckOptions{Now: time.Now(), Repair: true, Progress: func(n int) {
		if n == 3 {
			stop()
		}
	}})
	if !errors.Is(err, context.Canceled) || !r.Incomplete || len(r.Findings) != 1 || r.Findings[0].Kind != record.DamagedTrace {
		t.Errorf("%+v, %v", r, err)
	}
}

// stopping breaks a check off when it looks for a blob that is missing.
type stopping struct {
	record.Shelf
	stop func()
}

func (s stopping) Inspect(ctx context.Context, file blob.File) ([]byte, error) {
	content, err := s.Shelf.Inspect(ctx, file)
	if err != nil {
		s.stop()
	}
	return content, err
}

// What is missing stays in the report when it was not found out yet who needs it.
func TestCheckThatIsBrokenOffNamesWhatIsMissing(t *testing.T) {
	p, runs := investigated(t, questions[0])
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := os.Remove(p.blob(runs[0].Log.Latest().Result)); err != nil {
		t.Fatal(err)
	}
	h := p.home()
	h.Shelf = stopping{h.Shelf, stop}
	r, err := h.Check(ctx, record.CheckOptions{Now: time.Now()})
	if !errors.Is(err, context.Canceled) || !slices.ContainsFunc(r.Findings, func(f record.Finding) bool { return f.Kind == record.MissingBlob }) {
		t.Errorf("%s%v", describe(r), err)
	}
}
