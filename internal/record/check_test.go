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
	r := check(t, p, record.CheckOptions{})
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

// The trace of a rihla that is gone is missed where its investigation is.
func TestATraceThatIsGone(t *testing.T) {
	p, runs := investigated(t, questions[0])
	rihla := runs[0].Rihlas[0]
	if err := os.Remove(p.trace(rihla.ID)); err != nil {
		t.Fatal(err)
	}
	r := check(t, p, record.CheckOptions{})
	if len(r.Findings) != 1 || r.Findings[0].Kind != record.MissingTrace || r.Findings[0].Object != "trace "+rihla.ID.String() ||
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
	r := check(t, p, record.CheckOptions{})
	if len(r.Findings) != 0 || r.Running != 1 {
		t.Errorf("%+v", r)
	}
	if got := read(t, p.trace(id)); string(got) != string(stump) {
		t.Error("the trace was changed")
	}
}

// What stands in the place of a trace is damage; what this program did not make is left alone.
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
	for _, path := range append(strays, path("lock")) {
		write(t, path, []byte("x"))
		date(t, time.Now().Add(-2*time.Hour), path)
	}
	r := check(t, p, record.CheckOptions{})
	if len(r.Findings) != 2 || !strings.Contains(r.Findings[0].Remedy, path(id(1)+".jsonl")) {
		t.Errorf("%+v\n%s", r, describe(r))
	}
}

// What a crash leaves is counted, and is no damage; a line that was written whole is.
func TestWhatACrashLeaves(t *testing.T) {
	for _, c := range []struct {
		text               string
		torn, empty, found int
	}{
		{"", 0, 1, 0}, {`{"`, 0, 1, 0}, {"{\n", 0, 0, 1}, {"START" + `{"step":2,"act`, 1, 0, 0}, {"START" + `{"step":2}*`, 0, 0, 1}, {"START" + "{step\n", 0, 0, 1},
	} {
		p := open(t, t.TempDir())
		end(t, begin(t, p, 1, time.Minute))
		path := p.trace(runID(t, 1))
		text := strings.ReplaceAll(c.text, "START", string(read(t, path)))
		write(t, path, []byte(text))
		r := check(t, p, record.CheckOptions{})
		if r.Torn != c.torn || r.Empty != c.empty || len(r.Findings) != c.found {
			t.Errorf("%q: %+v", c.text, r)
		}
		if string(read(t, path)) != text {
			t.Errorf("%q: the trace was changed", c.text)
		}
	}
}

// A damaged blob that only a damaged trace mentions is named with the trace.
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
	r := check(t, p, record.CheckOptions{})
	if len(r.Findings) != 2 || !strings.Contains(r.Findings[0].Remedy, "marchwarden gc --run "+run.ID.String()) || !strings.Contains(r.Findings[1].Remedy, "marchwarden gc") {
		t.Fatalf("found:\n%s", describe(r))
	}
}

// A check that is broken off says what it found until then.
func TestCheckThatIsBrokenOff(t *testing.T) {
	p, runs := investigated(t, questions[0], questions[1])
	data := read(t, p.trace(runs[0].ID))
	data[len(data)/2] ^= 1
	write(t, p.trace(runs[0].ID), data)
	if err := os.Remove(p.blob(runs[1].Log.Latest().Result)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	h := p.home()
	h.Shelf = stopping{h.Shelf, stop}
	r, err := h.Check(ctx, record.CheckOptions{Now: time.Now()})
	if !errors.Is(err, context.Canceled) || !r.Incomplete || len(r.Findings) != 2 || r.Findings[0].Kind != record.DamagedTrace {
		t.Errorf("%+v, %v", r, err)
	}
}

// stopping breaks a check off when it looks for a blob that is missing.
type stopping struct {
	record.Shelf
	stop func()
}

func (s stopping) Inspect(ctx context.Context, ref blob.Ref) ([]byte, error) {
	content, err := s.Shelf.Inspect(ctx, ref)
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
