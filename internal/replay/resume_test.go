package replay_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// cut is a record with the first k lines of this one, and its blobs.
func (r *record) cut(k int) *record {
	r.t.Helper()
	dir := r.t.TempDir()
	lines := bytes.SplitAfter(r.raw(), []byte("\n"))
	if err := os.WriteFile(filepath.Join(dir, r.id.String()+".jsonl"), bytes.Join(lines[:k], nil), 0o600); err != nil {
		r.t.Fatal(err)
	}
	traces, err := trace.OpenDir(dir, func() time.Time { return testTime })
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { traces.Close() })
	return &record{t: r.t, dir: traces, id: r.id, blobs: r.blobs}
}

// resume opens the record to continue.
func (r *record) resume() *replay.Recorder {
	r.t.Helper()
	w, log, err := r.dir.Append(r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { w.Close() })
	j, err := replay.Resume(w, log, r.blobs, clock(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return j
}

// A record that ends after any line is resumed to the same outcomes; what it
// holds is not run again, and what was begun in it is marked.
func TestARecordGoesOnAfterAnyLine(t *testing.T) {
	r := newRecord(t)
	e := &engine{}
	want := play(t.Context(), r.journal(), e, fetcher{r.blobs}, script(), still)
	searches := e.calls.Load()
	for k := range len(r.log().Steps) + 1 {
		c := r.cut(k)
		var done, open int64
		for _, s := range c.log().Steps {
			switch s.(type) {
			case *trace.Search:
				open = 1
			case *trace.SearchComplete:
				done, open = done+1, 0
			}
		}
		again := &engine{}
		j := c.resume()
		if diff := cmp.Diff(want, play(t.Context(), j, again, fetcher{r.blobs}, script(), still)); diff != "" {
			t.Fatalf("cut after %d:\n%s", k, diff)
		}
		if n := again.calls.Load(); n != searches-done {
			t.Errorf("cut after %d: %d searches after %d of %d", k, n, done, searches)
		}
		var retried int64
		for _, s := range c.log().Steps {
			if s, ok := s.(*trace.SearchComplete); ok && s.Retried {
				retried++
			}
		}
		if retried != open {
			t.Errorf("cut after %d: %d are marked as retried, want %d", k, retried, open)
		}
		if diff := cmp.Diff(want, play(t.Context(), c.rerun(), nil, nil, nil, nil)); diff != "" {
			t.Errorf("cut after %d, rerun:\n%s", k, diff)
		}
	}
}

func still() time.Duration { return 5 * time.Millisecond }

// Past an end the clock is seen anew and what was cut short is tried again, once for
// each part; what was done holds for all parts. A rerun sees of each part what it saw.
func TestPartsAreToldApart(t *testing.T) {
	r := newRecord(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	type got struct {
		Moment   replay.Moment
		Hits     int
		Cut      marchwarden.Code
		Searches int64
	}
	see := func(ctx context.Context, j replay.Journal, e *engine, now time.Duration) got {
		t.Helper()
		m, err := replay.Checkpoint(ctx, j, "here", func() time.Duration { return now })
		if err != nil {
			t.Fatal(err)
		}
		hits, err := replay.Engine(j, "fake", e).Search(context.Background(), search.Query{Text: "done"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = replay.Engine(j, "fake", e).Search(ctx, search.Query{Text: "cut"})
		return got{m, len(hits), marchwarden.CodeOf(err), e.calls.Load()}
	}
	first := see(gone, r.journal(), &engine{}, time.Second)
	if want := (got{replay.Moment{Elapsed: time.Second, Interrupted: true}, 2, marchwarden.CodeCanceled, 2}); first != want {
		t.Fatalf("the first part saw %+v", first)
	}
	if err := r.w.Close(); err != nil {
		t.Fatal(err)
	}
	j, e := r.resume(), &engine{}
	replayed := see(t.Context(), j, e, 2*time.Second)
	j.Past(1)
	second := see(t.Context(), j, e, 3*time.Second)
	if want := (got{replay.Moment{Elapsed: 3 * time.Second}, 2, "", 1}); second != want {
		t.Errorf("the second part saw %+v, want %+v", second, want)
	}
	again, none := r.rerun(), &engine{}
	rerun := see(t.Context(), again, none, 0)
	again.Past(1)
	for part, seen := range [][2]got{{first, replayed}, {first, rerun}, {second, see(t.Context(), again, none, 0)}} {
		seen[0].Searches, seen[1].Searches = 0, 0
		if seen[0] != seen[1] {
			t.Errorf("%d: %+v and %+v", part, seen[0], seen[1])
		}
	}
}

// What a run had given up when it ended is not begun again behind its back.
func TestWhatWasGivenUpIsNotBegunAgain(t *testing.T) {
	r := newRecord(t)
	j := r.journal()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hang := llmtest.New("m", map[string][]llmtest.Answer{"p": {{Hang: true}}})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		_, _ = replay.Model(j, "m", hang).Generate(ctx, llm.Call{Prompt: "p"})
	}()
	for len(hang.Calls()) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := j.Note(&trace.Complete{Result: blob.Of(nil)}); err != nil {
		t.Fatal(err)
	}
	if err := r.w.Close(); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-finished
	fresh := llmtest.New("m", map[string][]llmtest.Answer{"p": {{Text: "x"}}})
	_, err := replay.Model(r.resume(), "m", fresh).Generate(t.Context(), llm.Call{Prompt: "p"})
	if !errors.Is(err, replay.ErrJournal) || len(fresh.Calls()) != 0 {
		t.Errorf("%v after %d calls", err, len(fresh.Calls()))
	}
}

// A run that goes on notes what it comes by again once, and the way to an end anew.
func TestNotesAreNotRepeated(t *testing.T) {
	r := newRecord(t)
	run := func(j *replay.Recorder) {
		for _, s := range []trace.Step{
			&trace.Start{TraceID: r.id, Format: trace.Format}, &trace.Message{Head: trace.Head{Decision: "look"}}, &trace.Message{Head: trace.Head{Decision: "look"}},
			&trace.SynthesisStart{Sources: 1}, &trace.Complete{Result: blob.Of(nil)},
		} {
			if err := j.Note(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(r.journal())
	if err := r.w.Close(); err != nil {
		t.Fatal(err)
	}
	run(r.resume())
	var actions []string
	for _, s := range r.log().Steps {
		actions = append(actions, string(s.Header().Action))
	}
	if got, want := strings.Join(actions, " "), "start agent_message agent_message synthesis_start complete synthesis_start complete"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// freely is an engine that costs nothing.
type freely struct{ engine }

func (*freely) Free() bool { return true }

// What costs is tried twice when its run is cut off during it, what costs nothing more
// often. What is given up says so, in a rerun as well.
func TestWhatCostsNothingIsTriedMoreOften(t *testing.T) {
	for _, c := range []struct {
		name string
		make func() (search.Engine, *engine)
		want int64
	}{
		{"paid", func() (search.Engine, *engine) { e := &engine{}; return e, e }, 2},
		{"free", func() (search.Engine, *engine) { e := &freely{}; return e, &e.engine }, 5},
	} {
		r := newRecord(t)
		j := r.journal()
		e, _ := c.make()
		if _, err := replay.Engine(j, "e", e).Search(t.Context(), search.Query{Text: "q"}); err != nil {
			t.Fatal(err)
		}
		at := 0
		for i, s := range r.log().Steps {
			if _, ok := s.(*trace.Search); ok {
				at = i + 1
			}
		}
		for cuts := int64(1); ; cuts++ { // each ends with a search that was begun
			r = r.cut(at)
			e, calls := c.make()
			_, err := replay.Engine(r.resume(), "e", e).Search(t.Context(), search.Query{Text: "q"})
			if err == nil && calls.calls.Load() == 1 && cuts < c.want {
				at++ // what this attempt began; what it completed is cut off
				continue
			}
			if cuts != c.want || !errors.Is(err, replay.ErrGivenUp) || marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
				t.Errorf("%s: after %d cuts: %v", c.name, cuts, err)
			}
			_, again := replay.Engine(r.rerun(), "e", nil).Search(t.Context(), search.Query{Text: "q"})
			if !errors.Is(again, replay.ErrGivenUp) || again.Error() != err.Error() {
				t.Errorf("%s: the rerun says %v", c.name, again)
			}
			break
		}
	}
}
