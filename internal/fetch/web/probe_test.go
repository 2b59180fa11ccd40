package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
)

func TestProbe(t *testing.T) {
	var mu sync.Mutex
	asked := map[string][]string{}
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path] = append(asked[r.URL.Path], r.Method)
		mu.Unlock()
		head := r.Method == http.MethodHead
		switch r.URL.Path {
		case "/there":
			fmt.Fprint(w, article)
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/no-head":
			if head {
				w.WriteHeader(http.StatusMethodNotAllowed)
			}
		case "/head-lies":
			if head {
				http.NotFound(w, r)
			}
		case "/head-breaks":
			if head {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(http.StatusPartialContent)
		case "/empty":
			if head {
				w.WriteHeader(http.StatusNotImplemented)
				return
			}
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		case "/moved":
			http.Redirect(w, r, "/there", http.StatusMovedPermanently)
		case "/moved-away":
			http.Redirect(w, r, "/nowhere", http.StatusFound)
		case "/circle":
			http.Redirect(w, r, "/circle", http.StatusFound)
		case "/inside":
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		case "/endless":
			if head {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		case "/busy":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		case "/private":
			w.WriteHeader(http.StatusForbidden)
		case "/dead":
			panic(http.ErrAbortHandler)
		default:
			http.NotFound(w, r)
		}
	})
	f := newFetcher(t, nil)
	for _, tt := range []struct {
		path, at string // at is "" for where it was asked for
		code     marchwarden.Code
		asked    string
	}{
		{"/there", "", "", "HEAD"},
		{"/gone", "", marchwarden.CodeNotFound, "HEAD GET"},
		{"/missing", "", marchwarden.CodeNotFound, "HEAD GET"},
		{"/no-head", "", "", "HEAD GET"},
		{"/head-lies", "", "", "HEAD GET"},
		{"/head-breaks", "", "", "HEAD GET"},
		{"/empty", "", "", "HEAD GET"},
		{"/endless", "", "", "HEAD GET"},
		{"/moved", "/there", "", "HEAD"},
		{"/moved-away", "", marchwarden.CodeNotFound, "HEAD"},
		{"/circle", "", marchwarden.CodeUnavailable, "HEAD"},
		{"/inside", "", marchwarden.CodeDenied, "HEAD"},
		{"/busy", "", marchwarden.CodeRateLimited, "HEAD"},
		{"/broken", "", marchwarden.CodeUnavailable, "HEAD GET"},
		{"/private", "", marchwarden.CodeDenied, "HEAD GET"},
		{"/dead", "", marchwarden.CodeUnavailable, "HEAD GET"},
	} {
		at, err := f.Probe(t.Context(), server.URL+tt.path)
		wantCode(t, tt.path, err, tt.code)
		want := ""
		if err == nil {
			if want = tt.at; want == "" {
				want = tt.path
			}
			want = server.URL + want
		}
		mu.Lock()
		got := strings.Join(slices.Compact(asked[tt.path]), " ")
		mu.Unlock()
		if at != want || got != tt.asked {
			t.Errorf("%s is at %q after %s, want %q after %s", tt.path, at, got, want, tt.asked)
		}
	}
}

// Whatever goes wrong on the way says nothing about the page.
func TestProbeNeverMistakesAFaultForAMissingPage(t *testing.T) {
	slow := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	forbids := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			t.Errorf("asked for %s", r.URL)
		}
		fmt.Fprint(w, "User-agent: *\nDisallow: /")
	}))
	t.Cleanup(forbids.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	f := newFetcher(t, func(c *Config) { c.Timeout = 200 * time.Millisecond })
	for loc, code := range map[string]marchwarden.Code{
		slow.URL + "/":                            marchwarden.CodeTimeout,
		forbids.URL + "/":                         marchwarden.CodeDenied,
		"http://" + closed.Addr().String() + "/":  marchwarden.CodeUnavailable,
		"http://10.0.0.1/":                        marchwarden.CodeDenied,
		"http://169.254.169.254/latest/meta-data": marchwarden.CodeDenied,
		"HTTP://Example.org":                      marchwarden.CodeDenied,
		"ftp://example.org/":                      marchwarden.CodeDenied,
		"file:///etc/passwd":                      marchwarden.CodeDenied,
	} {
		_, err := f.Probe(t.Context(), loc)
		wantCode(t, loc, err, code)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = f.Probe(ctx, slow.URL+"/")
	wantCode(t, "after the end", err, marchwarden.CodeCanceled)
	g := New(Config{Guard: guard.New(nil), Now: time.Now})
	_, err = g.Probe(t.Context(), slow.URL+"/")
	wantCode(t, "loopback without leave", err, marchwarden.CodeDenied)
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
