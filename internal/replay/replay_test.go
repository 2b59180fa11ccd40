package replay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

var testTime = time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)

// record is a trace and a store that a test writes to and reads back.
type record struct {
	t     *testing.T
	dir   *trace.Dir
	id    marchwarden.TraceID
	w     *trace.Writer
	blobs blob.Store
}

func newRecord(t *testing.T) *record {
	t.Helper()
	dir, err := trace.OpenDir(t.TempDir(), func() time.Time { return testTime })
	if err != nil {
		t.Fatal(err)
	}
	id, err := marchwarden.ParseTraceID("0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10")
	if err != nil {
		t.Fatal(err)
	}
	w, err := dir.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(); dir.Close() })
	return &record{t, dir, id, w, blob.NewMem()}
}

// clock is one that moves a millisecond at every look.
func clock() func() time.Duration {
	var n atomic.Int64
	return func() time.Duration { return time.Duration(n.Add(1)) * time.Millisecond }
}

func (r *record) journal() *replay.Recorder { return replay.Record(r.w, r.blobs, clock(), nil) }

func (r *record) log() *trace.Log {
	r.t.Helper()
	log, err := r.dir.Load(r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	return log
}

func (r *record) rerun() *replay.Recorder { return replay.Rerun(r.log(), r.blobs) }

func (r *record) raw() []byte {
	r.t.Helper()
	f, err := r.dir.Raw(r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		r.t.Fatal(err)
	}
	return data
}

// engine answers a search by its text: "fail…" fails, "none" finds nothing.
type engine struct{ calls atomic.Int64 }

func (*engine) Name() string { return "fake" }

func (e *engine) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	e.calls.Add(1)
	switch {
	case ctx.Err() != nil:
		return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "search")
	case strings.HasPrefix(q.Text, "fail"):
		return nil, marchwarden.Wrap(io.ErrUnexpectedEOF, marchwarden.CodeUnavailable, "search <%s>", q.Text)
	case q.Text == "none":
		return nil, nil
	}
	return []search.Hit{{Locator: "a&b.md", Title: "<A> “é”", Score: 1.25}, {Locator: q.Text, Score: 1.0 / 3}}, nil
}

// fetcher stores what it is asked for.
type fetcher struct{ blobs blob.Store }

func (f fetcher) Fetch(ctx context.Context, locator string) (fetch.Page, error) {
	if strings.HasPrefix(locator, "missing") {
		return fetch.Page{}, marchwarden.Errorf(marchwarden.CodeNotFound, "no such file")
	}
	text := "text of " + locator
	ref, err := f.blobs.Put(ctx, []byte(text))
	if err != nil {
		return fetch.Page{}, err
	}
	return fetch.Page{Locator: locator, Source: "file", Title: "T", Origin: "library", Raw: ref, Text: ref, RawBytes: len(text), TextBytes: len(text),
		MediaType: "text/plain", Extractor: "plain/1", Links: []string{"x"}, FetchedAt: testTime}, nil
}

// play does one effect of every kind, some of them failing, and writes down all
// that came back.
func play(ctx context.Context, j replay.Journal, e search.Engine, f fetch.Fetcher, m llm.Model, clock func() time.Duration) string {
	var out strings.Builder
	say := func(v any, err error) { fmt.Fprintf(&out, "%+v | %v | %s\n", v, err, marchwarden.CodeOf(err)) }
	eng, fet, mod := replay.Engine(j, "fake", e), replay.Fetcher(j, f), replay.Model(j, "test/script", m)
	filter, _ := marchwarden.ParseSourceFilter(".gov")
	for _, q := range []search.Query{{Text: "crops", Limit: 3}, {Text: "none"}, {Text: "fail"}, {Text: "crops", Limit: 4}, {Text: "crops", Limit: 3, Filter: filter}} {
		hits, err := eng.Search(ctx, q)
		say(hits, err)
		fmt.Fprintln(&out, hits == nil)
	}
	for _, l := range []string{"a.md", "missing.md", "b <&> é.md"} {
		page, err := fet.Fetch(ctx, l)
		say(page, err)
	}
	for _, p := range []string{"plan", "plan again", "broken"} {
		reply, err := mod.Generate(ctx, llm.Call{Prompt: p, System: "s", Input: "i <1>", MaxTokens: 10, Schema: []byte(`{"type":"object"}`)})
		say(reply, err)
	}
	for _, at := range []string{"first", "second"} {
		moment, err := replay.Checkpoint(ctx, j, at, clock)
		say(moment, err)
	}
	fmt.Fprintln(&out, eng.Name(), mod.ID())
	return out.String()
}

func script() *llmtest.Model {
	return llmtest.New("test/script", map[string][]llmtest.Answer{
		"plan": {{Text: `{"a":"<é>"}`, Usage: llm.Usage{In: 5, Out: 2}}}, "plan again": {{Text: ""}},
		"broken": {{Err: marchwarden.Errorf(marchwarden.CodeDenied, "the key was refused")}},
	})
}

func TestARerunGivesWhatTheRunGave(t *testing.T) {
	r := newRecord(t)
	ctx := context.Background()
	want := play(ctx, r.journal(), &engine{}, fetcher{r.blobs}, script(), clock())
	for _, word := range []string{"a&b.md", "search <fail>: unexpected EOF | unavailable", "no such file | not_found", "the key was refused | denied", "{Elapsed:"} {
		if !strings.Contains(want, word) {
			t.Errorf("%q is not in what the run gave:\n%s", word, want)
		}
	}
	before := r.raw()
	got := play(ctx, r.rerun(), nil, nil, nil, nil)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the rerun differs (-run +rerun):\n%s", diff)
	}
	if !bytes.Equal(before, r.raw()) {
		t.Error("a rerun changed the trace")
	}
	if err := replay.CheckBlobs(ctx, r.log(), r.blobs); err != nil {
		t.Error(err)
	}
}

func TestTheTraceSaysWhatHappened(t *testing.T) {
	r := newRecord(t)
	play(context.Background(), r.journal(), &engine{}, fetcher{r.blobs}, script(), clock())
	var actions []string
	for _, s := range r.log().Steps {
		actions = append(actions, string(s.Header().Action))
		if s.Header().Decision == "" {
			t.Errorf("step %d (%s) has no decision", s.Header().Step, s.Header().Action)
		}
		switch s := s.(type) {
		case *trace.SearchComplete:
			if (s.Error != "") != (s.Query == "fail") || s.Error == "" && s.Query == "crops" && (s.Hits != 2 || s.Locators[0] != "a&b.md") {
				t.Errorf("search: %+v", s)
			}
		case *trace.FetchComplete:
			if missing := strings.HasPrefix(s.URL, "missing"); missing != (s.Error == marchwarden.CodeNotFound) || missing == s.ContentHash.Valid() || missing == (s.ContentLength > 0) {
				t.Errorf("fetch: %+v", s)
			}
		case *trace.ModelComplete:
			if broken := s.Prompt == "broken"; broken != (s.Error == marchwarden.CodeDenied) || broken == s.ReplyHash.Valid() || !s.PromptHash.Valid() {
				t.Errorf("model: %+v", s)
			}
			if s.Prompt == "plan" && (s.TokensIn != 5 || s.TokensOut != 2 || s.ReplyHash != blob.Of([]byte(`{"a":"<é>"}`))) {
				t.Errorf("model: %+v", s)
			}
		}
		if rec, ok := s.(trace.Recorded); ok {
			if e := rec.Record(); !e.ActionID.Valid() || !e.OutputID.Valid() || e.ElapsedMS != 1 && s.Header().Action != trace.ActionCheckpoint {
				t.Errorf("step %d: %+v", s.Header().Step, e)
			}
		}
	}
	want := strings.Repeat("web_search web_search_complete ", 5) + strings.Repeat("fetch_url fetch_url_complete ", 3) +
		strings.Repeat("model_call model_call_complete ", 3) + "checkpoint checkpoint"
	if got := strings.Join(actions, " "); got != want {
		t.Errorf("actions\n%s, want\n%s", got, want)
	}
}

// pageOf is a fetcher of one page.
type pageOf fetch.Page

func (p pageOf) Fetch(context.Context, string) (fetch.Page, error) { return fetch.Page(p), nil }

func TestAFetchWithoutTextHasAContentHash(t *testing.T) {
	r := newRecord(t)
	raw, err := r.blobs.Put(t.Context(), []byte("\x00picture"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replay.Fetcher(r.journal(), pageOf{Locator: "a.png", NonText: true, Raw: raw, RawBytes: 8}).Fetch(t.Context(), "a.png"); err != nil {
		t.Fatal(err)
	}
	steps := r.log().Steps
	done, ok := steps[len(steps)-1].(*trace.FetchComplete)
	if !ok || done.ContentHash != raw || done.ContentLength != 8 {
		t.Errorf("step %+v", steps[len(steps)-1])
	}
}

// TestShieldedCodeSeesNoCancellation: an effect sees that its caller has
// stopped, the code around it does not.
func TestShieldedCodeSeesNoCancellation(t *testing.T) {
	r := newRecord(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	cancel()
	shielded := replay.Shield(ctx)
	if _, ok := shielded.Deadline(); ok || shielded.Err() != nil || shielded.Done() != nil {
		t.Errorf("the shield lets through %v", shielded.Err())
	}
	m, err := replay.Checkpoint(shielded, r.journal(), "here", clock())
	if err != nil || !m.Interrupted {
		t.Errorf("a checkpoint under a shield gave %+v, %v", m, err)
	}
}

func TestEqualEffectsRunOnce(t *testing.T) {
	r := newRecord(t)
	e := &engine{}
	eng := replay.Engine(r.journal(), "fake", e)
	ctx := context.Background()
	first, err := eng.Search(ctx, search.Query{Text: "x", Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	second, err := eng.Search(ctx, search.Query{Text: "x", Limit: 2})
	if diff := cmp.Diff(first, second); err != nil || diff != "" || e.calls.Load() != 1 {
		t.Errorf("after %d calls: %v\n%s", e.calls.Load(), err, diff)
	}
	for range 2 { // a failure is an outcome like any other
		if _, err := eng.Search(ctx, search.Query{Text: "fail"}); !errors.Is(err, marchwarden.CodeUnavailable) || errors.Is(err, replay.ErrJournal) {
			t.Errorf("a failed search: %v", err)
		}
	}
	if e.calls.Load() != 2 || len(r.log().Steps) != 4 {
		t.Errorf("%d calls and %d steps, want 2 and 4", e.calls.Load(), len(r.log().Steps))
	}
}

func TestEqualEffectsRunOnceConcurrently(t *testing.T) {
	r := newRecord(t)
	e := &engine{}
	eng := replay.Engine(r.journal(), "fake", e)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			hits, err := eng.Search(context.Background(), search.Query{Text: fmt.Sprint("q", i%4)})
			if err != nil || len(hits) != 2 || hits[1].Locator != fmt.Sprint("q", i%4) {
				t.Errorf("%v, %v", hits, err)
			}
		})
	}
	wg.Wait()
	if e.calls.Load() != 4 || len(r.log().Steps) != 8 {
		t.Errorf("%d calls and %d steps, want 4 and 8", e.calls.Load(), len(r.log().Steps))
	}
}

func TestACancelledEffectIsRecorded(t *testing.T) {
	r := newRecord(t)
	ctx, cancel := context.WithCancel(context.Background())
	m := replay.Model(r.journal(), "test/script", llmtest.New("test/script", map[string][]llmtest.Answer{"plan": {{Hang: true}}}))
	time.AfterFunc(5*time.Millisecond, cancel)
	_, err := m.Generate(ctx, llm.Call{Prompt: "plan"})
	if !errors.Is(err, marchwarden.CodeCanceled) || errors.Is(err, replay.ErrJournal) {
		t.Fatalf("the run: %v", err)
	}
	if s := r.log().Steps; len(s) != 2 || s[1].(*trace.ModelComplete).Error != marchwarden.CodeCanceled {
		t.Fatalf("recorded as %+v", s)
	}
	// The caller has gone; the outcome is still there to be read.
	_, again := replay.Model(r.rerun(), "test/script", nil).Generate(ctx, llm.Call{Prompt: "plan"})
	if again == nil || again.Error() != err.Error() || !errors.Is(again, marchwarden.CodeCanceled) {
		t.Errorf("the rerun: %v, want %v", again, err)
	}
}

func TestCheckpointsAreReadBack(t *testing.T) {
	r := newRecord(t)
	ctx, cancel := context.WithCancel(context.Background())
	j := r.journal()
	now := 1500 * time.Millisecond
	before, err := replay.Checkpoint(ctx, j, "before", func() time.Duration { return now })
	if err != nil || before.Interrupted || before.Elapsed != now {
		t.Errorf("%+v, %v", before, err)
	}
	cancel()
	after, err := replay.Checkpoint(ctx, j, "after", func() time.Duration { return 2 * now })
	if err != nil || !after.Interrupted {
		t.Errorf("%+v, %v", after, err)
	}
	// The rerun's own caller and clock do not matter.
	for at, want := range map[string]replay.Moment{"before": before, "after": after} {
		got, err := replay.Checkpoint(context.Background(), r.rerun(), at, func() time.Duration { t.Error("a rerun looked at the clock"); return 0 })
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", at, got, err, want)
		}
	}
	if s := r.log().Steps[1].(*trace.Checkpoint); !s.Interrupted || !strings.Contains(s.Decision, "stopped") {
		t.Errorf("recorded as %+v", s)
	}
}

func TestWhatIsNotRecordedIsRefused(t *testing.T) {
	r := newRecord(t)
	play(context.Background(), r.journal(), &engine{}, fetcher{r.blobs}, script(), clock())
	j := r.rerun()
	ctx := context.Background()
	e := &engine{}
	for name, call := range map[string]func() error{
		"another query": func() error {
			_, err := replay.Engine(j, "fake", e).Search(ctx, search.Query{Text: "crop"})
			return err
		},
		"another limit": func() error {
			_, err := replay.Engine(j, "fake", e).Search(ctx, search.Query{Text: "crops", Limit: 5})
			return err
		},
		"another engine": func() error {
			_, err := replay.Engine(j, "other", e).Search(ctx, search.Query{Text: "crops", Limit: 3})
			return err
		},
		"another page": func() error { _, err := replay.Fetcher(j, fetcher{r.blobs}).Fetch(ctx, "c.md"); return err },
		"another model": func() error {
			_, err := replay.Model(j, "other", script()).Generate(ctx, llm.Call{Prompt: "plan", System: "s", Input: "i <1>"})
			return err
		},
		"a long input": func() error {
			_, err := replay.Fetcher(j, nil).Fetch(ctx, strings.Repeat("é", 500))
			return err
		},
		"another checkpoint": func() error { _, err := replay.Checkpoint(ctx, j, "third", nil); return err },
	} {
		if err := call(); !errors.Is(err, replay.ErrJournal) || marchwarden.CodeOf(err) != marchwarden.CodeNotRecorded || len(err.Error()) > 400 {
			t.Errorf("%s: %v, want ErrJournal with CodeNotRecorded", name, err)
		}
	}
	if e.calls.Load() != 0 {
		t.Error("a rerun called the engine")
	}
	if err := j.Note(&trace.Message{}); err != nil {
		t.Errorf("Note in a rerun: %v", err)
	}
	j.Live(marchwarden.Event{}) // there is no watcher
}

func TestARecordThatIsPartlyLiveNeedsItsParts(t *testing.T) {
	r := newRecord(t)
	j := r.journal()
	ctx := context.Background()
	_, err1 := replay.Engine(j, "fake", nil).Search(ctx, search.Query{Text: "x"})
	_, err2 := replay.Fetcher(j, nil).Fetch(ctx, "x")
	_, err3 := replay.Model(j, "m", nil).Generate(ctx, llm.Call{})
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, marchwarden.CodeNotRecorded) {
			t.Errorf("without the real one: %v", err)
		}
	}
}

func TestKeysAreFramed(t *testing.T) {
	seen := map[trace.ActionID]string{}
	for _, c := range [][2]string{{"ab", "c"}, {"a", "bc"}, {"abc", ""}, {"", "abc"}, {"ab", "C"}, {"", ""}} {
		id := replay.Key(trace.Action(c[0]), []byte(c[1]))
		if other, ok := seen[id]; ok || !id.Valid() {
			t.Errorf("%q has the key %v of %s", c, id, other)
		}
		seen[id] = fmt.Sprintf("%q", c)
	}
	// Recorded keys must stay what they are.
	const want = "sha256:6ff020e237bbfcb7a98f18c4af91f53fb3c714e12f17ab360d66101bd5cc28d7"
	if got := replay.Key(trace.ActionFetchComplete, []byte(`{"Locator":"a.md"}`)); got.String() != want {
		t.Errorf("the key of a fetch is %s, was %s: old traces cannot be replayed", got, want)
	}
}

func TestDoDescribesItsInput(t *testing.T) {
	r := newRecord(t)
	_, err := r.journal().Do(context.Background(), replay.Effect{Kind: trace.ActionFetchComplete, Input: make(chan int)}, nil)
	if !errors.Is(err, replay.ErrJournal) || marchwarden.CodeOf(err) != marchwarden.CodeInternal {
		t.Errorf("an input that cannot be described: %v", err)
	}
}

func TestLiveIsOneAtATimeAndMayUseTheJournal(t *testing.T) {
	r := newRecord(t)
	var j *replay.Recorder
	busy, events := false, 0
	j = replay.Record(r.w, r.blobs, clock(), func(ev marchwarden.Event) {
		if busy {
			t.Error("two events at once")
		}
		busy = true
		events++
		if _, err := replay.Checkpoint(context.Background(), j, "from the sink", func() time.Duration { return 0 }); err != nil {
			t.Error(err)
		}
		busy = false
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { j.Live(marchwarden.Event{Stage: marchwarden.StagePlan}) })
	}
	wg.Wait()
	if events != 8 {
		t.Errorf("%d events arrived, want 8", events)
	}
}

func TestTheStartStepComesBack(t *testing.T) {
	r := newRecord(t)
	want := &trace.Start{Head: trace.Head{Decision: "d"}, Format: trace.Format, TraceID: r.id, Request: marchwarden.Request{Question: "q"}, StartedAt: testTime}
	if err := r.journal().Note(want); err != nil {
		t.Fatal(err)
	}
	got, err := r.log().Start()
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(marchwarden.TraceID{})); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
