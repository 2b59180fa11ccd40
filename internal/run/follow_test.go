package run_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/desk"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// shelf is traces in memory.
type shelf struct {
	texts map[marchwarden.TraceID][]byte
	idle  bool // nobody writes them
	fails error
}

func newShelf() *shelf { return &shelf{texts: map[marchwarden.TraceID][]byte{}} }

func (s *shelf) Size(_ context.Context, id marchwarden.TraceID) (int64, bool, error) {
	text, ok := s.texts[id]
	if !ok {
		return 0, false, marchwarden.Errorf(marchwarden.CodeNotFound, "no trace %s", id)
	}
	return int64(len(text)), s.idle, s.fails
}

func (s *shelf) Raw(id marchwarden.TraceID) (io.ReadCloser, error) {
	if _, _, err := s.Size(context.Background(), id); err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(s.texts[id])), nil
}

// line is one line of one trace.
type line struct {
	id   marchwarden.TraceID
	at   time.Time
	text []byte
}

// investigated is a real investigation with its rihlas' traces.
type investigated struct {
	res   *marchwarden.Result
	blobs blob.Store
	lines []line // of all traces, as they were written
	texts map[marchwarden.TraceID][]byte
}

func investigate(t *testing.T) investigated {
	t.Helper()
	return investigateWatched(t, func(*trace.Dir, blob.Store, marchwarden.TraceID) {})
}

// investigateWatched calls watch when the investigation has got its id, before it begins.
func investigateWatched(t *testing.T, watch func(*trace.Dir, blob.Store, marchwarden.TraceID)) investigated {
	t.Helper()
	x := extract.New(extract.Config{})
	t.Cleanup(func() { _ = x.Close() })
	now := desk.OnToday(time.Now)
	traces, err := trace.OpenDir(filepath.Join(t.TempDir(), "traces"), now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = traces.Close() })
	out := investigated{blobs: blob.NewMem(), texts: map[marchwarden.TraceID][]byte{}}
	var once sync.Once
	newID := func() marchwarden.TraceID {
		id := serve.NewTraceID()
		once.Do(func() { watch(traces, out.blobs, id) })
		return id
	}
	d, err := desk.New(desk.Config{Extractor: x, Pi: true, Records: &desk.Records{Traces: traces, Blobs: out.blobs, Version: "test", Now: now, NewID: newID}})
	if err != nil {
		t.Fatal(err)
	}
	docs := eval.Docs{
		"valley.md": "# Deseret Valley\n\nFarmers of Deseret Valley grow alfalfa and barley.\n\nThe Sevier River gives Deseret Valley its water.\n",
		"pie.md":    "# Pie\n\nPeach pie is made of peaches and flour.\n",
	}
	l, err := d.Open(t.Context(), "valley", docs.FS())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	out.res, err = l.Ask(t.Context(), marchwarden.Request{Question: "What is peach pie made of, and who is the mayor of Deseret Valley?"})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := traces.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		f, err := traces.Raw(id)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		log, err := trace.Read(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		out.texts[id] = text
		for i, text := range bytes.SplitAfter(text, []byte("\n"))[:len(log.Steps)] {
			out.lines = append(out.lines, line{id, log.Steps[i].Header().Timestamp, text})
		}
	}
	slices.SortStableFunc(out.lines, func(a, b line) int { return a.at.Compare(b.at) })
	return out
}

func read(t *testing.T, s *shelf, blobs blob.Store, id marchwarden.TraceID) (*run.Board, bool) {
	t.Helper()
	b, over, err := run.ReadBoard(t.Context(), s, blobs, id)
	if err != nil {
		t.Fatal(err)
	}
	return b, over
}

var ids = cmp.Comparer(func(a, b marchwarden.TraceID) bool { return a == b })

// A run that is read while it is written is over at its end and not before, and half a line
// changes nothing.
func TestReadAtEveryLine(t *testing.T) {
	inv := investigate(t)
	own := inv.res.TraceID
	grown := newShelf()
	var last *run.Board
	for i, l := range inv.lines {
		if last == nil && l.id != own {
			grown.texts[l.id] = append(grown.texts[l.id], l.text...)
			continue
		}
		half := len(l.text) / (2 + i%3)
		grown.texts[l.id] = append(grown.texts[l.id], l.text[:half]...)
		torn, over := read(t, grown, inv.blobs, own)
		if diff := cmp.Diff(last, torn, ids); last != nil && diff != "" || over {
			t.Fatalf("line %d: half a line changed something, or it is over: %v, %s", i, over, diff)
		}
		grown.texts[l.id] = append(grown.texts[l.id], l.text[half:]...)
		if last, over = read(t, grown, inv.blobs, own); over != last.Ended {
			t.Fatalf("line %d of %d (%s): over is %v", i, len(inv.lines), l.text, over)
		}
	}
	if !last.Ended {
		t.Error("it does not end")
	}
}

// What a finished investigation shows is what its result tells.
func TestARealInvestigation(t *testing.T) {
	inv := investigate(t)
	s := newShelf()
	s.texts, s.idle = inv.texts, true
	b, over := read(t, s, inv.blobs, inv.res.TraceID)
	if !over || !b.Ended || b.Interrupted {
		t.Errorf("over %v, %+v", over, b)
	}
	if b.Question != "What is peach pie made of, and who is the mayor of Deseret Valley?" || b.Tokens != inv.res.CostMetadata.TokensUsed || b.Budget != 20000 ||
		b.Lanes[0].Citations != len(inv.res.Citations) || len(b.Decisions) != len(inv.res.Decisions) {
		t.Errorf("%+v\nwant %+v", b, inv.res)
	}
	if len(b.Lanes) != 1+len(inv.res.Rihlas) || len(b.Lanes) < 3 {
		t.Fatalf("%d lanes of %d rihlas", len(b.Lanes), len(inv.res.Rihlas))
	}
	took := time.Duration(inv.res.CostMetadata.WallTimeSec * float64(time.Second))
	if all := b.Last.Sub(b.Began); all < took || all > took+2*time.Second {
		t.Errorf("from %v to %v; it took %v", b.Began, b.Last, took)
	}
	for i, l := range b.Lanes {
		if l.Number != i || l.State != run.Done || l.Doing == "" {
			t.Errorf("lane %d: %+v", i, l)
		}
		if i == 0 {
			continue
		}
		if r := inv.res.Rihlas[i-1]; l.Question != r.Question || l.Researcher != r.Researcher || l.Citations != r.Citations || l.Documents != len(l.Read) {
			t.Errorf("lane %d: %+v\nwant %+v", i, l, r)
		}
	}
	if diff := cmp.Diff(inv.res.Gaps, b.Gaps); diff != "" {
		t.Errorf("the gaps: %s", diff)
	}
}

// Traces of rihlas may come late, not at all, or be of runs that are none of a rihla.
func TestRihlasThatAreLate(t *testing.T) {
	inv := investigate(t)
	own := inv.res.TraceID
	s := newShelf()
	s.texts[own] = inv.texts[own]
	b, over := read(t, s, inv.blobs, own)
	if !over || b.Lanes[1].State != run.Done || b.Lanes[1].Documents != 0 || b.Lanes[1].Citations != inv.res.Rihlas[0].Citations {
		t.Fatalf("%+v", b.Lanes[1])
	}
	s.texts = inv.texts
	if b, _ = read(t, s, inv.blobs, own); b.Lanes[1].Documents == 0 {
		t.Errorf("%+v", b.Lanes[1])
	}

	other := newShelf()
	other.texts[own] = inv.texts[own]
	for _, r := range inv.res.Rihlas {
		other.texts[r.TraceID] = written(t, r.TraceID, &trace.Start{Request: marchwarden.Request{Question: "whose?"}}, &trace.Fetch{}, &trace.FetchComplete{ContentHash: blob.Of(nil)})
	}
	if b, _ := read(t, other, inv.blobs, own); b.Lanes[1].Documents != 0 {
		t.Errorf("somebody's run is shown: %+v", b.Lanes[1])
	}
}

// written is a trace of these steps.
func written(t *testing.T, id marchwarden.TraceID, steps ...trace.Step) []byte {
	t.Helper()
	clock := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	d, err := trace.OpenDir(t.TempDir(), func() time.Time { clock = clock.Add(time.Second); return clock })
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w, err := d.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, s := range steps {
		if start, ok := s.(*trace.Start); ok {
			start.Format, start.TraceID = trace.Format, id
		}
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	f, err := d.Raw(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func followedID(t *testing.T, n string) marchwarden.TraceID {
	t.Helper()
	id, err := marchwarden.ParseTraceID("00000000-0000-7000-8000-00000000000" + n)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A run is over when nobody writes it, and is not when somebody goes on with it.
func TestARunThatIsCutOffAndGoesOn(t *testing.T) {
	id, s := followedID(t, "1"), newShelf()
	text := written(t, id, &trace.Start{Request: marchwarden.Request{Question: "What?"}}, &trace.Search{}, &trace.Resume{}, &trace.Search{}, &trace.SearchComplete{}, &trace.Complete{})
	lines := bytes.SplitAfter(text, []byte("\n"))
	s.texts[id] = bytes.Join(lines[:2], nil)
	if b, over := read(t, s, blob.NewMem(), id); over || b.Interrupted || b.Lanes[0].State != run.Searching {
		t.Errorf("over %v: %+v", over, b)
	}
	s.idle = true
	b, over := read(t, s, blob.NewMem(), id)
	if !over || b.Ended || !b.Interrupted || b.Lanes[0].State != run.Failed {
		t.Errorf("over %v: %+v", over, b)
	}
	s.idle = false
	s.texts[id] = bytes.Join(lines[:4], nil)
	if b, over := read(t, s, blob.NewMem(), id); over || b.Interrupted || b.Lanes[0].State != run.Searching {
		t.Errorf("over %v: %+v", over, b)
	}
	s.texts[id] = text
	if b, over := read(t, s, blob.NewMem(), id); !over || !b.Ended || b.Interrupted || b.Lanes[0].State != run.Done {
		t.Errorf("over %v: %+v", over, b)
	}
}

// What is wrong with a trace is said, with the board as far as it can be read; what is wrong for a
// moment is over in another.
func TestTracesThatFail(t *testing.T) {
	id, s := followedID(t, "1"), newShelf()
	look := func() (*run.Board, bool, error) { return run.ReadBoard(t.Context(), s, blob.NewMem(), id) }
	if b, over, err := look(); b != nil || !over || !errors.Is(err, marchwarden.CodeNotFound) {
		t.Errorf("%+v, %v, %v", b, over, err)
	}
	text := written(t, id, &trace.Start{}, &trace.Fetch{}, &trace.FetchComplete{ContentHash: blob.Of(nil)})
	s.texts[id] = nil
	if b, over, err := look(); over || b == nil || err != nil {
		t.Errorf("an empty trace: %+v, over %v, %v", b, over, err)
	}
	s.texts[id] = text
	s.fails = marchwarden.Errorf(marchwarden.CodeUnavailable, "for a moment")
	if b, over, err := look(); b != nil || over || err == nil {
		t.Errorf("%+v, %v, %v", b, over, err)
	}
	s.fails = nil
	s.texts[id] = append(bytes.Clone(text), "{}\n{}\n"...)
	if b, over, err := look(); !over || !b.Interrupted || b.Lanes[0].Documents != 1 || !errors.Is(err, marchwarden.CodeCorrupt) {
		t.Errorf("%+v, %v, %v", b, over, err)
	}
	s.texts[id] = written(t, id, &trace.Start{}) // brought here anew
	if b, _, err := look(); err != nil || b.Lanes[0].State != run.Planning {
		t.Errorf("%+v, %v", b, err)
	}
}
