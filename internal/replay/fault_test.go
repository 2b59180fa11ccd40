package replay_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// bent is a keeper whose bytes a test can change behind the store's back.
type bent struct {
	mu      sync.Mutex
	content map[blob.Ref][]byte
}

func (b *bent) Keep(_ context.Context, ref blob.Ref, content []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.content[ref] = bytes.Clone(content)
	return nil
}

func (b *bent) Read(_ context.Context, ref blob.Ref) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	content, ok := b.content[ref]
	if !ok {
		return nil, blob.ErrNotFound
	}
	return bytes.Clone(content), nil
}

func (b *bent) Size(ctx context.Context, ref blob.Ref) (int64, error) {
	content, err := b.Read(ctx, ref)
	return int64(len(content)), err
}

// A flipped bit in any blob of a run, or a lost one, is found by CheckBlobs and,
// where it is an outcome, by the rerun; both name the blob.
func TestDamageNamesTheBlob(t *testing.T) {
	r := newRecord(t)
	keeper := &bent{content: map[blob.Ref][]byte{}}
	r.blobs = blob.Guard(keeper)
	ctx := context.Background()
	play(ctx, r.journal(), &engine{}, fetcher{r.blobs}, script(), clock())
	log := r.log()
	outcomes, needed := map[blob.Ref]bool{}, map[blob.Ref]bool{}
	for _, s := range log.Steps {
		if rec, ok := s.(trace.Recorded); ok {
			outcomes[rec.Record().OutputID] = true
		}
		for _, ref := range trace.Refs(s) {
			needed[ref] = true
		}
	}
	if len(outcomes) < 10 || len(needed) <= len(outcomes) {
		t.Fatalf("%d outcomes, %d blobs: the test proves little", len(outcomes), len(needed))
	}
	for ref := range needed {
		whole := keeper.content[ref]
		for name, damage := range map[string]func(){
			"flipped": func() { c := bytes.Clone(whole); c[len(c)/2] ^= 1; keeper.content[ref] = c },
			"lost":    func() { delete(keeper.content, ref) },
		} {
			damage()
			err := replay.CheckBlobs(ctx, log, r.blobs)
			if marchwarden.CodeOf(err) != marchwarden.CodeCorrupt || !strings.Contains(err.Error(), ref.String()) || !strings.Contains(err.Error(), "step ") {
				t.Errorf("%s: CheckBlobs: %v, want CodeCorrupt, the step and %s", name, err, ref)
			}
			out := play(ctx, replay.Rerun(log, r.blobs), nil, nil, nil, nil)
			if outcomes[ref] && (!strings.Contains(out, ref.String()) || !strings.Contains(out, "| corrupt")) {
				t.Errorf("%s: the rerun does not name %s:\n%s", name, ref, out)
			}
			keeper.content[ref] = whole
		}
	}
	if err := replay.CheckBlobs(ctx, log, r.blobs); err != nil {
		t.Errorf("after the repair: %v", err)
	}
}

// An outcome that is whole but of another shape is a broken record as well.
func TestAnOutcomeOfAnotherShapeIsCorrupt(t *testing.T) {
	for _, stored := range []string{`{}`, `{"ok":7}`, `no JSON`, `[]`, ``} {
		r := newRecord(t)
		ref, err := r.blobs.Put(context.Background(), []byte(stored))
		if err != nil {
			t.Fatal(err)
		}
		id := replay.Key(trace.ActionFetchComplete, []byte(`{"Locator":"a.md"}`))
		log := &trace.Log{Steps: []trace.Step{&trace.FetchComplete{Effect: trace.Effect{ActionID: id, OutputID: ref}}}}
		page, err := replay.Fetcher(replay.Rerun(log, r.blobs), nil).Fetch(context.Background(), "a.md")
		if !errors.Is(err, replay.ErrJournal) || marchwarden.CodeOf(err) != marchwarden.CodeCorrupt {
			t.Errorf("%q is read as %+v, %v", stored, page, err)
		}
	}
}

// watched is a store that calls before every Put.
type watched struct {
	blob.Store
	put func(ref blob.Ref)
	err error
}

func (w *watched) Put(ctx context.Context, content []byte) (blob.Ref, error) {
	if w.err != nil {
		return blob.Ref{}, w.err
	}
	w.put(blob.Of(content))
	return w.Store.Put(ctx, content)
}

// flaky fails once.
type flaky struct{ *watched }

func (f flaky) Put(ctx context.Context, content []byte) (blob.Ref, error) {
	ref, err := f.watched.Put(ctx, content)
	f.err = nil
	return ref, err
}

// The order that makes a crash harmless: effect begun in the trace, effect run,
// outcome in the store, step in the trace, outcome used.
func TestTheOutcomeIsStoredBeforeItIsInTheTraceAndThereBeforeItIsUsed(t *testing.T) {
	r := newRecord(t)
	var order []string
	store := &watched{Store: r.blobs}
	store.put = func(ref blob.Ref) {
		if bytes.Contains(r.raw(), []byte(ref.String())) {
			t.Errorf("%s was in the trace before it was stored", ref)
		}
		order = append(order, "store")
	}
	j := replay.Record(r.w, store, clock(), nil)
	_, err := j.Do(context.Background(), replay.Effect{
		Kind: trace.ActionSearchComplete, Input: "x",
		Begin: &trace.Search{Head: trace.Head{Decision: "begin"}},
		Done: func([]byte, error) trace.Recorded {
			order = append(order, "done")
			return &trace.SearchComplete{Head: trace.Head{Decision: "end"}}
		},
	}, func(context.Context) ([]byte, error) {
		if log := r.log(); len(log.Steps) != 1 || log.Steps[0].Header().Decision != "begin" {
			t.Errorf("the effect ran before its beginning was recorded: %+v", log.Steps)
		}
		order = append(order, "run")
		return []byte(`["x"]`), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); got != "run store done" {
		t.Errorf("the order was %s", got)
	}
	steps := r.log().Steps
	if len(steps) != 2 {
		t.Fatalf("the outcome was handed out before its step was in the trace: %+v", steps)
	}
	if _, err := r.blobs.Get(context.Background(), steps[1].(*trace.SearchComplete).OutputID); err != nil {
		t.Error(err)
	}
}

// A run goes on without a record that cannot be written, and what is there of it
// stays as it is.
func TestAJournalThatCannotWriteGoesOnAndSaysSo(t *testing.T) {
	ctx := context.Background()
	t.Run("before the effect", func(t *testing.T) {
		r := newRecord(t)
		e := &engine{}
		if err := r.w.Close(); err != nil {
			t.Fatal(err)
		}
		j := r.journal()
		if j.Lost() != nil {
			t.Error("it is lost before anything was written")
		}
		hits, err := replay.Engine(j, "fake", e).Search(ctx, search.Query{Text: "x"})
		if err != nil || len(hits) == 0 || e.calls.Load() != 1 {
			t.Errorf("%v, %v after %d calls", hits, err, e.calls.Load())
		}
		if err := j.Note(&trace.Message{}); err != nil {
			t.Errorf("Note: %v", err)
		}
		if marchwarden.CodeOf(j.Lost()) != marchwarden.CodeUnavailable || len(r.log().Steps) != 0 {
			t.Errorf("lost: %v, with %d steps", j.Lost(), len(r.log().Steps))
		}
	})
	t.Run("after the effect", func(t *testing.T) {
		r := newRecord(t)
		j := r.journal()
		looks := 0
		for range 2 { // the effect is not run again
			m, err := replay.Checkpoint(ctx, j, "x", func() time.Duration { r.w.Close(); looks++; return time.Duration(looks) })
			if err != nil || m.Elapsed != 1 || j.Lost() == nil {
				t.Errorf("%v, %v, lost: %v", m, err, j.Lost())
			}
		}
	})
	t.Run("a store that keeps in memory what it cannot store", func(t *testing.T) {
		r := newRecord(t)
		full := &watched{Store: r.blobs, put: func(blob.Ref) {}}
		j := replay.Record(r.w, blob.Rescue(full), clock(), nil)
		engine := replay.Engine(j, "fake", &engine{})
		if _, err := engine.Search(ctx, search.Query{Text: "x"}); err != nil {
			t.Fatal(err)
		}
		whole := len(r.log().Steps)
		full.err = errors.New("disk full")
		if hits, err := engine.Search(ctx, search.Query{Text: "y"}); err != nil || len(hits) == 0 {
			t.Errorf("%v, %v", hits, err)
		}
		if !errors.Is(j.Lost(), full.err) {
			t.Errorf("lost: %v", j.Lost())
		}
		full.err = nil
		if _, err := engine.Search(ctx, search.Query{Text: "z"}); err != nil {
			t.Error(err)
		}
		log := r.log() // ends with the beginning of the search whose outcome could not be stored
		if len(log.Steps) != whole+1 || replay.CheckBlobs(ctx, log, r.blobs) != nil {
			t.Errorf("%d steps after %d; %v", len(log.Steps), whole, replay.CheckBlobs(ctx, log, r.blobs))
		}
	})
	t.Run("a failure that passes", func(t *testing.T) {
		r := newRecord(t)
		once := &watched{Store: r.blobs, put: func(blob.Ref) {}, err: errors.New("bad sector")}
		j := replay.Record(r.w, blob.Rescue(flaky{once}), clock(), nil)
		if _, err := replay.Engine(j, "fake", &engine{}).Search(ctx, search.Query{Text: "x"}); err != nil || j.Lost() != nil {
			t.Errorf("%v, lost: %v", err, j.Lost())
		}
		if err := replay.CheckBlobs(ctx, r.log(), r.blobs); err != nil || len(r.log().Steps) != 2 {
			t.Error(err, len(r.log().Steps))
		}
	})
	t.Run("the store", func(t *testing.T) {
		r := newRecord(t)
		full := errors.New("disk full")
		j := replay.Record(r.w, &watched{Store: r.blobs, err: full}, clock(), nil)
		_, err := replay.Engine(j, "fake", &engine{}).Search(ctx, search.Query{Text: "x"})
		if !errors.Is(err, replay.ErrJournal) || !errors.Is(err, full) {
			t.Errorf("%v, want ErrJournal and the store's error", err)
		}
		if n := len(r.log().Steps); n != 1 {
			t.Errorf("%d steps, want the beginning alone", n)
		}
	})
	t.Run("an outcome that is no JSON", func(t *testing.T) {
		r := newRecord(t)
		_, err := r.journal().Do(ctx, replay.Effect{Kind: "k", Done: func([]byte, error) trace.Recorded { return &trace.Checkpoint{} }},
			func(context.Context) ([]byte, error) { return []byte("text"), nil })
		if !errors.Is(err, replay.ErrJournal) || marchwarden.CodeOf(err) != marchwarden.CodeInternal {
			t.Errorf("%v, want ErrJournal and CodeInternal", err)
		}
	})
}

// An error without a code is a failure in the record too.
func TestAnUnclassifiedErrorIsRecordedAsInternal(t *testing.T) {
	for _, cause := range []error{errors.New("odd"), &marchwarden.Error{Message: "odd"}} {
		r := newRecord(t)
		effect := replay.Effect{Kind: trace.ActionCheckpoint, Done: func([]byte, error) trace.Recorded { return &trace.Checkpoint{} }}
		_, err := r.journal().Do(context.Background(), effect, func(context.Context) ([]byte, error) { return nil, cause })
		if marchwarden.CodeOf(err) != marchwarden.CodeInternal || err.Error() != "odd" {
			t.Errorf("the run: %v (%s)", err, marchwarden.CodeOf(err))
		}
		if s := r.log().Steps[0].(*trace.Checkpoint); s.Error != marchwarden.CodeInternal {
			t.Errorf("recorded with the code %q", s.Error)
		}
		if _, err := r.rerun().Do(context.Background(), effect, nil); marchwarden.CodeOf(err) != marchwarden.CodeInternal || err.Error() != "odd" {
			t.Errorf("the rerun: %v", err)
		}
	}
}

// An effect that panics must not leave others waiting for it.
func TestAPanicFreesThoseWhoWait(t *testing.T) {
	r := newRecord(t)
	j := r.journal()
	effect := replay.Effect{Kind: trace.ActionCheckpoint, Done: func([]byte, error) trace.Recorded { return &trace.Checkpoint{} }}
	running := make(chan struct{})
	waited := make(chan error)
	go func() {
		<-running
		_, err := j.Do(context.Background(), effect, nil)
		waited <- err
	}()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = j.Do(context.Background(), effect, func(context.Context) ([]byte, error) {
			close(running)
			panic("bug")
		})
	}()
	select {
	case err := <-waited:
		if !errors.Is(err, replay.ErrJournal) || marchwarden.CodeOf(err) != marchwarden.CodeInternal {
			t.Errorf("who waited got %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("still waiting")
	}
}
