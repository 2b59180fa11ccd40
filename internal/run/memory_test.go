package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Only what was written since is read again.
func TestRemembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 5 {
		w.add(past{question: "What is peat?", answer: "Soil of moss."})
	}
	h := w.open()
	reads := func(do func()) int64 {
		before := w.blobs.gets.Load()
		do()
		return w.blobs.gets.Load() - before
	}
	all := func() { find(t, h, run.Query{}) }
	if n := reads(all); n != 5 {
		t.Errorf("%d results were read at first", n)
	}
	if n := reads(all); n != 0 {
		t.Errorf("%d results were read again", n)
	}
	w.add(past{question: "What is moss?"})
	if n := reads(all); n != 1 {
		t.Errorf("%d results were read for one that is new", n)
	}
	out, _, err := w.traces.Append(idOf(2))
	if err != nil {
		t.Fatal(err)
	}
	w.put(out, &trace.Resume{})
	w.end(out, 2, past{answer: "Soil of lichen."})
	out.Close()
	if n := reads(func() {
		if got, _ := find(t, h, run.Query{Words: "lichen"}); !cmp.Equal(got, []int{2}) {
			t.Errorf("the new answer: %v", got)
		}
	}); n != 1 {
		t.Errorf("%d results were read for one that changed", n)
	}
}

// However long the answers are, what is held of them is small, and all are found.
func TestMemoryIsBounded(t *testing.T) {
	const runs, size = 40, 40 << 10
	w := newWorld(t)
	files, err := dir.Open(t.TempDir()) // its bytes are not in memory
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	w.blobs.Store = files
	for n := range runs {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, "wordthatislong%dx%d ", n, i%500)
		}
		plainRun(t, w.path, n+1, past{question: "q", answer: b.String()}, files)
	}
	h := w.open()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for _, n := range []int{0, runs / 2, runs - 1} {
		if got, _ := find(t, h, run.Query{Words: fmt.Sprintf("wordthatislong%dx499", n)}); !cmp.Equal(got, []int{n + 1}) {
			t.Errorf("%d: %v", n, got)
		}
	}
	if grown := int64(heap()) - int64(before); grown > runs*size*9/10 {
		t.Errorf("the heap grew by %d for %d answers of %d", grown, runs, size)
	}
	runtime.KeepAlive(h)
}

// Several at once share what is read, and one that gives up leaves the others alone.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 30 {
		w.add(past{question: "What is peat?", answer: "Soil of moss."})
	}
	h := w.open()
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			switch i % 4 {
			case 0:
				if _, _, err := h.Find(gone, run.Query{Words: "moss"}, nil); !errors.Is(err, marchwarden.CodeCanceled) {
					t.Errorf("canceled: %v", err)
				}
			default:
				if _, total, err := h.Find(context.Background(), run.Query{Words: "moss"}, nil); err != nil || total != 30 {
					t.Errorf("Find: %d, %v", total, err)
				}
			}
		})
	}
	wg.Wait()
}

// plainRun writes a run of twenty steps or so in the first format, which has no
// checksums, in one go.
func plainRun(tb testing.TB, path string, n int, r past, blobs blob.Store) {
	tb.Helper()
	encoded, err := marchwarden.EncodeResult(r.result(n))
	if err != nil {
		tb.Fatal(err)
	}
	stored, err := blobs.Put(context.Background(), encoded)
	if err != nil {
		tb.Fatal(err)
	}
	start := r.start(n)
	start.Format = 1
	start.Action = trace.ActionStart
	steps := []trace.Step{start}
	for i := range 6 {
		steps = append(steps, &trace.Iteration{Head: trace.Head{Action: trace.ActionIteration}, Iteration: i + 1},
			&trace.Search{Head: trace.Head{Action: trace.ActionSearch}, Engine: "local", Query: r.question},
			&trace.SearchComplete{Head: trace.Head{Action: trace.ActionSearchComplete}, Engine: "local", Query: r.question, Hits: 10, Locators: []string{"lib://a.md", "lib://b.md", "lib://c.md"}})
	}
	steps = append(steps, &trace.Complete{Head: trace.Head{Action: trace.ActionComplete}, Result: stored, Citations: r.citations, Confidence: r.confidence})
	var b bytes.Buffer
	for i, s := range steps {
		s.Header().Step, s.Header().Timestamp = i+1, start.StartedAt.Add(time.Duration(i)*time.Second)
		line, err := json.Marshal(s)
		if err != nil {
			tb.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	if err := os.WriteFile(filepath.Join(path, idOf(n).String()+".jsonl"), b.Bytes(), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// Many runs are read once; after that, finding among them takes a fraction of the time.
func TestManyRuns(t *testing.T) {
	runs := 300
	if os.Getenv("MARCHWARDEN_TEST_FULL") != "" {
		runs = 5000
	}
	cold, warm := manyRuns(t, runs, blob.NewMem())
	t.Logf("%d runs: %v cold, %v warm", runs, cold, warm)
	if warm*3 > cold {
		t.Errorf("finding among %d runs takes %v, and %v when nothing has to be read", runs, cold, warm)
	}
}

func BenchmarkFind5000(b *testing.B) {
	for b.Loop() {
		files, err := dir.Open(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		cold, warm := manyRuns(b, 5000, files)
		files.Close()
		b.ReportMetric(cold.Seconds()*1000, "cold-ms")
		b.ReportMetric(warm.Seconds()*1000, "warm-ms")
		b.Logf("5000 runs: %v cold, %v warm", cold, warm)
		if warm*3 > cold {
			b.Errorf("it takes %v, and %v when nothing has to be read", cold, warm)
		}
	}
}

// manyRuns measures a search by words among runs that were never read, and again: the
// best of five.
func manyRuns(tb testing.TB, runs int, blobs blob.Store) (cold, warm time.Duration) {
	tb.Helper()
	path := tb.TempDir()
	for n := range runs {
		r := past{question: fmt.Sprintf("What is known of peat number %d?", n), citations: 5, confidence: 0.5,
			answer: strings.Repeat(fmt.Sprintf("Peat of bog %d is soil made of moss [1]. Its carbon was bound for %d years [2]. ", n%50, n%50*100), 20)}
		plainRun(tb, path, n+1, r, blobs)
	}
	traces, err := trace.OpenDir(path, time.Now)
	if err != nil {
		tb.Fatal(err)
	}
	defer traces.Close()
	h := run.OpenHistory(run.Store{Traces: traces, Blobs: blobs})
	measure := func() time.Duration {
		began := time.Now()
		_, total, err := h.Find(context.Background(), run.Query{Words: "carbon bogs", Limit: 20}, nil)
		if err != nil || total != runs {
			tb.Fatalf("%d of %d runs, %v", total, runs, err)
		}
		return time.Since(began)
	}
	cold, warm = measure(), time.Hour
	for range 5 {
		warm = min(warm, measure())
	}
	return cold, warm
}
