package mcpkit

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

const (
	// modernEra is the first version of the protocol without sessions.
	modernEra = "2026-07-28"
	// requestKey is where the SDK carries the context of an HTTP request.
	requestKey = "marchwarden/request"

	// defaultIdle is how long a session of the earlier protocol may be idle.
	defaultIdle = 10 * time.Minute
	// defaultReturn is how long a client of the earlier protocol whose connection broke
	// may take to come back for its stream before its calls are stopped: that protocol
	// says that a broken connection alone cancels nothing.
	defaultReturn = 10 * time.Second
	// maxStreamBytes bounds what is kept for clients that come back.
	maxStreamBytes = 32 << 20
	// noBatches refuses what clients of 2025-03-26 alone may send: a counter of requests counts it as one.
	noBatches = "batches are not supported: send one message a request"
)

// Handler serves both eras of the protocol at one address: requests that say that they
// are of 2026-07-28 or later without sessions, others with. The caller that puts it behind an
// address also decides who gets there: a request is of the principal in its context (access.With);
// without one it may do nothing.
func (s *Server) Handler() http.Handler {
	get := func(*http.Request) *mcp.Server { return s.mcp }
	store := mcp.NewMemoryEventStore(nil)
	store.SetMaxBytes(maxStreamBytes)
	// Which hosts may be named is the door's affair.
	modern := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, DisableLocalhostProtection: true})
	legacy := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{EventStore: store, SessionTimeout: s.lines.idle, DisableLocalhostProtection: true})
	both := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= modernEra {
			modern.ServeHTTP(w, r)
			return
		}
		data, _ := io.ReadAll(r.Body) // which the door has read, and bounded
		r.Body = io.NopCloser(bytes.NewReader(data))
		if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
			http.Error(w, noBatches, http.StatusBadRequest)
			return
		}
		defer s.lines.came(r)()
		legacy.ServeHTTP(w, r)
	})
	return identified(both)
}

// requestOf is the context of the HTTP request that a call came with: it says who makes the call, and ends with
// the request. The SDK ties a call of the earlier protocol to neither. It is nil on a pipe.
func requestOf(req mcp.Request) (request context.Context) {
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		request, _ = extra.TokenInfo.Extra[requestKey].(context.Context)
	}
	return request
}

// identified tells the SDK who makes a request, so that it holds every session to the one who opened
// it. The SDK takes that from a bearer token only; the door has taken the real one away.
func identified(next http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		p := access.From(ctx)
		if p.ID == "" {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: p.ID, Scopes: p.Scopes, Extra: map[string]any{requestKey: ctx}}, nil
	}
	checked := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, over := context.WithCancel(r.Context())
		defer over()
		r = r.Clone(ctx)
		r.Header.Set("Authorization", "Bearer verified")
		checked.ServeHTTP(w, r)
	})
}

// lines are the connections of HTTP clients, as far as several requests share them.
type lines struct {
	patience time.Duration
	idle     time.Duration
	loads    sync.Map // *semaphore.Weighted by caller: the large resources that are on their way

	mu   sync.Mutex     // guards back
	back map[string]int // the open streams of a session that its client came back for
}

func newLines() *lines {
	return &lines{patience: defaultReturn, idle: defaultIdle, back: map[string]int{}}
}

// came notes that a client came back for a stream of its session, and gives what notes that it went.
func (l *lines) came(r *http.Request) (went func()) {
	session := r.Header.Get("Mcp-Session-Id")
	if r.Method != http.MethodGet || session == "" || r.Header.Get("Last-Event-ID") == "" {
		return func() {}
	}
	l.open(session, 1)
	return func() { l.open(session, -1) }
}

// open counts the open streams of a session.
func (l *lines) open(session string, more int) (streams int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.back[session] += more
	if streams = l.back[session]; streams == 0 {
		delete(l.back, session)
	}
	return streams
}

// missed returns when the client of a session has been away for as long as the patience, or for half of
// it once it was back; or when ctx ends.
func (l *lines) missed(ctx context.Context, session string) {
	for away := 0; away < 2 && httpapi.Sleep(ctx, l.patience/2) == nil; {
		if away++; l.open(session, 0) > 0 {
			away = 0
		}
	}
}

// join ends ctx when the calls of a session on stdio are stopped, and when the client of a call over
// the earlier HTTP has gone and does not come back: the SDK shields requests from both, and lets only
// values of their contexts through.
func (s *Server) join(ctx context.Context, req *mcp.CallToolRequest) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	until, _ := ctx.Value(sessionKey{}).(context.Context)
	end := cancel
	if request := requestOf(req); request != nil && req.ProtocolVersion() < modernEra {
		until = request
		end = func() {
			defer cancel()
			s.lines.missed(ctx, req.Session.ID())
		}
	}
	if until == nil {
		return ctx, cancel
	}
	release := context.AfterFunc(until, end)
	return ctx, func() {
		release()
		cancel()
	}
}

// scopes are what methods need. Every caller that the door lets in may ask what a server is.
var scopes = map[string]string{
	"tools/call":           access.ScopeResearch,
	"tasks/cancel":         access.ScopeResearch,
	"tasks/update":         access.ScopeResearch,
	"tasks/get":            access.ScopeRead,
	"resources/read":       access.ScopeRead,
	"resources/subscribe":  access.ScopeRead,
	"subscriptions/listen": access.ScopeRead,
}

// caller is who makes a request: over HTTP whom the door has let in, on a pipe the local user.
func caller(ctx context.Context, req mcp.Request) access.Principal {
	if request := requestOf(req); request != nil {
		ctx = request
	}
	return access.From(ctx)
}

// A resource is in memory several times while it is handed over, and for as long as its
// reader takes. So few large ones of a caller are at once; others wait.
const (
	smallLoad    = 64 << 10 // bytes that do not count
	maxLoads     = 4
	loadPatience = 10 * time.Second
)

var errLoads = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "too many large resources are being read at once; read one after the other, or try again in a moment"}

// measured reads a resource when there is room for a large one. One that is large takes
// the room until the HTTP request that it goes out with is over.
func (s *Server) measured(read mcp.ResourceHandler) mcp.ResourceHandler {
	return func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		request := requestOf(req)
		if request == nil { // a pipe, to the user's own host
			return read(ctx, req)
		}
		room := s.lines.room(access.From(request).ID)
		waiting, cancel := context.WithTimeout(ctx, loadPatience)
		defer cancel()
		if request.Err() != nil || room.Acquire(waiting, 1) != nil { // the answer is not read, or it has waited too long
			return nil, errLoads
		}
		free := sync.OnceFunc(func() { room.Release(1) })
		context.AfterFunc(request, free)
		res, err := read(ctx, req)
		if err != nil || len(res.Contents[0].Text)+len(res.Contents[0].Blob) <= smallLoad {
			free()
		}
		return res, err
	}
}

// room is what a caller has for large resources.
func (l *lines) room(caller string) *semaphore.Weighted {
	own, _ := l.loads.LoadOrStore(caller, semaphore.NewWeighted(maxLoads))
	return own.(*semaphore.Weighted)
}
