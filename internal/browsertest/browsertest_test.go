package browsertest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// head is on every page, so that none asks for an icon.
const head = `<!doctype html><meta charset=utf-8><title>A page</title><link rel=icon href="data:,">`

// serve is a site: paths and what is there. The name of a path says how it is served.
func serve(t *testing.T, pages map[string]string) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		switch path.Ext(r.URL.Path) {
		case ".js":
			w.Header().Set("Content-Type", "text/javascript")
		case ".csv":
			w.Header().Set("Content-Disposition", `attachment; filename="numbers of today.csv"`)
		case ".strict":
			w.Header().Set("Content-Security-Policy", "default-src 'none'; img-src data:")
			fallthrough
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			body = head + body
		}
		if path.Ext(r.URL.Path) == ".cookie" {
			http.SetCookie(w, &http.Cookie{Name: "crumb", Value: "1", HttpOnly: true, SameSite: http.SameSiteStrictMode, Path: "/"})
		}
		_, _ = io.WriteString(w, body)
		if path.Ext(r.URL.Path) == ".never" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	return srv
}

// failing is a test that is to fail.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure is what the test says that do ends.
func failure(t *testing.T, p *Page, d time.Duration, do func()) string {
	t.Helper()
	f := &failing{TB: p.t}
	was := p.patience
	p.t = f
	p.Patience(d)
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
	p.t = f.TB
	p.Patience(was)
	if f.said == "" {
		t.Error("it should have failed")
	}
	return f.said
}

// mentions asserts that a text has all parts.
func mentions(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestPage is all that pages can do, in one browser: each has its own cookies.
func TestPage(t *testing.T) {
	b := Open(t)
	for i, c := range []struct {
		name string
		run  func(*testing.T, *Page)
	}{
		{"go, reload, back and follow", testNavigation}, {"look", testLook}, {"wait", testWait}, {"mouse", testMouse}, {"keyboard", testKeyboard}, {"console", testConsole},
		{"dialogs", testDialogs}, {"requests of a hostile page", testHostile}, {"a strict page", testStrict}, {"cookies", testCookies}, {"offline and blocked", testOffline},
		{"downloads", testDownloads}, {"screens", testScreens}, {"timing", testTiming}, {"inject", testInject}, {"a page that never loads", testNever}, {"a busy page", testBusy},
		{"without scripts", testScriptless}, {"a page that crashes", testCrashedPage},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !datatest.Tried(i, 4) {
				t.Skip("set MARCHWARDEN_TEST_FULL=1")
			}
			c.run(t, b.Page(t))
		})
	}
}

func testNavigation(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{
		"/":        `<script src=/slow.js></script><p id=n></p><a href=/two>two</a><script>sessionStorage.n = +(sessionStorage.n || 0) + 1; n.textContent = sessionStorage.n;</script>`,
		"/two":     `<title>Two</title><p>second</p>`,
		"/onward":  `<script>location.replace('/two')</script>`,
		"/slow.js": `document.documentElement.dataset.slow = 'yes';`,
	})
	p.Go(srv.URL)
	equal(t, "script before load", p.Attr("html", "data-slow"), "yes")
	equal(t, "loads", p.Text("#n"), "1")
	p.Reload()
	equal(t, "loads after reload", p.Text("#n"), "2")
	p.Go(srv.URL + "/#place")
	equal(t, "loads after a move within", p.Text("#n"), "2")
	p.Follow("a")
	equal(t, "address", p.URL(), srv.URL+"/two")
	p.Back()
	equal(t, "address after back", p.URL(), srv.URL+"/#place")
	p.Leads(func() { p.Eval(`location.href = '/onward'`, nil) })
	p.WaitText("p", "second")
	p.Go(srv.URL + "/onward")
	p.WaitText("p", "second")
	p.Go(srv.URL + "/missing")
	p.WaitText("body", "404")
	gone := httptest.NewServer(nil)
	gone.Close()
	if err := p.Try(gone.URL); err == nil || !strings.Contains(err.Error(), "ERR_CONNECTION_REFUSED") {
		t.Errorf("a server that is not there: %v", err)
	}
	mentions(t, failure(t, p, time.Second, func() { p.Go(gone.URL) }), "ERR_CONNECTION_REFUSED", gone.URL)
}

func testLook(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/": `<ul><li> one <li>two<br>lines <li hidden>three</ul><a id="q&quot;" href="/x" title="„ä“">link</a><input value=start>`})
	p.Go(srv.URL)
	equal(t, "title", p.Title(), "A page")
	equal(t, "text", p.Text("li"), "one")
	if got := p.Texts("li"); !slices.Equal(got, []string{"one", "two\nlines", "three"}) {
		t.Errorf("texts: %q", got)
	}
	if got := p.Texts("ol"); got == nil || len(got) != 0 {
		t.Errorf("texts of nothing: %q", got)
	}
	equal(t, "count", p.Count("li"), 3)
	equal(t, "attribute", p.Attr(`a[id='q"']`, "title"), "„ä“")
	equal(t, "no attribute", p.Attr("a", "rel"), "")
	equal(t, "value", p.Value("input"), "start")
	var got struct {
		N    int
		List []string
	}
	p.Eval(`new Promise(done => setTimeout(() => done({N: 7, List: ['a', 'b']}), 20))`, &got)
	if got.N != 7 || !slices.Equal(got.List, []string{"a", "b"}) {
		t.Errorf("eval: %+v", got)
	}
	p.Eval(`undefined`, &got)
	equal(t, "after undefined", got.N, 7)
	mentions(t, failure(t, p, time.Minute, func() { p.Eval(`(() => { throw new TypeError('odd') })()`, nil) }), "TypeError: odd", srv.URL, "A page", "two")
}

func testWait(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/": `<p id=a hidden>first</p><p id=b>soon gone</p><script>console.log('it runs');
		setTimeout(() => { a.hidden = false; b.remove(); }, 150); setTimeout(() => { a.textContent = 'then\n  second'; window.ready = true; }, 300);
		setTimeout(() => { if (location.hash === '') location.href = '/next' }, 600)</script>`, "/next": `<p id=c>next</p>`})
	p.Go(srv.URL)
	p.Wait("#a")
	p.WaitGone("#b")
	p.WaitText("#a", "then second")
	p.WaitFor(`window.ready`)
	p.Wait("#c") // over a change of pages
	p.Go(srv.URL + "/#stay")
	mentions(t, failure(t, p, 400*time.Millisecond, func() { p.Wait("#missing") }), "#missing", "there is none", "page: "+srv.URL+"/#stay", "title: A page", "console: log: it runs", "text: ")
	mentions(t, failure(t, p, 400*time.Millisecond, func() { p.WaitText("#a", "third") }), "third", "second")
	mentions(t, failure(t, p, 400*time.Millisecond, func() { p.WaitFor(`window.nothing.of`) }), "TypeError")
	mentions(t, failure(t, p, 400*time.Millisecond, func() { p.WaitGone("#a") }), "1 still visible")
	mentions(t, failure(t, p, 400*time.Millisecond, func() { p.Text("#missing") }), "there is none")
}

func testMouse(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/": `<style>#far { margin-top: 3000px } #cover { position: fixed; inset: 0; background: red } #narrow { width: 6em } #tip { display: none } #h:hover + #tip { display: block }</style>
		<button id=h>hover</button><p id=tip>tip</p><p id=narrow>some words <span id=s>and a sentence that is broken</span></p><label>box <input type=checkbox id=box></label>
		<button id=far>far</button><button id=off disabled>off</button><div id=cover></div>
		<script>window.seen = []; for (const kind of ['mousedown', 'mouseup', 'click']) addEventListener(kind, e => seen.push(kind + ' ' + e.target.id + ' ' + e.isTrusted));
		setTimeout(() => cover.remove(), 200)</script>`})
	p.Go(srv.URL)
	p.Click("#far")
	var seen []string
	p.Eval(`seen`, &seen)
	if !slices.Equal(seen, []string{"mousedown far true", "mouseup far true", "click far true"}) {
		t.Errorf("events: %q", seen)
	}
	p.Click("#s")
	p.WaitFor(`seen.at(-1) === 'click s true'`)
	p.Click("#box")
	p.WaitFor(`box.checked`)
	p.Hover("#h")
	p.Wait("#tip")
	mentions(t, failure(t, p, 500*time.Millisecond, func() { p.Click("#off") }), "it is disabled")
	p.Eval(`document.body.insertAdjacentHTML('beforeend', '<div id=cover></div>')`, nil)
	mentions(t, failure(t, p, 500*time.Millisecond, func() { p.Click("#far") }), "covered by", "cover")
}

func testKeyboard(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/": `<form action=/sent><input id=a name=a value=old><textarea id=b></textarea><select id=c><option>one<option value=2>two</select><button>send</button></form>
		<script>window.seen = []; for (const kind of ['keydown', 'input', 'change']) addEventListener(kind, e => seen.push(kind + ' ' + (e.key || e.target.id)));
		window.trusted = true; addEventListener('keydown', e => { trusted = trusted && e.isTrusted; if (e.key === 'k' && e.ctrlKey) window.shortcut = true })</script>`, "/sent": `sent`})
	p.Go(srv.URL)
	p.Type("#a", "er Ä1")
	equal(t, "typed", p.Value("#a"), "older Ä1")
	var seen []string
	p.Eval(`seen.slice(0, 2)`, &seen)
	if !slices.Equal(seen, []string{"keydown e", "input a"}) {
		t.Errorf("events: %q", seen)
	}
	p.Fill("#a", "new +")
	equal(t, "filled", p.Value("#a"), "new +")
	p.Press("Tab")
	p.WaitFor(`document.activeElement === b`)
	p.Type("#b", "two\nlines")
	equal(t, "lines", p.Value("#b"), "two\nlines")
	p.Press("Home")
	p.Press("Shift+End")
	p.Press("Backspace")
	equal(t, "after a line is cut", p.Value("#b"), "two\n")
	p.Fill("#b", "")
	equal(t, "emptied", p.Value("#b"), "")
	p.Press("Shift+Tab")
	p.WaitFor(`document.activeElement === a`)
	p.Press("Control+k")
	p.WaitFor(`shortcut && trusted`)
	p.Choose("#c", "2")
	p.WaitFor(`c.value === '2' && seen.at(-1) === 'change c'`)
	mentions(t, failure(t, p, time.Minute, func() { p.Choose("#c", "3") }), "no such option")
	mentions(t, failure(t, p, time.Minute, func() { p.Press("Any") }), "no such key")
	p.Fill("#a", "x")
	p.Leads(func() { p.Press("Enter") })
	equal(t, "sent", p.URL(), srv.URL+"/sent?a=x")
}

func testConsole(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/": `<script>console.log('plain', 1, null, {a: 1}); console.warn('careful');</script>
<script>
throw new RangeError('too far')</script><script>Promise.reject(new Error('later'))</script><script src=/none.js></script>`})
	p.Go(srv.URL)
	p.WaitFor(`true`)
	all := fmt.Sprint(p.Console())
	mentions(t, all, "log: plain 1 null", "warning: careful", "exception: Uncaught RangeError: too far", "exception: Uncaught (in promise) Error: later", "network:error:", "404", srv.URL+"/:3")
	equal(t, "complaints", len(p.Complaints()), len(p.Console())-1)
}

func testDialogs(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/": `<button onclick="this.textContent = confirm('sure?')">ask</button><script>alert('hello'); window.got = prompt('who?')</script>`,
		"/stay": `<input><script>addEventListener('beforeunload', e => e.preventDefault())</script>`})
	p.Go(srv.URL)
	p.WaitFor(`got === null`)
	p.Click("button")
	p.WaitText("button", "false")
	p.Accept(true)
	p.Click("button")
	p.WaitText("button", "true")
	p.Accept(false)
	want := []Dialog{{"alert", "hello"}, {"prompt", "who?"}, {"confirm", "sure?"}, {"confirm", "sure?"}}
	if got := p.Dialogs(); !slices.Equal(got, want) {
		t.Errorf("dialogs: %v", got)
	}
	p.Go(srv.URL + "/stay")
	p.Type("input", "x")
	p.Go(srv.URL)
	equal(t, "address", p.URL(), srv.URL+"/")
}

func testNever(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/a.never": `<p>half of it`, "/": `whole`})
	begin := time.Now()
	mentions(t, failure(t, p, time.Second, func() { p.Go(srv.URL + "/a.never") }), "/a.never", "wait for load", "half of it", "no answer in time")
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v to give up", took)
	}
	p.Go(srv.URL)
	equal(t, "text afterwards", p.Text("body"), "whole")
}

func testBusy(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/": `<p>busy</p><button onclick="for (;;) {}">loop</button><script>setTimeout(() => { for (;;) {} }, 100)</script>`})
	p.Go(srv.URL)
	time.Sleep(200 * time.Millisecond)
	mentions(t, failure(t, p, time.Second, func() { p.Text("p") }), "no answer", srv.URL)
}

func testCrashedPage(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/": `fine`})
	p.Go(srv.URL)
	mentions(t, failure(t, p, time.Minute, func() { p.Go("chrome://crash") }), "crash")
	mentions(t, failure(t, p, time.Minute, func() { p.Text("body") }), "the page crashed")
	other := p.b.Page(t)
	other.Go(srv.URL)
	equal(t, "another page", other.Text("body"), "fine")
}

// TestCrashedBrowser has the whole browser end in the middle.
func TestCrashedBrowser(t *testing.T) {
	b := Open(t)
	p := b.Page(t)
	srv := serve(t, map[string]string{"/": `fine`})
	p.Go(srv.URL)
	said := failure(t, p, time.Minute, func() {
		if _, err := b.send("", "Browser.crash", nil, nil); err != nil {
			t.Error(err)
		}
		p.Wait("#never")
	})
	mentions(t, said, "the browser went away", "browser: ended", srv.URL)
	mentions(t, failure(t, p, time.Minute, func() { p.Go(srv.URL) }), "the browser went away")
}

// TestNothingIsLeft opens a browser in a test of its own, whose page is busy and never loaded when it ends, and looks for what is left of it.
func TestNothingIsLeft(t *testing.T) {
	var profile string
	t.Run("a test", func(t *testing.T) {
		b := Open(t)
		profile = filepath.Dir(b.stderr.Name())
		p := b.Page(t)
		srv := serve(t, map[string]string{"/a.never": `<script>setTimeout(() => { for (;;) {} }, 10)</script>`})
		_ = failure(t, p, 300*time.Millisecond, func() { p.Go(srv.URL + "/a.never") })
		if runtime.GOOS == "linux" && processes(profile) < 2 {
			t.Error("the browser is not to be seen: this test sees nothing")
		}
	})
	if profile == "" {
		t.Skip("no browser")
	}
	if _, err := os.Stat(profile); !os.IsNotExist(err) {
		t.Errorf("the profile is still there: %v", err)
	}
	for i := 0; processes(profile) > 0; i++ {
		if i == 250 {
			t.Fatalf("%d processes are left", processes(profile))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// processes counts those whose command line names the profile.
func processes(profile string) (n int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		if line, err := os.ReadFile(name); err == nil && strings.Contains(string(line), profile) { // one that ended has none
			n++
		}
	}
	return n
}
