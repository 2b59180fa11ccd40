package searchtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// FaultTimeout is the time limit of an engine whose service falls silent.
const FaultTimeout = 400 * time.Millisecond

// patience is the time limit where the service answers: a busy machine takes its time.
const patience = time.Minute

// NewEngine makes an engine for the service at base, with a time limit.
type NewEngine func(t *testing.T, base string, timeout time.Duration) search.Engine

// fault is one way in which a service fails. Its handler is told what the request
// said about its sender, to repeat it where it hurts.
type fault struct {
	name  string
	codes []marchwarden.Code // the right ones
	serve func(w http.ResponseWriter, r *http.Request, sender string)
}

func status(code int, header ...string) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, sender string) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"error": {"code": "no", "message": %q}}`, "not for "+sender)
	}
}

func says(contentType, body string) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", contentType)
		io.WriteString(w, body)
	}
}

// faults is what a search service can do to its caller.
var faults = []fault{
	{"429 with Retry-After", []marchwarden.Code{marchwarden.CodeRateLimited}, status(429, "Retry-After", "3600")},
	{"429 with a short Retry-After", []marchwarden.Code{marchwarden.CodeRateLimited}, status(429, "Retry-After", "0")},
	{"429 without Retry-After", []marchwarden.Code{marchwarden.CodeRateLimited}, status(429)},
	{"500", []marchwarden.Code{marchwarden.CodeUnavailable}, status(500)},
	{"503", []marchwarden.Code{marchwarden.CodeUnavailable}, status(503, "Retry-After", "Wed, 21 Oct 2099 07:28:00 GMT")},
	{"504", []marchwarden.Code{marchwarden.CodeTimeout}, status(504)},
	{"408", []marchwarden.Code{marchwarden.CodeTimeout}, status(408)},
	{"400", []marchwarden.Code{marchwarden.CodeUnavailable}, status(400)},
	{"404", []marchwarden.Code{marchwarden.CodeUnavailable}, status(404)},
	{"401", []marchwarden.Code{marchwarden.CodeDenied}, status(401)},
	{"403", []marchwarden.Code{marchwarden.CodeDenied}, status(403)},
	{"quota", []marchwarden.Code{marchwarden.CodeDenied}, func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.WriteHeader(432)
		io.WriteString(w, `{"detail": {"error": "This request exceeds your plan's set usage limit."}}`)
	}},
	{"timeout", []marchwarden.Code{marchwarden.CodeTimeout}, func(_ http.ResponseWriter, r *http.Request, _ string) { <-r.Context().Done() }},
	{"stall", []marchwarden.Code{marchwarden.CodeTimeout}, func(w http.ResponseWriter, r *http.Request, _ string) {
		io.WriteString(w, `{"results": [`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}},
	{"slow drip", []marchwarden.Code{marchwarden.CodeTimeout}, func(w http.ResponseWriter, r *http.Request, _ string) {
		for r.Context().Err() == nil {
			io.WriteString(w, " ")
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	}},
	{"empty body", []marchwarden.Code{marchwarden.CodeMalformed}, says("application/json", "")},
	{"malformed JSON", []marchwarden.Code{marchwarden.CodeMalformed}, says("application/json", `{"results": [}`)},
	{"another JSON", []marchwarden.Code{marchwarden.CodeMalformed}, says("application/json", `{"hello": "world"}`)},
	{"a JSON list", []marchwarden.Code{marchwarden.CodeMalformed}, says("application/json", `[1, 2, 3]`)},
	{"null", []marchwarden.Code{marchwarden.CodeMalformed}, says("application/json", `null`)},
	{"HTML 200", []marchwarden.Code{marchwarden.CodeMalformed}, says("text/html; charset=utf-8", "<!doctype html><title>Sign in</title>")},
	{"HTML called JSON", []marchwarden.Code{marchwarden.CodeMalformed}, says("application/json", "<html></html>")},
	{"cut body", []marchwarden.Code{marchwarden.CodeMalformed}, func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, `{"results": [`)
	}},
	{"reset", []marchwarden.Code{marchwarden.CodeUnavailable}, func(http.ResponseWriter, *http.Request, string) { panic(http.ErrAbortHandler) }},
}

// RunFaults has a service fail in every way it can. Each time the engine must
// give no hits but an error with the right code that names the engine, soon after
// its time limit, and without the secret in it. The engine sends the secret along, if it has one.
func RunFaults(t *testing.T, secret string, newEngine NewEngine) {
	var all sync.WaitGroup // some take all the time there is, and none needs a processor
	for _, f := range faults {
		limit := patience
		if slices.Contains([]string{"timeout", "stall", "slow drip"}, f.name) { // the service does not finish its answer
			limit = FaultTimeout
		}
		all.Go(func() {
			t.Run(f.name, func(t *testing.T) {
				base := Serve(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body) // a server notices a lost client only then
					user, password, _ := r.BasicAuth()
					f.serve(w, r, strings.Join([]string{r.Header.Get("Authorization"), r.Header.Get("X-Subscription-Token"), user, password}, " "))
				})
				checkFault(t, newEngine(t, base, limit), secret, f.codes...)
			})
		})
	}
	all.Wait()
	t.Run("connection refused", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		checkFault(t, newEngine(t, "http://"+l.Addr().String(), patience), secret, marchwarden.CodeUnavailable)
	})
	t.Run("500 MiB", func(t *testing.T) { testHuge(t, secret, newEngine) })
	t.Run("redirect elsewhere", func(t *testing.T) { testElsewhere(t, secret, newEngine) })
	t.Run("bad address", func(t *testing.T) {
		for _, base := range []string{"ftp://search.example", "://" + secret, "http://%zz/", "localhost:8080", "http://"} {
			checkFault(t, newEngine(t, base, patience), secret, marchwarden.CodeInvalid)
		}
	})
}

func testHuge(t *testing.T, secret string, newEngine NewEngine) {
	var sent atomic.Int64
	chunk := []byte(strings.Repeat("a", 1<<20))
	base := Serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"results": "`)
		for range 500 {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	checkFault(t, newEngine(t, base, patience), secret, marchwarden.CodeMalformed)
	if sent.Load() > 64<<20 {
		t.Errorf("%d MiB were taken", sent.Load()>>20)
	}
}

func testElsewhere(t *testing.T, secret string, newEngine NewEngine) {
	var reached atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer elsewhere.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		base := Serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", elsewhere.URL+"/?key="+url.QueryEscape(r.Header.Get("Authorization")+r.Header.Get("X-Subscription-Token")))
			w.WriteHeader(code)
		})
		checkFault(t, newEngine(t, base, patience), secret, marchwarden.CodeUnavailable)
	}
	if reached.Load() > 0 {
		t.Errorf("%d requests followed the redirect", reached.Load())
	}
}

// checkFault searches and holds the error against the promises.
func checkFault(t *testing.T, e search.Engine, secret string, codes ...marchwarden.Code) {
	t.Helper()
	hits, err := e.Search(t.Context(), search.Query{Text: "tomato soil", Limit: 5})
	if len(hits) > 0 || !slices.Contains(codes, marchwarden.CodeOf(err)) || errors.Is(err, marchwarden.CodeNotFound) {
		t.Errorf("%d hits and code %q (%v), want none and one of %q", len(hits), marchwarden.CodeOf(err), err, codes)
		return
	}
	if !strings.Contains(err.Error(), e.Name()) {
		t.Errorf("%q does not name %s", err, e.Name())
	}
	if secret == "" {
		return
	}
	for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
		if all := fmt.Sprintf("%v %+v %#v %s", err, err, err, marchwarden.HintOf(err)); strings.Contains(all, form) {
			t.Errorf("the secret is in %q", all)
		}
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		t.Errorf("%q wraps an address", err)
	}
}
