package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	evaldesk "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/desk"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	question  = "What do farmers of Deseret Valley grow?"
	questions = "What is peach pie made of, and who is the mayor of Deseret Valley?"
)

var documents = eval.Docs{
	"valley.md": "# Deseret Valley\n\nFarmers of Deseret Valley grow alfalfa and barley.\n\nThe Sevier River gives Deseret Valley its water.\n",
	"pie.md":    "# Pie\n\nPeach pie is made of peaches and flour.\n",
}

// logged is a log that several may write.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// researchFunc does what a function does.
type researchFunc func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error)

func (f researchFunc) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	return f(ctx, req, sink)
}

// testApp is what a server is given.
type testApp struct {
	*actor
	*probe
}

// actor does what it is told; without that it asks the desk.
type actor struct {
	w       *world
	members []Member
	asked   []Question
	resumed []int
	removed []marchwarden.TraceID
	refuse  error // every act
}

func (o *actor) Members() []Member { return o.members }

func (o *actor) Examples() []string { return []string{"What <grows>?"} }

func (o *actor) Ask(ctx context.Context, q Question) (marchwarden.TraceID, error) {
	o.asked = append(o.asked, q)
	if o.refuse != nil {
		return marchwarden.TraceID{}, o.refuse
	}
	v, err := o.w.desk.Begin(ctx, runs.Asked{Request: q.Request, Keep: true})
	if err != nil {
		return marchwarden.TraceID{}, err
	}
	v.End()
	return v.ID(), nil
}

func (o *actor) Resume(_ context.Context, _ marchwarden.TraceID, tokens int) error {
	o.resumed = append(o.resumed, tokens)
	return o.refuse
}

func (o *actor) Remove(_ context.Context, id marchwarden.TraceID) error {
	if o.refuse != nil {
		return o.refuse
	}
	o.removed = append(o.removed, id)
	return o.w.traces.Remove(id)
}

// probe is tests of runs that go as they are told.
type probe struct {
	mu     sync.Mutex
	same   bool
	err    error
	drift  func(ctx context.Context, told func()) error
	last   *drift.Report
	checks int
	export func(w io.Writer) error
}

func (p *probe) Rerun(context.Context, marchwarden.TraceID) (bool, string, error) {
	return p.same, "the answers differ", p.err
}

func (p *probe) Drift(ctx context.Context, id marchwarden.TraceID, told func()) (drift.Report, error) {
	p.mu.Lock()
	p.checks++
	work := p.drift
	p.mu.Unlock()
	if work != nil {
		if err := work(ctx, told); err != nil {
			return drift.Report{}, err
		}
	}
	rep := drift.Report{TraceID: id, CheckedAt: time.Date(2026, 11, 1, 9, 30, 0, 0, time.UTC),
		Sources:  []drift.Source{{Locator: "valley:valley.md", Title: "Deseret Valley", State: drift.Unreachable, Why: "gone", Detail: "404", Citations: []int{1, 99}}},
		Passages: []drift.Passage{{Citation: 1, State: "altered", Excerpt: "alfalfa", Now: "clover"}},
		Claims:   []drift.Claim{{Text: "They grow alfalfa.", Citations: []int{1}, State: "lost"}}}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = &rep
	return rep, nil
}

func (p *probe) Drifted(marchwarden.TraceID) (drift.Report, string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		return drift.Report{}, "", false
	}
	return *p.last, "1 of 1 sources is gone", true
}

func (p *probe) Formats() []Format {
	return []Format{{Name: "md", About: "a report in Markdown", Suffix: ".md", Type: "text/markdown; charset=utf-8"}, {Name: "html", About: "a report as one page", Suffix: ".html", Type: "text/html; charset=utf-8"}}
}

func (p *probe) Export(_ context.Context, _ marchwarden.TraceID, _ string, w io.Writer) error {
	if p.export == nil {
		_, err := io.WriteString(w, "# Report")
		return err
	}
	return p.export(w)
}

// world is a server with all that it works with.
type world struct {
	t       *testing.T
	home    string
	traces  *trace.Dir
	blobs   blob.Store
	desk    *runs.Desk
	actor   *actor
	tests   *probe
	log     *logged
	server  *Server
	http    *httptest.Server
	asks    researchFunc // who is behind the desk
	library [2]eval.Library
}

// newWorld serves until the test ends; change, if there is one, has the last word on how.
func newWorld(t *testing.T, change func(*Config)) *world {
	t.Helper()
	w := &world{t: t, home: t.TempDir(), blobs: blob.NewMem(), tests: &probe{same: true}, log: &logged{}}
	w.actor = &actor{w: w, members: []Member{{Name: "files", Scope: "your files", On: true}, {Name: "web", Scope: "the web", OpenWorld: true}, {Name: "arxiv", Scope: "papers", Down: "no network"}}}
	w.asks = func(ctx context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
		return w.lib(false).Ask(ctx, req)
	}
	var err error
	if w.traces, err = trace.OpenDir(filepath.Join(w.home, "traces"), time.Now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.traces.Close() })
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	asks := researchFunc(func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
		return w.asks(ctx, req, sink)
	})
	if w.desk, err = runs.Open(runs.Config{Researcher: asks, Dir: filepath.Join(w.home, "runs"), Now: time.Now, Name: "ui", Grace: 100 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.desk.Close(context.Background()) })
	store := run.Store{Traces: w.traces, Blobs: w.blobs}
	cfg := Config{Gate: httpdoor.SignInConfig{Now: time.Now, Log: log}, Runs: w.desk, Store: store,
		History: run.OpenHistory(store), App: testApp{w.actor, w.tests}, Now: time.Now, Log: log, Mind: "extractive"}
	if change != nil {
		change(&cfg)
	}
	if w.server, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	w.http = httptest.NewServer(w.server.Handler())
	t.Cleanup(func() {
		w.server.Close()
		w.http.Close()
	})
	return w
}

// newTeam is a world of several people: each name has the scopes that follow it.
func newTeam(t *testing.T, change func(*Config), people map[string][]string) (*world, map[string]*browser) {
	t.Helper()
	secrets := map[string]string{}
	w := newWorld(t, func(cfg *Config) {
		tokens, err := access.OpenTokens(filepath.Join(t.TempDir(), "tokens.json"), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		for name, scopes := range people {
			if secrets[name], err = tokens.Add(rand.Reader, access.Token{Name: name, Scopes: scopes}); err != nil {
				t.Fatal(err)
			}
		}
		cfg.Gate.Auth = tokens
		if change != nil {
			change(cfg)
		}
	})
	browsers := map[string]*browser{}
	for name, secret := range secrets {
		b := w.browser()
		_, text := b.get("/in")
		resp, text := b.send("POST", "/in", url.Values{"csrf": {formToken(text)}, "token": {secret}})
		if resp.StatusCode != 303 {
			t.Fatalf("%s signs in: %d %s", name, resp.StatusCode, text)
		}
		browsers[name] = b
	}
	return w, browsers
}

// lib is the embedded library with its researcher, or with an investigator before it.
func (w *world) lib(pi bool) eval.Library {
	w.t.Helper()
	at := 0
	if pi {
		at = 1
	}
	if w.library[at] != nil {
		return w.library[at]
	}
	x := extract.New(extract.Config{})
	w.t.Cleanup(func() { _ = x.Close() })
	d, err := evaldesk.New(evaldesk.Config{Extractor: x, Pi: pi, Records: &evaldesk.Records{Traces: w.traces, Blobs: w.blobs, Version: "test", Now: time.Now, NewID: serve.NewTraceID}})
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := d.Open(context.Background(), "valley", documents.FS())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = l.Close() })
	w.library[at] = l
	return l
}

// begin begins a run in the name of who is in ctx, as the program does.
func (w *world) begin(ctx context.Context, req marchwarden.Request) marchwarden.TraceID {
	w.t.Helper()
	v, err := w.desk.Begin(ctx, runs.Asked{Request: req, Keep: true})
	if err != nil {
		w.t.Error(err)
		return marchwarden.TraceID{}
	}
	v.End()
	return v.ID()
}

// run is a run that has ended, asked for by a user; "" is the local one.
func (w *world) run(who, text string) marchwarden.TraceID {
	w.t.Helper()
	p := access.Local()
	if who != "" {
		p = access.Principal{ID: "token:" + who, Scopes: access.Scopes()}
	}
	ctx := access.With(w.t.Context(), p)
	id := w.begin(ctx, marchwarden.Request{Question: text})
	w.ended(id)
	return id
}

// ended waits for a run of the desk.
func (w *world) ended(id marchwarden.TraceID) {
	w.t.Helper()
	run, err := w.desk.Find(asServer(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	select {
	case <-run.Done():
	case <-time.After(30 * time.Second):
		w.t.Fatal("the run does not end")
	}
}

// investigation is a real run of an investigator with rihlas.
func (w *world) investigation() *marchwarden.Result {
	w.t.Helper()
	res, err := w.lib(true).Ask(w.t.Context(), marchwarden.Request{Question: questions})
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

func asServer() context.Context { return access.With(context.Background(), access.Local()) }

func idOf(n int) marchwarden.TraceID {
	id, err := marchwarden.ParseTraceID(fmt.Sprintf("00000000-0000-7000-8000-%012d", n))
	if err != nil {
		panic(err)
	}
	return id
}

// writes begins a trace by hand, which goes on until the writer is closed.
func (w *world) writes(id marchwarden.TraceID, text string) *trace.Writer {
	w.t.Helper()
	out, err := w.traces.Create(id)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = out.Close() })
	w.put(out, &trace.Start{Format: trace.Format, TraceID: id, Researcher: "files", Mind: "extractive/1", Version: "test", StartedAt: time.Now(),
		Request: marchwarden.Request{Question: text}, Limits: marchwarden.Limits{TokenBudget: 20000}})
	return out
}

func (w *world) put(out *trace.Writer, steps ...trace.Step) {
	w.t.Helper()
	for _, s := range steps {
		if err := out.Append(s); err != nil {
			w.t.Fatal(err)
		}
	}
}

// ends gives a trace its result.
func (w *world) ends(out *trace.Writer, res *marchwarden.Result) {
	w.t.Helper()
	encoded, err := marchwarden.EncodeResult(res)
	if err != nil {
		w.t.Fatal(err)
	}
	ref, err := w.blobs.Put(context.Background(), encoded)
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(out, &trace.Complete{Result: ref, Citations: len(res.Citations), Confidence: res.Confidence, TokensUsed: res.CostMetadata.TokensUsed})
}

// written is a run with a result that was made up, and the texts that it cites.
func (w *world) written(n int, res marchwarden.Result) marchwarden.TraceID {
	w.t.Helper()
	id := idOf(n)
	res.TraceID = id
	res.CostMetadata.ModelID = "extractive/1"
	out := w.writes(id, fmt.Sprintf("Question %d?", n))
	w.ends(out, &res)
	_ = out.Close()
	return id
}

// cite stores a text and gives a citation of a part of it.
func (w *world) cite(text string, start, end int) marchwarden.Citation {
	w.t.Helper()
	ref, err := w.blobs.Put(context.Background(), []byte(text))
	if err != nil {
		w.t.Fatal(err)
	}
	return marchwarden.Citation{Source: "file", Locator: "valley:long.md", Title: "A long text", ContentHash: ref.String(), Span: &marchwarden.Span{Start: start, End: end}, RawExcerpt: text[start:end]}
}
