package web

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// TestHTTPS goes over HTTP/2, where other code reads headers and bodies.
func TestHTTPS(t *testing.T) {
	plain := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "over http") })
	bomb := gzipBomb(t)
	server := httptest.NewUnstartedServer(noRobots(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			fmt.Fprint(w, "over "+r.Proto)
		case "/down":
			http.Redirect(w, r, plain.URL+"/", http.StatusFound)
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		case "/header":
			w.Header().Set("X-Large", strings.Repeat("x", 2<<20))
		case "/cut":
			fmt.Fprint(w, "half")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)

	f := newFetcher(t, nil)
	_, err := f.Fetch(t.Context(), server.URL+"/")
	wantCode(t, "a certificate nobody knows", err, marchwarden.CodeUnavailable)

	f = newFetcher(t, nil)
	f.transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	for path, want := range map[string]string{"/": "over HTTP/2.0", "/down": "over http"} {
		page, err := f.Fetch(t.Context(), server.URL+path)
		if err != nil {
			t.Fatal(err)
		}
		if text := textOf(t, f, page); text != want {
			t.Errorf("%s: %q, want %q", path, text, want)
		}
		if path == "/down" && page.URL != plain.URL+"/" {
			t.Errorf("the page came from %s", page.URL)
		}
	}
	for _, path := range []string{"/bomb", "/header", "/cut"} {
		var err error
		grown, took := growth(func() { _, err = f.Fetch(t.Context(), server.URL+path) })
		wantCode(t, path, err, marchwarden.CodeUnavailable)
		t.Logf("%s: %d KiB of heap, %v, %v", path, grown>>10, took, err)
		if grown > maxGrowth {
			t.Errorf("%s: %d MiB of heap", path, grown>>20)
		}
	}
}
