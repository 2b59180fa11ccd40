package page

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/browsertest"
)

// TestPaintedPieceByPiece: a page that comes slowly, and is painted after each piece, moves at no time.
func TestPaintedPieceByPiece(t *testing.T) {
	b := browsertest.Open(t)
	for _, s := range []show{page("answer", sampleAnswer(7, true), Answer.Page), page("ask", sampleAsk(), Ask.Page)} {
		pieces := strings.Split(regexp.MustCompile(`<((section|aside|footer|details|nav) |div class="tools")`).ReplaceAllString(string(s.render()), "\x00$0"), "\x00")
		painted := make(chan struct{}, len(pieces))
		mux := http.NewServeMux()
		mux.Handle("/static/", Static)
		mux.HandleFunc("/painted", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			painted <- struct{}{}
		})
		mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			for _, piece := range pieces {
				// The browser says what it misses.
				_, _ = io.WriteString(w, piece+`<script>requestAnimationFrame(() => requestAnimationFrame(() => fetch("/painted")))</script>`)
				w.(http.Flusher).Flush()
				select {
				case <-painted:
				case <-r.Context().Done():
				}
			}
		})
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		p := b.Page(t)
		p.Show(browsertest.Screen{Width: 1280, Height: 800})
		p.Go(server.URL + "/")
		var moved []string
		p.Eval(`new Promise(done => {
			new PerformanceObserver(list => done(list.getEntries().flatMap(e => e.sources.map(s => e.value + " " + s.node?.parentNode?.outerHTML.slice(0, 120))))).observe({type: "layout-shift", buffered: true});
			setTimeout(() => done([]), 300);
		})`, &moved)
		for _, m := range moved {
			t.Errorf("%s moved: %s", s.name, m)
		}
	}
}
