//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// TestDurabilityCost measures what it costs that every step is on the disk before
// it counts: for a line of a trace and for a stored page, and for a run of 40
// seconds with 100 lines and 30 pages. The times are printed, not judged, as
// machines differ; judged is how much more a line and a page take, when little else
// goes on, than the least that any program would have to do in the same folder.
func TestDurabilityCost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	lines, blobs := tortureSize(100, 200, 2000), tortureSize(60, 100, 1000)
	home := t.TempDir()
	if syncsAreFree(t, home) {
		t.Skip("a sync costs nothing here, as in memory: there is nothing to compare with")
	}
	traces, err := trace.OpenDir(filepath.Join(home, "traces"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer traces.Close()
	store, err := dir.Open(filepath.Join(home, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	const most = 3
	line, bareLine := calmly(most, func(int) (cost, cost) { return costOfLines(t, traces, lines) })
	for i := range 256 { // pages are sorted into folders, which any home has that was used for a while
		if err := os.MkdirAll(filepath.Join(home, "blobs", "sha256", fmt.Sprintf("%02x", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	page, barePage := calmly(most, func(round int) (cost, cost) {
		return costOfPages(t, store, filepath.Join(home, fmt.Sprint("bare", round)), round*blobs, blobs)
	})
	run := 100*line.usual + 30*page.usual
	t.Logf("a line takes %v (a bare one %v), a page %v (a bare one %v); 100 lines and 30 pages take %v, %.2f %% of 40 s; wanted: at most 2ms a line and 1 %%",
		line.usual, bareLine.usual, page.usual, barePage.usual, run, 100*run.Seconds()/40)
	if line.quick > most*bareLine.quick {
		t.Errorf("a line takes %.1f times what a write and a sync take, more than %d times", float64(line.quick)/float64(bareLine.quick), most)
	}
	if page.quick > most*barePage.quick {
		t.Errorf("a page takes %.1f times what a new file takes, more than %d times", float64(page.quick)/float64(barePage.quick), most)
	}
}

// cost is how long something takes: usually, and when little else goes on.
type cost struct{ usual, quick time.Duration }

// syncsAreFree says whether a write with a sync takes about as long as one without.
func syncsAreFree(t *testing.T, folder string) bool {
	f, err := os.Create(filepath.Join(folder, "free"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write := func(int) error { _, err := f.WriteString("a line\n"); return err }
	synced, plain := timed(t, 50, func(i int) error { return errors.Join(write(i), f.Sync()) }, write)
	return synced.quick < 10*plain.quick
}

// calmly measures again while one thing takes more than most times as long as the
// other. A machine may be too busy to tell in one round; what takes long by itself does
// so in all of them.
func calmly(most time.Duration, measure func(round int) (cost, cost)) (one, other cost) {
	for round := range 6 {
		if one, other = measure(round); one.quick <= most*other.quick {
			break
		}
	}
	return one, other
}

// costOfLines is the time of a step of a usual length, and of the same
// bytes in a bare file.
func costOfLines(t *testing.T, traces *trace.Dir, n int) (ours, bare cost) {
	id := serve.NewTraceID()
	w, err := traces.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	f, err := os.Create(filepath.Join(traces.Path(), "bare"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	step := func() *trace.Start {
		return &trace.Start{Head: trace.Head{Decision: strings.Repeat("because ", 20)}, TraceID: id, Request: marchwarden.Request{Question: strings.Repeat("why ", 20)}}
	}
	written, err := json.Marshal(step())
	if err != nil {
		t.Fatal(err)
	}
	written = append(written, '\n')
	return timed(t, n, func(int) error { return w.Append(step()) }, func(int) error {
		_, err := f.Write(written)
		return errors.Join(err, f.Sync())
	})
}

// costOfPages is the time of a stored page, and of a new file with the same
// bytes that is synced, renamed and whose folder is synced. Pages are numbered from
// first on: one that is stored already costs less.
func costOfPages(t *testing.T, store *dir.Store, folder string, first, n int) (ours, bare cost) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	content := func(i int) []byte {
		n := first + i
		return fmt.Appendf(nil, "page %d: %s", n, strings.Repeat(fmt.Sprintf("words of page %d and more ", n), 600))
	}
	return timed(t, n, func(i int) error { _, err := store.Put(context.Background(), content(i)); return err }, func(i int) error {
		path := filepath.Join(folder, fmt.Sprint(i))
		f, err := os.Create(path + ".new")
		if err != nil {
			return err
		}
		_, err = f.Write(content(i))
		if err := errors.Join(err, f.Sync(), f.Close(), os.Rename(path+".new", path)); err != nil {
			return err
		}
		d, err := os.Open(folder)
		if err != nil {
			return err
		}
		return errors.Join(d.Sync(), d.Close())
	})
}

// timed times two things in turn, so that a busy moment meets both. One that computes
// more is still met more often, hence the quickest tenth.
func timed(t *testing.T, n int, one, other func(int) error) (cost, cost) {
	var times [2][]time.Duration
	for i := range n {
		for k, f := range []func(int) error{one, other} {
			began := time.Now()
			if err := f(i); err != nil {
				t.Fatal(err)
			}
			times[k] = append(times[k], time.Since(began))
		}
	}
	var costs [2]cost
	for k := range times {
		slices.Sort(times[k])
		costs[k] = cost{usual: times[k][n/2], quick: times[k][n/10]}
	}
	return costs[0], costs[1]
}
