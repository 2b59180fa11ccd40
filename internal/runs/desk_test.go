package runs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir))
	}
	datatest.InMemory()
	goleak.VerifyTestMain(m)
}

// research is a researcher that is one function.
type research func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error)

func (f research) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	return f(ctx, req, sink)
}

var (
	alice = access.Principal{ID: "token:alice", Scopes: []string{access.ScopeResearch, access.ScopeRead}}
	bob   = access.Principal{ID: "token:bob", Scopes: []string{access.ScopeResearch}}
)

func as(p access.Principal) context.Context { return access.With(context.Background(), p) }

var ids atomic.Int64

// newID makes ids in an order, so that tests can say which run was begun first.
func newID() marchwarden.TraceID { return idOf(int(ids.Add(1))) }

func idOf(n int) marchwarden.TraceID {
	id, err := marchwarden.ParseTraceID(fmt.Sprintf("0198c0de-7a3b-7c11-9d55-%012x", n))
	if err != nil {
		panic(err)
	}
	return id
}

// open opens a desk that is closed when the test ends.
func open(t testing.TB, cfg runs.Config) *runs.Desk {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = newID
	}
	if cfg.Name == "" {
		cfg.Name = "web"
	}
	d, err := runs.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	return d
}

// What a run is begun as.
const (
	asCall = false
	asTask = true // it is kept
)

func begin(t testing.TB, d *runs.Desk, p access.Principal, ask marchwarden.Request, kind bool) *runs.Run {
	t.Helper()
	v, err := d.Begin(as(p), runs.Asked{Request: ask, Keep: kind})
	if err != nil {
		t.Fatalf("Begin: %v", err)
	}
	return v.Run
}

func find(t testing.TB, d *runs.Desk, p access.Principal, id marchwarden.TraceID) *runs.Run {
	t.Helper()
	r, err := d.Find(as(p), id)
	if err != nil {
		t.Fatalf("Find: %v", err)
	}
	return r
}

var ask = marchwarden.Request{Question: "why is the sky blue?"}

func resume(id marchwarden.TraceID) marchwarden.Request {
	return marchwarden.Request{Resume: id.String()}
}

// answer is a result under the id that was chosen.
func answer(ctx context.Context, req marchwarden.Request) *marchwarden.Result {
	id, ok := marchwarden.ChosenTraceID(ctx)
	if !ok {
		id, _ = marchwarden.ParseTraceID(req.Resume)
	}
	return &marchwarden.Result{Answer: "because of " + req.Question, TraceID: id}
}

// quick answers at once; patient waits until it is stopped and then says what it has.
func quick(ctx context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
	return answer(ctx, req), nil
}

func patient(ctx context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
	<-ctx.Done()
	return answer(ctx, req), nil
}

// gate is a researcher that waits for its release.
func gate() (research, func()) {
	open := make(chan struct{})
	return func(ctx context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
		<-open
		return answer(ctx, req), nil
	}, sync.OnceFunc(func() { close(open) })
}

func want(t testing.TB, err error, code marchwarden.Code, text string) {
	t.Helper()
	if !errors.Is(err, code) || !strings.Contains(fmt.Sprint(err), text) {
		t.Errorf("the error is %v (%s), want %s with %q", err, marchwarden.CodeOf(err), code, text)
	}
}

func status(t testing.TB, r *runs.Run, want runs.Status) {
	t.Helper()
	if got := r.State().Status; got != want {
		t.Errorf("the status is %s, want %s (%+v)", got, want, r.State())
	}
}

func files(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestBegin(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "runs")
	type key struct{}
	var got context.Context
	d := open(t, runs.Config{Dir: dir, Researcher: research(func(ctx context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
		got = ctx
		if _, err := os.Stat(filepath.Join(dir, answer(ctx, req).TraceID.String()+".json")); err != nil {
			t.Errorf("research began before there was a record: %v", err)
		}
		return answer(ctx, req), nil
	})})
	ctx, cancel := context.WithCancel(context.WithValue(as(alice), key{}, "span"))
	r, err := d.Begin(ctx, runs.Asked{Request: ask})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-r.Done()
	res, err := r.Outcome()
	if err != nil || res.TraceID != r.ID() {
		t.Fatalf("Outcome = %v, %v", res, err)
	}
	if got.Value(key{}) != "span" || access.From(got).ID != alice.ID || !access.From(got).May(access.ScopeRead) {
		t.Errorf("the context of the research has %v, %v", got.Value(key{}), access.From(got))
	}
	status(t, r.Run, runs.Completed)
	info, err := os.Stat(filepath.Join(dir, r.ID().String()+".json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record: %v, %v", info, err)
	}
	if left := files(t, dir); len(left) != 1 {
		t.Errorf("in the folder: %v", left)
	}
	if d.Running() != 0 {
		t.Errorf("%d running", d.Running())
	}
}

// The draft of the run's own model is there until the run has ended, and not after.
func TestDraft(t *testing.T) {
	wrote, read, checked, over := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	d := open(t, runs.Config{Researcher: research(func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
		sink(marchwarden.Event{Stage: marchwarden.StageSynthesize, Message: "1 sentence drafted", Draft: "It scatters."})
		sink(marchwarden.Event{Stage: marchwarden.StageSynthesize, Draft: "Another's.", Rihla: 1})
		sink(marchwarden.Event{Stage: marchwarden.StageSynthesize, Message: "asking"})
		close(wrote)
		<-read
		sink(marchwarden.Event{Stage: marchwarden.StageCheck, Message: "checking"})
		close(checked)
		<-over
		return answer(ctx, req), nil
	})})
	r := begin(t, d, alice, ask, asCall)
	<-wrote
	if got := r.Draft(); got != "It scatters." {
		t.Errorf("the draft is %q", got)
	}
	close(read)
	<-checked
	if got := r.Draft(); got != "It scatters." {
		t.Errorf("while it is checked the draft is %q", got)
	}
	close(over)
	<-r.Done()
	if got := r.Draft(); got != "" {
		t.Errorf("after the end the draft is %q", got)
	}
}

func TestBeginRefuses(t *testing.T) {
	d := open(t, runs.Config{Researcher: research(patient), MaxRunning: 1})
	_, err := d.Begin(context.Background(), runs.Asked{Request: ask})
	want(t, err, marchwarden.CodeDenied, "the caller is unknown")
	_, err = d.Begin(as(alice), runs.Asked{Request: marchwarden.Request{}})
	want(t, err, marchwarden.CodeInvalid, "question")
	r := begin(t, d, alice, ask, asCall)
	if _, err := r.Outcome(); !errors.Is(err, marchwarden.CodeUnavailable) {
		t.Errorf("Outcome before the end: %v", err)
	}
	r.Cancel()
	<-r.Done()
	begin(t, d, bob, ask, asCall).Cancel()
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
	_, err = d.Begin(as(alice), runs.Asked{Request: ask})
	want(t, err, marchwarden.CodeUnavailable, "the server is shutting down")
}

// A Call of the local user has no record; all else has.
func TestWhatIsRecorded(t *testing.T) {
	for _, c := range []struct {
		who  access.Principal
		kind bool
		want int
	}{
		{access.Local(), asCall, 0}, {access.Local(), asTask, 1}, {alice, asCall, 1}, {access.Anonymous(), asCall, 1}, {bob, asTask, 1},
	} {
		dir := t.TempDir()
		d := open(t, runs.Config{Dir: dir, Researcher: research(quick)})
		r := begin(t, d, c.who, ask, c.kind)
		<-r.Done()
		if got := files(t, dir); len(got) != c.want {
			t.Errorf("%s, %t: the folder has %v", c.who.ID, c.kind, got)
		}
		if r.Kept() != (c.kind == asTask) {
			t.Errorf("%t: kept %t", c.kind, r.Kept())
		}
		if find(t, d, c.who, r.ID()) != r {
			t.Error("Find gives another run than Begin")
		}
	}
}

// Without its record a task fails, and a call goes on as long as the process.
func TestNoRecord(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("as root: the folder is taken away instead of being locked")
	}
	dir := filepath.Join(t.TempDir(), "runs")
	logged := &bytes.Buffer{}
	g, release := gate()
	d := open(t, runs.Config{Dir: dir, Researcher: g, Log: slog.New(slog.NewTextHandler(logged, nil))})
	defer release()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Begin(as(alice), runs.Asked{Request: ask, Keep: true}); !errors.Is(err, marchwarden.CodeUnavailable) {
		t.Errorf("a task: %v", err)
	}
	if d.Running() != 0 {
		t.Error("the task that failed has a slot")
	}
	r := begin(t, d, alice, ask, asCall)
	if !strings.Contains(logged.String(), "cannot be recorded") {
		t.Errorf("logged: %s", logged)
	}
	if err := r.Keep(); !errors.Is(err, marchwarden.CodeUnavailable) || r.Kept() {
		t.Errorf("Keep: %v, kept %t", err, r.Kept())
	}
	if !d.Owns(as(alice), r.ID()) || d.Owns(as(bob), r.ID()) || find(t, d, alice, r.ID()) != r {
		t.Error("a run without a record is not seen by its owner alone")
	}
	release()
	<-r.Done()
	if res, err := r.Outcome(); err != nil || res == nil {
		t.Errorf("Outcome: %v, %v", res, err)
	}
}

// Only an id that the local user's program has chosen is kept.
func TestChosenID(t *testing.T) {
	d := open(t, runs.Config{Researcher: research(quick)})
	chosen := idOf(1 << 40)
	ctx := marchwarden.WithTraceID(as(access.Local()), chosen)
	for i, want := range []bool{true, false} { // the second time it is taken
		r, err := d.Begin(ctx, runs.Asked{Request: ask})
		if err != nil || (r.ID() == chosen) != want {
			t.Errorf("time %d: %v, %v", i+1, r.ID(), err)
		}
		<-r.Done()
	}
	if r, err := d.Begin(marchwarden.WithTraceID(as(alice), idOf(1<<41)), runs.Asked{Request: ask}); err != nil || r.ID() == idOf(1<<41) {
		t.Errorf("somebody else's: %v, %v", r.ID(), err)
	}
}

func TestFailures(t *testing.T) {
	cause := errors.New("connection refused")
	for _, c := range []struct {
		name string
		do   research
		want *marchwarden.Error
	}{
		{"a plain error", func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
			return nil, cause
		},
			&marchwarden.Error{Code: marchwarden.CodeInternal, Message: "connection refused"}},
		{"a wrapped one", func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
			return nil, fmt.Errorf("ask: %w", &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "model", Hint: "wait", Err: cause})
		}, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "ask: model: connection refused", Hint: "wait"}},
		{"a field", func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
			return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "depth", Message: "must be less", Hint: "try"}
		}, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "depth", Message: "must be less", Hint: "try"}},
		{"a panic", func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
			panic("secret")
		},
			&marchwarden.Error{Code: marchwarden.CodeInternal, Message: "the researcher panicked"}},
		{"nothing", func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
			return nil, nil
		},
			&marchwarden.Error{Code: marchwarden.CodeInternal, Message: "the researcher returned neither a result nor an error"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			logged := &bytes.Buffer{}
			cfg := runs.Config{Dir: t.TempDir(), Researcher: c.do, Log: slog.New(slog.NewTextHandler(logged, nil))}
			d := open(t, cfg)
			r := begin(t, d, alice, ask, asTask)
			<-r.Done()
			if c.name == "a panic" && (!strings.Contains(logged.String(), "secret") || !strings.Contains(logged.String(), "desk_test.go")) {
				t.Errorf("logged: %s", logged)
			}
			if err := d.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			for i, r := range []*runs.Run{r, find(t, open(t, cfg), alice, r.ID())} { // here and after a restart
				status(t, r, runs.Failed)
				res, err := r.Outcome()
				if diff := cmp.Diff(error(c.want), err); diff != "" || res != nil {
					t.Errorf("%d: %v, (-want +got)\n%s", i, res, diff)
				}
				if s := r.State(); s.Message != c.want.Error() || s.Updated.Before(s.Created) {
					t.Errorf("%d: %+v", i, s)
				}
			}
		})
	}
}

// Ended runs leave memory after some minutes, or when there are many; records stay.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stored := 0
		d := open(t, runs.Config{Dir: t.TempDir(), Researcher: research(quick), Recorded: func(ctx context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
			if access.From(ctx).ID != alice.ID {
				return nil, errors.New("asked by nobody")
			}
			stored++
			return &marchwarden.Result{TraceID: id, Answer: "from the trace"}, nil
		}})
		r := begin(t, d, alice, ask, asCall)
		<-r.Done()
		time.Sleep(4 * time.Minute)
		if find(t, d, alice, r.ID()) != r {
			t.Error("it is forgotten after four minutes")
		}
		time.Sleep(2 * time.Minute)
		again := find(t, d, alice, r.ID())
		if again == r {
			t.Error("it is in memory after six minutes")
		}
		if res, err := again.Outcome(); err != nil || res.Answer != "from the trace" || stored != 1 {
			t.Errorf("Outcome: %v, %v", res, err)
		}
		before := stateOf(r)
		before.Event = nil // is of a run that goes on
		if diff := cmp.Diff(before, stateOf(again)); diff != "" {
			t.Errorf("the state (-before +after)\n%s", diff)
		}
		<-again.Done()
		first := begin(t, d, alice, ask, asCall)
		<-first.Done()
		for range 200 {
			<-begin(t, d, bob, ask, asCall).Done()
		}
		if find(t, d, alice, first.ID()) == first {
			t.Error("200 ended runs are in memory")
		}
	})
}

// stateOf is a state without what JSON does not tell of a time.
func stateOf(r *runs.Run) runs.State {
	s := r.State()
	s.Created, s.Updated = s.Created.Round(0).UTC(), s.Updated.Round(0).UTC()
	return s
}

func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		cfg := runs.Config{Dir: dir, Researcher: research(quick), Retention: 3 * time.Hour}
		d := open(t, cfg)
		old := begin(t, d, alice, ask, asTask)
		<-old.Done()
		other := begin(t, open(t, runs.Config{Dir: dir, Researcher: research(quick), Name: "arxiv"}), alice, ask, asTask)
		<-other.Done()
		time.Sleep(2 * time.Hour)
		young := begin(t, d, alice, ask, asTask)
		<-young.Done()
		time.Sleep(2 * time.Hour)
		<-begin(t, d, access.Local(), ask, asCall).Done() // prunes
		if got, want := files(t, dir), []string{other.ID().String() + ".json", young.ID().String() + ".json"}; !cmp.Equal(got, want) {
			t.Errorf("the folder has %v, want %v", got, want)
		}
		if d.Owns(as(alice), old.ID()) || !d.Owns(as(alice), young.ID()) {
			t.Error("what was removed is owned, or what was not is not")
		}
		time.Sleep(2 * time.Hour)
		open(t, cfg)
		if got, want := files(t, dir), []string{other.ID().String() + ".json"}; !cmp.Equal(got, want) {
			t.Errorf("after Open the folder has %v, want %v", got, want)
		}
	})
}
