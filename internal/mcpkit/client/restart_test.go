package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

// slow gives a text in pieces.
type slow struct {
	rest  string
	piece int
}

func (s *slow) Read(p []byte) (int, error) {
	if s.rest == "" {
		return 0, io.EOF
	}
	n := copy(p, s.rest[:min(len(s.rest), s.piece)])
	s.rest = s.rest[n:]
	return n, nil
}

// bureau is a server on the SDK that knows tasks and keeps them while it is down.
type bureau struct {
	mu   sync.Mutex // guards what follows
	jobs map[string]*job
}

type job struct {
	words  string
	cancel context.CancelFunc
	ended  chan struct{}
	res    mcp.Result
	err    error
}

type jobParams struct {
	mcp.ParamsBase
	TaskID string `json:"taskId"`
}

type jobState struct {
	mcp.ResultBase
	ResultType string     `json:"resultType"`
	TaskID     string     `json:"taskId"`
	Status     string     `json:"status"`
	Message    string     `json:"statusMessage,omitempty"`
	Interval   int        `json:"pollIntervalMs"`
	Result     mcp.Result `json:"result,omitempty"`
}

func (b *bureau) find(id string) (*job, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := b.jobs[id]; j != nil {
		return j, nil
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no such task"}
}

// asTasks makes a task of every call.
func (b *bureau) asTasks(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != "tools/call" {
			return next(ctx, method, req)
		}
		inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
		j := &job{words: "at it", cancel: cancel, ended: make(chan struct{})}
		b.mu.Lock()
		id := "job-" + string(rune('a'+len(b.jobs)))
		b.jobs[id] = j
		b.mu.Unlock()
		go func() {
			defer close(j.ended)
			j.res, j.err = next(inner, method, req)
		}()
		return &jobState{ResultType: "task", TaskID: id, Status: "working", Interval: 100}, nil
	}
}

func (b *bureau) get(_ context.Context, _ *mcp.ServerSession, p *jobParams) (*jobState, error) {
	j, err := b.find(p.TaskID)
	if err != nil {
		return nil, err
	}
	state := &jobState{ResultType: "complete", TaskID: p.TaskID, Status: "working", Interval: 100, Message: j.words}
	select {
	case <-j.ended:
		state.Status, state.Result = "completed", j.res
		if j.err != nil {
			return nil, j.err
		}
	default:
	}
	return state, nil
}

func (b *bureau) drop(_ context.Context, _ *mcp.ServerSession, p *jobParams) (*jobState, error) {
	j, err := b.find(p.TaskID)
	if err == nil {
		j.cancel()
	}
	return &jobState{ResultType: "complete"}, err
}

// handler is a new server over the same tasks.
func (b *bureau) handler(t *testing.T) http.Handler {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "bureau", Version: "1"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{
		Tools: &mcp.ToolCapabilities{}, Extensions: map[string]any{mcpkit.TasksExtension: map[string]any{}}}})
	mcp.AddTool(s, &mcp.Tool{Name: "research"}, func(ctx context.Context, _ *mcp.CallToolRequest, in struct {
		Question string `json:"question"`
		Depth    string `json:"depth,omitempty"`
	}) (*mcp.CallToolResult, any, error) {
		res, err := farResearcher(ctx, ask(in.Question), nil)
		return nil, res, err
	})
	if err := errors.Join(mcp.AddReceivingCustomMethod(s, "tasks/get", b.get), mcp.AddReceivingCustomMethod(s, "tasks/cancel", b.drop)); err != nil {
		t.Fatal(err)
	}
	s.AddReceivingMiddleware(b.asTasks)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
}

// serveAt listens at an address, "127.0.0.1:0" for any, until it is stopped: at
// once, with every connection.
func serveAt(t *testing.T, address string, h http.Handler) (at string, stop func()) {
	t.Helper()
	var l net.Listener
	var err error
	for range 100 { // the port may still be taken by what was there before
		if l, err = net.Listen("tcp", address); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: h}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = web.Serve(l)
	}()
	stop = sync.OnceFunc(func() {
		_ = web.Close()
		<-ended
	})
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

// A server that goes away in the middle of a task and comes back with its tasks
// is as good as one that stayed.
func TestRestartInTheMiddleOfATask(t *testing.T) {
	t.Parallel()
	b := &bureau{jobs: map[string]*job{}}
	at, stop := serveAt(t, "127.0.0.1:0", b.handler(t))
	s := open(t, Target{URL: "http://" + at})
	if s.direct == nil {
		t.Fatal("the session does not know of tasks")
	}
	working, once := make(chan struct{}), sync.Once{}
	var wg sync.WaitGroup
	for _, question := range []string{"sleep one", "sleep two"} {
		wg.Go(func() {
			got, err := s.Research(t.Context(), ask(question), func(marchwarden.Event) { once.Do(func() { close(working) }) })
			if err != nil {
				t.Error(err)
				return
			}
			if diff := cmp.Diff(sample(question+" [1]"), got, traceIDs); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
	<-working
	stop()
	time.Sleep(700 * time.Millisecond)
	_, stop = serveAt(t, at, b.handler(t))
	wg.Wait()
	if _, err := s.Research(t.Context(), ask("again"), nil); err != nil {
		t.Errorf("the session did not survive: %v", err)
	}
	s.Close()
	stop()
}

// Our own server is one.
func TestRestartOfOurOwn(t *testing.T) {
	t.Parallel()
	researcher := scripted(func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
		if req.Resume != "" {
			return sample("gone on with [1]"), nil
		}
		if sink != nil {
			sink(marchwarden.Event{Stage: marchwarden.StageSearch, Message: "searching"})
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	dir := t.TempDir()
	begin := func(address string) (string, func()) {
		cfg := farConfig()
		cfg.Researcher, cfg.RunsDir, cfg.Grace = researcher, dir, 500*time.Millisecond
		s, err := mcpkit.NewServer(cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.Recover()
		h := s.Handler(0)
		at, stop := serveAt(t, address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Anonymous())))
		}))
		return at, func() {
			stop()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	at, stop := begin("127.0.0.1:0")
	s := open(t, Target{URL: "http://" + at})
	searching, once := make(chan struct{}), sync.Once{}
	var res *marchwarden.Result
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, err = s.Research(t.Context(), ask("q"), func(e marchwarden.Event) {
			if e.Message == "searching" {
				once.Do(func() { close(searching) })
			}
		})
	}()
	within(t, 30*time.Second, "the beginning of the task", searching)
	stop()
	_, stop = begin(at)
	within(t, 30*time.Second, "the task", done)
	if err != nil || res.Answer != "gone on with [1]" {
		t.Errorf("got %v, %v", res, err)
	}
	s.Close()
	stop()
}

// One that comes back without its tasks says so.
func TestRestartThatForgets(t *testing.T) {
	t.Parallel()
	b := &bureau{jobs: map[string]*job{}}
	at, stop := serveAt(t, "127.0.0.1:0", b.handler(t))
	s := open(t, Target{URL: "http://" + at})
	once := sync.Once{}
	_, err := s.Research(t.Context(), ask("wait"), func(marchwarden.Event) {
		once.Do(func() {
			stop()
			_, stop = serveAt(t, at, (&bureau{jobs: map[string]*job{}}).handler(t))
		})
	})
	if !errors.Is(err, marchwarden.CodeNotFound) {
		t.Errorf("got %v", err)
	}
	for _, j := range b.jobs {
		j.cancel()
		<-j.ended
	}
	s.Close()
	stop()
}

// What is cancelled here ends there.
func TestCancelReachesTheTask(t *testing.T) {
	t.Parallel()
	b := &bureau{jobs: map[string]*job{}}
	at, stop := serveAt(t, "127.0.0.1:0", b.handler(t))
	s := open(t, Target{URL: "http://" + at})
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.Research(ctx, ask("wait"), func(marchwarden.Event) { cancel() }); !errors.Is(err, marchwarden.CodeCanceled) {
		t.Errorf("got %v", err)
	}
	j, err := b.find("job-a")
	if err != nil {
		t.Fatal(err)
	}
	within(t, 30*time.Second, "the end of the task", j.ended)
	s.Close()
	stop()
}
