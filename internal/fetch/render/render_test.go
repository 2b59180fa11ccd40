package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

// browser finds the one browser that these tests run; without it they are skipped.
func browser(t *testing.T) string {
	t.Helper()
	t.Parallel()
	if testing.Short() {
		t.Skip("render: skipped with -short")
	}
	path, ok := Find(os.Getenv("MARCHWARDEN_CHROMIUM"), exec.LookPath)
	if !ok {
		t.Skip("render: no chromium on this machine; install one, or set MARCHWARDEN_CHROMIUM")
	}
	return path
}

var errForbidden = marchwarden.Errorf(marchwarden.CodeDenied, "this address is not for pages")

// gate dials the given servers only and notes every try.
type gate struct {
	allow []string

	mu    sync.Mutex
	tries []string
}

func (g *gate) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	g.mu.Lock()
	g.tries = append(g.tries, addr)
	g.mu.Unlock()
	if !slices.Contains(g.allow, addr) {
		return nil, errForbidden
	}
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

func (g *gate) tried() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := slices.Clone(g.tries)
	slices.Sort(out)
	return slices.Compact(out)
}

// page serves one document and lets the caller reach it.
func page(t *testing.T, html string) (*httptest.Server, *gate) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, html)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv, &gate{allow: []string{srv.Listener.Addr().String()}}
}

// leftovers lists live processes whose command line names the profile folder, and what is left in it.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	found = append(found, files...)
	cmdlines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range cmdlines {
		if line, err := os.ReadFile(name); err == nil && strings.Contains(string(line), dir) { // a process that ended has none
			found = append(found, name+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// clean asserts that nothing is left. A killed process is gone when the kernel got round to it, so a moment is allowed.
func clean(t *testing.T, dir string) {
	t.Helper()
	var left []string
	for range 50 {
		if left = leftovers(t, dir); left == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("left behind: %q", left)
}

func TestRenderPageThatFillsItself(t *testing.T) {
	path := browser(t)
	srv, g := page(t, `<!doctype html><title>App</title><div id=a>wait</div><img src="/picture.png"><script>
setTimeout(() => { fetch('/data').then(r => { document.getElementById('a').textContent = 'filled ' + r.status; }); }, 1500);</script>`)
	var mu sync.Mutex
	var asked []string
	handler := srv.Config.Handler
	srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.UserAgent())
		mu.Unlock()
		handler.ServeHTTP(w, r)
	})
	dir := t.TempDir()
	r := New(Config{Chromium: path, Dial: g.dial, TempDir: dir, UserAgent: "marchwarden-test/1", Timeout: time.Minute})
	got, err := r.Render(t.Context(), srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(got.HTML), "filled 404") || got.URL != srv.URL {
		t.Errorf("url %q html %s", got.URL, got.HTML)
	}
	if tries := g.tried(); !slices.Equal(tries, g.allow) {
		t.Errorf("dialled %q, want the page's server alone", tries)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"GET / marchwarden-test/1", "GET /data marchwarden-test/1"}; !slices.Equal(asked, want) && !slices.Equal(slices.DeleteFunc(asked, func(s string) bool {
		return strings.Contains(s, "favicon")
	}), want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
	clean(t, dir)
}

// TestRenderReachesNothingUnguarded is a page that tries every way out it knows. Each try must come to the gate and end there.
func TestRenderReachesNothingUnguarded(t *testing.T) {
	path := browser(t)
	var mu sync.Mutex
	reached := 0
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		reached++
		mu.Unlock()
		_, _ = io.WriteString(w, "secret")
	}))
	defer inside.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = udp.Close() }()
	packets := make(chan int, 1)
	go func() {
		buf := make([]byte, 2048)
		n, _, _ := udp.ReadFrom(buf)
		packets <- n
	}()
	in := inside.Listener.Addr().String()
	_, port, _ := net.SplitHostPort(in)
	srv, g := page(t, fmt.Sprintf(`<!doctype html><link rel=dns-prefetch href="//prefetch.example"><link rel=preconnect href="http://%[1]s"><link rel=prefetch href="http://%[1]s/p">
<iframe src="http://%[1]s/frame"></iframe><iframe src="file:///etc/passwd"></iframe><script src="http://localhost:%[2]s/x.js"></script>
<link rel=stylesheet href="http://[::1]:%[2]s/x.css"><p id=a></p><script>
const out = [];
const note = s => { out.push(s); document.getElementById('a').textContent = out.join(' '); };
for (const u of ['http://169.254.169.254/latest/', 'http://%[1]s/fetch', 'http://localhost:%[2]s/', 'https://%[1]s/', 'http://0x7f.1:%[2]s/', 'file:///etc/passwd', 'ftp://%[1]s/'])
  fetch(u, {mode: 'no-cors'}).then(r => r.text()).then(t => note('GOT' + t)).catch(() => note('no'));
try { const w = new WebSocket('ws://%[1]s/ws'); w.onopen = () => note('GOT'); w.onerror = () => note('no'); } catch (e) { note('no'); }
try { const c = new RTCPeerConnection({iceServers: [{urls: 'stun:%[3]s'}]}); c.createDataChannel('x'); c.createOffer().then(o => c.setLocalDescription(o)); } catch (e) {}
navigator.sendBeacon('http://%[1]s/beacon', 'x');
const a = document.createElement('a'); a.href = 'data:text/plain,x'; a.download = 'x.txt'; document.body.append(a); a.click();
</script>`, in, port, udp.LocalAddr()))
	dir := t.TempDir()
	got, err := New(Config{Chromium: path, Dial: g.dial, TempDir: dir, Timeout: time.Minute}).Render(t.Context(), srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	if html := string(got.HTML); strings.Contains(html, "GOTsecret") || strings.Contains(html, "root:") || !strings.Contains(html, "no no no") {
		t.Errorf("html %s", html)
	}
	mu.Lock()
	if reached > 0 {
		t.Errorf("the server inside was reached %d times", reached)
	}
	mu.Unlock()
	select {
	case n := <-packets:
		t.Errorf("a packet of %d bytes went round the proxy", n)
	default:
	}
	tries := g.tried()
	for _, want := range []string{"169.254.169.254:80", in, "localhost:" + port, "[::1]:" + port} {
		if !slices.Contains(tries, want) {
			t.Errorf("no try at %s came to the gate: %q", want, tries)
		}
	}
	t.Logf("turned away at the gate: %q", tries)
	_ = udp.Close()
	clean(t, dir)
}

func TestRenderFailures(t *testing.T) {
	path := browser(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	_ = closed.Close()
	redirect := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/", http.StatusFound))
	t.Cleanup(redirect.Close) // after the parallel cases
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	tls.StartTLS()
	t.Cleanup(tls.Close)
	huge, _ := page(t, `<!doctype html><body><script>document.body.append('x'.repeat(3 << 20))</script>`)
	g := &gate{allow: []string{nobody, redirect.Listener.Addr().String(), tls.Listener.Addr().String(), huge.Listener.Addr().String()}}
	for _, c := range []struct {
		name, url string
		code      marchwarden.Code
		is        error
	}{
		{"a file", "file:///etc/passwd", marchwarden.CodeInvalid, nil},
		{"a flag", "--version", marchwarden.CodeInvalid, nil},
		{"a password", "http://a:b@example.org/", marchwarden.CodeInvalid, nil},
		{"refused", "http://10.0.0.1/", marchwarden.CodeDenied, errForbidden},
		{"refused tunnel", "https://10.0.0.1/", marchwarden.CodeDenied, errForbidden},
		{"redirect to a refused address", redirect.URL, marchwarden.CodeDenied, errForbidden},
		{"no server there", "http://" + nobody, marchwarden.CodeUnavailable, nil},
		{"unknown certificate", tls.URL, marchwarden.CodeUnavailable, nil},
		{"huge document", huge.URL, marchwarden.CodeMalformed, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if slices.Contains([]string{"refused tunnel", "redirect to a refused address", "no server there", "huge document"}, c.name) && !datatest.Full() {
				t.Skip("starts a browser: set MARCHWARDEN_TEST_FULL=1")
			}
			dir := t.TempDir()
			got, err := New(Config{Chromium: path, Dial: g.dial, TempDir: dir, MaxBytes: 1 << 20, Budget: time.Second, Timeout: time.Minute}).Render(t.Context(), c.url)
			if marchwarden.CodeOf(err) != c.code || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("err %v, html %.200s, dialled %q", err, got.HTML, g.tried())
			}
			clean(t, dir)
		})
	}
}

// TestRenderEndlessPages: a page that computes for ever is given up, one that waits for ever is taken as it stands.
func TestRenderEndlessPages(t *testing.T) {
	path := browser(t)
	busy, g := page(t, `<!doctype html><p>start<script>for (;;) {}</script>`)
	dir := t.TempDir()
	start := time.Now()
	_, err := New(Config{Chromium: path, Dial: g.dial, TempDir: dir, Timeout: 2 * time.Second}).Render(t.Context(), busy.URL)
	if marchwarden.CodeOf(err) != marchwarden.CodeTimeout {
		t.Errorf("err %v", err)
	}
	if spent := time.Since(start); spent > time.Minute {
		t.Errorf("took %v", spent)
	}
	clean(t, dir)

	release := make(chan struct{})
	waits := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			_, _ = io.WriteString(w, `<!doctype html><p>what there is</p><script async src="/never.js"></script>`)
			return
		}
		<-release
	}))
	defer waits.Close()
	defer close(release)
	g = &gate{allow: []string{waits.Listener.Addr().String()}}
	for limit := 5 * time.Second; ; limit *= 3 { // a busy machine needs longer to start the browser
		got, err := New(Config{Chromium: path, Dial: g.dial, TempDir: dir, Timeout: limit}).Render(t.Context(), waits.URL)
		if marchwarden.CodeOf(err) == marchwarden.CodeTimeout && limit < time.Minute {
			continue
		}
		if err != nil || !strings.Contains(string(got.HTML), "what there is") {
			t.Errorf("html %s err %v", got.HTML, err)
		}
		break
	}
	clean(t, dir)
}

func TestRenderCancelled(t *testing.T) {
	path := browser(t)
	srv, g := page(t, `<!doctype html><script>for (;;) {}</script>`)
	dir := t.TempDir()
	r := New(Config{Chromium: path, Dial: g.dial, TempDir: dir})
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 2)
	for range 2 { // the second waits for its turn
		go func() {
			_, err := r.Render(ctx, srv.URL)
			errs <- err
		}()
	}
	for i := 0; len(g.tried()) == 0; i++ {
		if i == 6000 {
			t.Fatal("the page was never asked for")
		}
		time.Sleep(10 * time.Millisecond)
	}
	start := time.Now()
	cancel()
	for range 2 {
		if err := <-errs; marchwarden.CodeOf(err) != marchwarden.CodeCanceled || !errors.Is(err, context.Canceled) {
			t.Errorf("err %v", err)
		}
	}
	if spent := time.Since(start); spent > 5*time.Second {
		t.Errorf("took %v to stop", spent)
	}
	clean(t, dir)
}

func TestRenderWithoutBrowser(t *testing.T) {
	g := &gate{}
	dir := t.TempDir()
	_, err := New(Config{Chromium: filepath.Join(dir, "none"), Dial: g.dial, TempDir: dir}).Render(t.Context(), "http://example.org/")
	if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("err %v", err)
	}
	if left := leftovers(t, dir); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

func TestFind(t *testing.T) {
	have := func(names ...string) func(string) (string, error) {
		return func(name string) (string, error) {
			if slices.Contains(names, name) {
				return "/bin/" + name, nil
			}
			return "", exec.ErrNotFound
		}
	}
	for _, c := range []struct {
		explicit string
		names    []string
		want     string
	}{
		{"", nil, ""}, {"", []string{"chrome"}, "/bin/chrome"}, {"", []string{"google-chrome", "chromium"}, "/bin/chromium"},
		{"mine", []string{"chromium", "mine"}, "/bin/mine"}, {"mine", []string{"chromium"}, ""},
	} {
		if got, ok := Find(c.explicit, have(c.names...)); got != c.want || ok != (c.want != "") {
			t.Errorf("%+v: %q %v", c, got, ok)
		}
	}
}

func TestPrint(t *testing.T) {
	chromium := browser(t)
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer srv.Close()
	pdf, err := Print(t.Context(), chromium, `<!doctype html><title>A report</title><h1>Rye</h1><p>ripens</p><img src="`+srv.URL+`/x.png"><script>document.title="run"</script>`)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) || !bytes.Contains(pdf, []byte("%%EOF")) || len(pdf) < 1000 {
		t.Errorf("%d bytes begin %.20q", len(pdf), pdf)
	}
	if asked.Load() > 0 || bytes.Contains(pdf, []byte("(run)")) {
		t.Error("the page asked for something, or its script ran")
	}
	if _, err := Print(t.Context(), chromium+"-missing", "x"); err == nil {
		t.Error("a browser that is not there prints")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Print(gone, chromium, "x"); marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
		t.Errorf("cancelled: %v", err)
	}
}
