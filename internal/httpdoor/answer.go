package httpdoor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// The paths of the door itself.
const (
	healthPath   = "/healthz"
	readyPath    = "/readyz"
	metadataPath = "/.well-known/oauth-protected-resource"
)

// answer is the writer that handlers get. It cuts off a caller that does not read, and keeps streams of
// events from being held back or kept on their way. It cannot be hijacked.
type answer struct {
	http.ResponseWriter
	conn     *http.ResponseController
	patience time.Duration
	begun    bool
}

const eventStream = "text/event-stream"

var errNotRead = errors.New("the caller does not read the answer")

// WriteHeader begins the answer.
func (a *answer) WriteHeader(code int) {
	if h := a.Header(); !a.begun && mediaType(h.Get("Content-Type")) == eventStream { // whatever the handler says: an answer is its caller's alone
		h.Set("Cache-Control", "no-store, no-transform")
		h.Set("X-Accel-Buffering", "no")
	}
	a.begun = a.begun || code >= 200
	a.ResponseWriter.WriteHeader(code)
}

// Write sends in pieces, each of which the caller has time to read.
func (a *answer) Write(b []byte) (n int, err error) {
	const piece = 32 << 10
	for len(b) > 0 && err == nil {
		part := b[:min(piece, len(b))]
		var m int
		err = a.inTime(func() (err error) {
			m, err = a.ResponseWriter.Write(part)
			return err
		})
		n, b = n+m, b[len(part):]
	}
	return n, err
}

// FlushError is Flush for http.ResponseController.
func (a *answer) FlushError() error { return a.inTime(a.conn.Flush) }

// inTime sends something, with the head of the answer before it.
func (a *answer) inTime(send func() error) (err error) {
	if !a.begun {
		a.WriteHeader(http.StatusOK)
	}
	if inTime(a.patience, a.conn.SetWriteDeadline, func() { err = send() }) && err == nil {
		err = errNotRead
	}
	return err
}

// refuse answers with one line of JSON. The reason is one of a few fixed words.
func (d *Door) refuse(w http.ResponseWriter, reason string, status int, message, hint string) {
	line, _ := json.Marshal(struct { // strings always marshal
		Error   string `json:"error"`
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
	}{reason, message, hint})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(line, '\n')) // a caller that is gone has no use for it
}

func retryAfter(w http.ResponseWriter, seconds int) {
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
}

// text answers with plain text. A caller that is gone has no use for it.
func text(w http.ResponseWriter, status int, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, s+"\n")
}

// panicked logs a panic with its stack, and of its value only a fault of the Go runtime: all else may
// hold what a caller sent. It reports whether the answer is broken and the connection must be, too.
func (d *Door) panicked(a *answer, r *http.Request, p any) bool {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return true // on purpose
	}
	why, path := fmt.Sprintf("a %T", p), r.URL.Path
	if fault, ok := p.(runtime.Error); ok {
		why = fault.Error()
	}
	if path != Path && d.reserved[path] == nil {
		path = "other"
	}
	d.cfg.Log.Error("a handler panicked", "method", r.Method, "path", path, "panic", why, "stack", string(debug.Stack()))
	if a.begun {
		return true
	}
	d.refuse(a, "panic", http.StatusInternalServerError, "a bug in this program", "the log of the server has more")
	return false
}

// routes are the paths of the door itself.
func (d *Door) routes() map[string]http.HandlerFunc {
	routes := vitals(func() error {
		if d.work.closed.Load() {
			return errors.New("shutting down")
		}
		return nil
	})
	routes["/"] = onlyGet(func(w http.ResponseWriter, _ *http.Request) {
		text(w, http.StatusOK, "Marchwarden answers questions with citations, for programs that speak the Model Context Protocol.\n"+
			"MCP is served at "+Path+" (streamable HTTP). Health: "+healthPath+", "+readyPath)
	})
	if d.cfg.Metadata != nil {
		serve := onlyGet(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			_, _ = w.Write(d.cfg.Metadata)
		})
		routes[metadataPath], routes[metadataPath+Path] = serve, serve
		if at, err := url.Parse(d.cfg.MetadataURL); err == nil && strings.HasPrefix(at.Path, metadataPath+"/") {
			routes[at.Path] = serve // a proxy may serve us below another path
		}
	}
	return routes
}

// vitals are the paths by which machines look after a process: it lives, it is ready.
func vitals(ready func() error) map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		healthPath: onlyGet(func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok") }),
		readyPath: onlyGet(func(w http.ResponseWriter, _ *http.Request) {
			if err := ready(); err != nil {
				text(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
				return
			}
			text(w, http.StatusOK, "ready")
		}),
	}
}

func onlyGet(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			text(w, http.StatusMethodNotAllowed, "only GET and HEAD are for this path")
			return
		}
		serve(w, r)
	}
}
