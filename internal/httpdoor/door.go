// Package httpdoor stands in front of what is served over HTTP: an MCP server (Door) and the
// web pages (SignIn). It owns who and what comes in: the names a server may be called by, the
// origins of browsers, tokens, sessions, the sizes and rates of requests; health and
// readiness; and how all of it ends. It knows HTTP alone:
// what a message or a page means is the business of the handler behind it, which sees who asks
// (access.From) and neither token nor cookie.
//
//	Door:   Host → Origin → busy? → who? → rate → type → size → MCP
//	SignIn: headers → Host → Origin → session → who? → was it meant? → page
//
// The address of a caller is that of its connection. X-Forwarded-For and the like are
// ignored: any client can write them. Behind a proxy all callers without a token therefore
// share one limit, and those with a token have one each.
package httpdoor

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// Path is where MCP is served.
const Path = "/mcp"

// Config says what is behind the door and who may come in. MCP and Now must be set.
type Config struct {
	// MCP serves /mcp. It sees requests without token and cookies, with the principal in their context
	// (access.From) and with a body that is whole and small. It cannot be hijacked.
	MCP http.Handler

	Auth access.Authenticator // nil: every caller is access.Anonymous()
	// Metadata is the document of RFC 9728, served without a token under
	// /.well-known/oauth-protected-resource and below it; nil for none.
	Metadata    []byte
	MetadataURL string // named when a token is missing; "" is derived from the request's host if there is Metadata
	Scope       string // named when a token or its scope is missing

	// Hosts are the names, with or without port, that requests may be for, in addition to
	// loopback and the address the connection came to. Without port, any port will do.
	Hosts []string
	// Origins are those that browsers may call from, as scheme://host[:port], in addition to those of Hosts.
	Origins []string

	MaxBody     int64   // bytes of a request; 0 is 1 MiB
	MaxInFlight int     // requests at once over all callers, and half of them of one; 0 is 4096
	Rate        float64 // requests per second and caller; 0 is 50
	Burst       int     // requests that a caller may make at once; 0 is 1000, or twice Rate if that is set

	HeaderTimeout time.Duration // for the head of a request; 0 is 10 s
	BodyTimeout   time.Duration // for the body of a request, and for a caller to read a part of the answer; 0 is 30 s

	Now func() time.Time
	Log *slog.Logger // nil: nothing is logged

	CertFile, KeyFile string // TLS if both are set

	Grace time.Duration // that work in flight gets when Serve ends, and one second more to be delivered; 0 is 2 s
	// Stop is called once when Serve begins to end, to stop the work; its context ends after Grace.
	Stop func(context.Context)
}

// Limits that need no setting.
const (
	maxHeaderBytes = 64 << 10
	idleTimeout    = 2 * time.Minute
	headerTimeout  = 10 * time.Second
	authTimeout    = 10 * time.Second
	failuresPerSec = 1
	failuresBurst  = 20
	minCallersKept = 8192
	maxTokensKept  = 4096
	retrySoon      = 1 // seconds
	retryLater     = 5 // seconds
)

// Door is made by New. It is safe for concurrent use.
type Door struct {
	cfg      Config
	policy   *policy
	keeper   *keeper
	reserved map[string]http.HandlerFunc // the paths other than Path

	work     tally        // requests that the end waits for
	inFlight atomic.Int64 // requests of all callers
	callers  *lru[*caller]
}

// New checks a configuration. What is wrong with it is CodeInvalid with the field's name.
func New(cfg Config) (*Door, error) {
	if (cfg.CertFile == "") != (cfg.KeyFile == "") {
		return nil, invalid("tls", "needs a certificate and a key, not one of them")
	}
	if cfg.Burst == 0 && cfg.Rate > 0 {
		cfg.Burst = max(1, int(2*cfg.Rate))
	}
	cfg.MaxBody = cmp.Or(cfg.MaxBody, 1<<20)
	cfg.MaxInFlight = cmp.Or(cfg.MaxInFlight, 4096)
	cfg.Rate = cmp.Or(cfg.Rate, 50)
	cfg.Burst = cmp.Or(cfg.Burst, 1000)
	cfg.HeaderTimeout = cmp.Or(cfg.HeaderTimeout, headerTimeout)
	cfg.BodyTimeout = cmp.Or(cfg.BodyTimeout, 30*time.Second)
	cfg.Grace = cmp.Or(cfg.Grace, 2*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	policy, err := newPolicy(cfg.Hosts, cfg.Origins)
	if err != nil {
		return nil, err
	}
	kept := max(minCallersKept, 2*cfg.MaxInFlight)
	d := &Door{cfg: cfg, policy: policy,
		keeper:  newKeeper(cfg.Auth, cfg.Now, cfg.Log, kept),
		callers: newLRU(kept, (*caller).busy),
	}
	d.reserved = d.routes()
	return d, nil
}

func invalid(field, format string, args ...any) error {
	e := marchwarden.Errorf(marchwarden.CodeInvalid, format, args...)
	e.Field = field
	return e
}

// Handler is everything but the listening: all paths, with all rules.
func (d *Door) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w, conn: http.NewResponseController(w), patience: d.cfg.BodyTimeout}
		defer func() {
			if p := recover(); p != nil && d.panicked(a, r, p) {
				panic(http.ErrAbortHandler) // net/http closes the connection and logs nothing
			}
		}()
		d.enter(a, r)
	})
}

// enter is the part of the way that all requests go.
func (d *Door) enter(w *answer, r *http.Request) {
	probe := r.URL.Path == healthPath || r.URL.Path == readyPath
	hostOK := d.policy.knows(r)
	if !hostOK && !probe {
		d.refuse(w, "host", http.StatusForbidden, wrongHost, wrongHostHint)
		return
	}
	if why := d.policy.foreign(r, hostOK); why != "" {
		d.refuse(w, "origin", http.StatusForbidden, why, "name the origin among the allowed origins")
		return
	}
	if answerCORS(w, r) {
		return
	}
	if probe {
		d.reserved[r.URL.Path](w, r)
		return
	}
	defer d.inFlight.Add(-1)
	if d.inFlight.Add(1) > int64(d.cfg.MaxInFlight) {
		retryAfter(w, retrySoon)
		d.refuse(w, "busy", http.StatusServiceUnavailable, "too many requests at once", "try again in a moment")
		return
	}
	if r.URL.Path == Path {
		d.serveMCP(w, r)
		return
	}
	if serve := d.reserved[r.URL.Path]; serve != nil {
		serve(w, r)
		return
	}
	d.refuse(w, "path", http.StatusNotFound, "there is nothing at this path", "MCP is served at "+Path)
}

// What is said of a request for another host.
const (
	wrongHost     = "the request is for a host that this server is not known by"
	wrongHostHint = "name it among the allowed hosts, or use localhost"
)

var methods = []string{http.MethodPost, http.MethodGet, http.MethodDelete}

func (d *Door) serveMCP(w *answer, r *http.Request) {
	h := w.Header()
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if !slices.Contains(methods, r.Method) {
		h.Set("Allow", strings.Join(methods, ", "))
		d.refuse(w, "method", http.StatusMethodNotAllowed, "this method is not for MCP", "use "+strings.Join(methods, ", "))
		return
	}
	// A stream that a client merely listens to is nothing the end has to wait for.
	leave, ok := d.work.enter(r.Method != http.MethodGet)
	if !ok {
		h.Set("Connection", "close")
		retryAfter(w, retryLater)
		d.refuse(w, "ending", http.StatusServiceUnavailable, "the server is shutting down", "try again in a few seconds")
		return
	}
	defer leave()
	p, ok := d.admit(w, r)
	if !ok {
		return
	}
	key := "id " + p.ID
	if p.ID == access.Anonymous().ID {
		key = "addr " + remote(r)
	}
	leaveCaller, ok := d.take(w, key)
	if !ok {
		return
	}
	defer leaveCaller()
	body, ok := d.body(w, r)
	if !ok {
		return
	}
	d.cfg.MCP.ServeHTTP(w, inside(r, p, body))
}
