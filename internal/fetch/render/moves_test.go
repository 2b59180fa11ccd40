package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

// town is a server for every host whose name ends in ".test". Its documents are found by host and path.
func town(t *testing.T, documents map[string]string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/nothing":
			w.WriteHeader(http.StatusNoContent)
		case r.URL.Path == "/redirect":
			http.Redirect(w, r, "http://b.test/", http.StatusFound)
		case r.URL.Path == "/endless": // another address each time, on two hosts
			host := map[string]string{"a.test": "b.test", "b.test": "a.test"}[r.Host]
			_, _ = fmt.Fprintf(w, `<!doctype html><p>hop<script>location.href = 'http://%s/endless?%s1'</script>`, host, r.URL.RawQuery)
		case r.URL.Path == "/file":
			w.Header().Set("Content-Disposition", "attachment; filename=x.bin")
			_, _ = io.WriteString(w, "bytes")
		case documents[r.Host+r.URL.Path] == "":
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, documents[r.Host+r.URL.Path])
		}
	}))
	t.Cleanup(srv.Close)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !strings.HasSuffix(addr, ".test:80") {
			return nil, errForbidden
		}
		var d net.Dialer
		return d.DialContext(ctx, network, srv.Listener.Addr().String())
	}
}

// pretend makes a document claim that it is at a.test and says something else, by every means that a page has.
const pretend = `<!doctype html><html><head><script>
const lie = 'http://a.test/';
for (const o of [Document.prototype, document]) for (const n of ['URL', 'documentURI', 'baseURI', 'location'])
  try { Object.defineProperty(o, n, {get: () => lie, configurable: false}); } catch (e) {}
for (const n of ['location', 'document', 'Document', 'origin'])
  try { Object.defineProperty(window, n, {get: () => ({URL: lie, href: lie, documentElement: {outerHTML: 'lie'}})}); } catch (e) {}
try { Object.defineProperty(Document.prototype, 'documentElement', {get: () => ({outerHTML: 'lie'})}); } catch (e) {}
try { Object.defineProperty(Element.prototype, 'outerHTML', {get: () => 'lie'}); } catch (e) {}
Object.getOwnPropertyDescriptor = () => ({get: () => lie});
Function.prototype.call = () => lie;
XMLSerializer.prototype.serializeToString = () => lie;
</script></head><body><form name=URL action="http://a.test/"></form><form name=documentElement><input name=outerHTML value=lie></form><form name=doctype></form>
<img name=location><a id=Document href="http://a.test/"></a><a id=Object href="http://a.test/"></a><p>truth of b</p></body></html>`

// move is a page at a.test that goes elsewhere, or claims to, or holds the browser up.
type move struct {
	name      string
	content   string // of the page
	at        string // its path, when there is no content
	url, text string
	code      marchwarden.Code
	is        error
}

func (m move) path() string {
	if m.at != "" {
		return m.at
	}
	return "/" + strings.ReplaceAll(m.name, " ", "-")
}

func script(s string) string { return `<!doctype html><p id=p>text of a</p><script>` + s + `</script>` }

var moves = []move{
	{name: "another host", content: script(`setTimeout(() => { location.href = 'http://b.test/'; }, 1500)`), url: "http://b.test/", text: "truth of b"},
	{name: "another page", content: script(`setTimeout(() => { location.href = '/fills'; }, 3000)`), url: "http://a.test/fills", text: ">filled 204<"},
	{name: "meta refresh", content: `<meta http-equiv=refresh content="2;url=http://b.test/">`, url: "http://b.test/", text: "truth of b"},
	{name: "redirect", at: "/redirect", url: "http://b.test/", text: "truth of b"},
	{name: "leaving is to be confirmed", content: script(`addEventListener('beforeunload', e => { e.preventDefault(); e.returnValue = 'stay'; });
		setTimeout(() => { location.href = 'http://b.test/'; }, 100)`), url: "http://b.test/", text: "truth of b"},
	{name: "history", content: script(`history.replaceState({}, '', '/x?y=1'); history.pushState({}, '', '/z?y=2#f');
		try { history.replaceState({}, '', 'http://b.test/'); } catch (e) { p.textContent = 'refused'; }`), url: "http://a.test/z?y=2#f", text: ">refused<"},
	{name: "replaced by its frame", content: script(``) + `<iframe src="/frame"></iframe>`, url: "http://a.test/frame", text: "<html>"},
	{name: "windows and dialogs", content: script(`open('http://b.test/'); alert(1); p.textContent = confirm(2) + '/' + prompt(3); print();
		onload = () => { alert(4); setTimeout(() => { p.append('/done'); }, 500); }`), url: "http://a.test/windows-and-dialogs", text: "false/null/done"},
	{name: "download", content: script(`location.href = '/file'`), url: "http://a.test/download", text: "text of a"},
	{name: "no content", at: "/nothing", code: marchwarden.CodeUnavailable, is: errNotLoaded},
	{name: "nothing left", content: script(`document.documentElement.remove()`), code: marchwarden.CodeUnavailable},
	{name: "about", content: script(`location.href = 'about:blank'`), code: marchwarden.CodeDenied},
	{name: "blob", content: script(`location.href = URL.createObjectURL(new Blob(['<p>made up'], {type: 'text/html'}))`), code: marchwarden.CodeDenied},
	{name: "host out of reach", content: script(`location.href = 'http://out.example/'`), code: marchwarden.CodeDenied, is: errForbidden},
	{name: "endless", at: "/endless", code: marchwarden.CodeUnavailable},
}

// everydayMoves are tried in the everyday form: each starts a browser. The others are
// tried where MARCHWARDEN_TEST_FULL is set.
var everydayMoves = []string{"another host", "meta refresh", "download", "about", "host out of reach"}

func TestRenderSaysWhereItEnded(t *testing.T) {
	path := browser(t)
	documents := map[string]string{"b.test/": pretend, "a.test/fills": script(`setTimeout(() => { fetch('/nothing').then(r => { p.textContent = 'filled ' + r.status; }); }, 1500)`),
		"a.test/frame": `<script>const d = parent.document; d.open(); d.close()</script>`}
	for _, c := range moves {
		documents["a.test"+c.path()] = c.content
	}
	dial := town(t, documents)
	dir := t.TempDir()
	turns := make(chan struct{}, 4)
	var work sync.WaitGroup
	for _, c := range moves {
		if !slices.Contains(everydayMoves, c.name) && !datatest.Full() {
			continue
		}
		work.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			start := time.Now()
			got, err := New(Config{Chromium: path, Dial: dial, TempDir: dir, Timeout: time.Minute}).Render(t.Context(), "http://a.test"+c.path())
			if marchwarden.CodeOf(err) != c.code || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%s: err %v, want code %q", c.name, err, c.code)
			}
			if got.URL != c.url || !strings.Contains(string(got.HTML), c.text) {
				t.Errorf("%s: url %q, want %q; html %s, want %q in it", c.name, got.URL, c.url, got.HTML, c.text)
			}
			if spent := time.Since(start); spent > 35*time.Second { // the network would be shut after 36 s
				t.Errorf("%s: took %v: it was held up", c.name, spent)
			}
		})
	}
	work.Wait()
	clean(t, dir)
}
