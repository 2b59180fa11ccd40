package mcpkit

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

const (
	// modernEra is the first version of the protocol without sessions.
	modernEra = "2026-07-28"
	// principalKey is where the SDK carries who makes a request.
	principalKey = "marchwarden/principal"
	// requestHeader tells a handler which HTTP request its call came with. It is made
	// here, and one that comes from outside is dropped.
	requestHeader = "Marchwarden-Request"

	defaultSessionTimeout = 10 * time.Minute
	// defaultReturn is how long a client of the earlier protocol whose connection broke
	// may take to come back for its stream before its calls are stopped: that protocol
	// says that a broken connection alone cancels nothing.
	defaultReturn = 10 * time.Second
	// maxStreamBytes bounds what is kept for clients that come back.
	maxStreamBytes = 32 << 20
)

// HTTPOptions are about serving over HTTP.
type HTTPOptions struct {
	// SessionTimeout is how long a session of the earlier protocol may be idle; 0 means
	// ten minutes.
	SessionTimeout time.Duration
	// Return is how long a client of the earlier protocol may take to come back after
	// its connection broke before its calls are stopped; 0 means ten seconds.
	Return time.Duration
	// MaxBody bounds the body of a request; 0 is the SDK's own limit of 4 MiB.
	MaxBody int64
}

// Handler serves both eras of the protocol at one address: requests that say that they
// are of 2026-07-28 or later without sessions, others with. Whoever puts it behind an
// address also decides who gets there: requests are of the principal in their context
// (access.With), and of nobody, who may do nothing, without one.
func (s *Server) Handler(o HTTPOptions) http.Handler {
	if o.SessionTimeout == 0 {
		o.SessionTimeout = defaultSessionTimeout
	}
	if o.Return == 0 {
		o.Return = defaultReturn
	}
	get := func(*http.Request) *mcp.Server { return s.mcp }
	log := quiet(s.cfg.Log)
	store := mcp.NewMemoryEventStore(nil)
	store.SetMaxBytes(maxStreamBytes)
	// Which hosts may be named is the door's affair.
	modern := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: o.MaxBody, Logger: log, DisableLocalhostProtection: true})
	legacy := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{EventStore: store, SessionTimeout: o.SessionTimeout, MaxRequestBodyBytes: o.MaxBody, Logger: log, DisableLocalhostProtection: true})
	s.lines.patience = o.Return
	both := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= modernEra {
			modern.ServeHTTP(w, r)
			return
		}
		s.lines.came(r)
		legacy.ServeHTTP(w, r)
	})
	return identified(s.lines.numbered(both))
}

// identified tells the SDK who makes a request, so that it holds every session to the
// one who opened it. The SDK takes that from a bearer token only; the door has taken
// the real one away, and what stands in its place says nothing.
func identified(next http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		p := access.From(ctx)
		if p.ID == "" {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: p.ID, Scopes: p.Scopes, Extra: map[string]any{principalKey: p}}, nil
	}
	checked := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer verified")
		checked.ServeHTTP(w, r)
	})
}

// lines are the HTTP requests that are open, by number: the SDK does not tie a call of
// the earlier protocol to the request that it came with.
type lines struct {
	patience time.Duration

	mu    sync.Mutex // guards what follows
	last  uint64
	open  map[string]context.Context // by number
	seen  map[string]uint64          // by session: how often somebody came for its streams
	waits map[string]int             // by session: how many wait to see whether somebody does
}

func newLines() *lines {
	return &lines{patience: defaultReturn, open: map[string]context.Context{}, seen: map[string]uint64{}, waits: map[string]int{}}
}

// numbered gives each request its number while it is served.
func (l *lines) numbered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		l.last++
		number := strconv.FormatUint(l.last, 10)
		l.open[number] = r.Context()
		l.mu.Unlock()
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.open, number)
		}()
		r.Header.Set(requestHeader, number) // of the clone that identified made
		next.ServeHTTP(w, r)
	})
}

// came notes that a client came back for a stream of its session.
func (l *lines) came(r *http.Request) {
	session := r.Header.Get("Mcp-Session-Id")
	if r.Method != http.MethodGet || session == "" || r.Header.Get("Last-Event-ID") == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waits[session] > 0 {
		l.seen[session]++
	}
}

// returns waits for the client of a session to come back, and says whether it did.
func (l *lines) returns(ctx context.Context, session string) bool {
	l.mu.Lock()
	before := l.seen[session]
	l.waits[session]++
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.waits[session]--; l.waits[session] == 0 {
			delete(l.waits, session)
			delete(l.seen, session)
		}
	}()
	timer := time.NewTimer(l.patience)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[session] > before
}

// joinRequest ends ctx when the client that made a call over the earlier protocol has
// gone and does not come back. The later one sees to that itself.
func (s *Server) joinRequest(ctx context.Context, req *mcp.CallToolRequest) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if req.Extra == nil || req.Extra.Header == nil || req.ProtocolVersion() >= modernEra {
		return ctx, cancel
	}
	s.lines.mu.Lock()
	request := s.lines.open[req.Extra.Header.Get(requestHeader)]
	s.lines.mu.Unlock()
	if request == nil { // it has gone already
		request = over
	}
	session := req.Session.ID()
	release := context.AfterFunc(request, func() {
		if !s.lines.returns(ctx, session) {
			cancel()
		}
	})
	return ctx, func() {
		release()
		cancel()
	}
}

// over is the context of a request that is over.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// scopes is what a caller must be allowed in order to use a method. What a server is
// may be asked by everybody whom the door lets in.
var scopes = map[string]string{
	"tools/call":           access.ScopeResearch,
	"tasks/cancel":         access.ScopeResearch,
	"tasks/update":         access.ScopeResearch,
	"tasks/get":            access.ScopeRead,
	"resources/read":       access.ScopeRead,
	"resources/subscribe":  access.ScopeRead,
	"subscriptions/listen": access.ScopeRead,
}

// caller is who makes a request: over HTTP whom the door has let in, on a pipe the
// user whose process this is.
func caller(ctx context.Context, req mcp.Request) access.Principal {
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		p, _ := extra.TokenInfo.Extra[principalKey].(access.Principal)
		return p
	}
	return access.From(ctx)
}
