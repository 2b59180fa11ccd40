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
)

// The paths of the door itself.
const (
	healthPath   = "/healthz"
	readyPath    = "/readyz"
	metadataPath = "/.well-known/oauth-protected-resource"
)

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	code int // 0: no head yet
}

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 && code >= 200 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

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
func (d *Door) panicked(w *recorder, r *http.Request, p any) bool {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return true // on purpose
	}
	why := fmt.Sprintf("a %T", p)
	if fault, ok := p.(runtime.Error); ok {
		why = fault.Error()
	}
	d.cfg.Log.Error("a handler panicked", "method", r.Method, "path", d.classOf(r.URL.Path), "panic", why, "stack", string(debug.Stack()))
	if w.code != 0 {
		return true
	}
	d.refuse(w, "panic", http.StatusInternalServerError, "a bug in this program", "the log of the server has more")
	return false
}

// routes are the paths of the door itself.
func (d *Door) routes() map[string]http.HandlerFunc {
	routes := vitals(d.ready)
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

// ready says what keeps the door from being so, in words that any caller may read.
func (d *Door) ready() error {
	if d.work.closed() {
		return errors.New("shutting down")
	}
	return nil
}

// classOf is the kind of a path, of which there are few.
func (d *Door) classOf(path string) string {
	switch {
	case path == Path:
		return "mcp"
	case path == healthPath || path == readyPath:
		return "health"
	case d.reserved[path] == nil:
		return "other"
	case path == "/":
		return "root"
	}
	return "metadata"
}
