// Package browsertest drives a real headless Chromium in tests: it goes to pages, clicks, types and looks, and tells what the page asked for, complained about and painted.
//
// It owns a browser's life in a test: found, started with a profile of its own, and gone with all its children when the test is over, however it ends. Nothing but
// 127.0.0.1 and localhost can be reached from it. It does not know the pages of this program and asserts nothing about them, except that what a test waits for comes.
//
//	b := browsertest.Open(t)
//	p := b.Page(t)
//	p.Go(srv.URL)
//	p.Fill("#question", "why?")
//	p.Follow("button[type=submit]")
//	p.WaitText("main", "because")
//
// What a test asks of a page and cannot have ends the test, with the page's address, title, text and console. So the methods must be called by the goroutine that runs the
// test, as Fatal must. Selectors are those of CSS.
package browsertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/chromium"
)

const (
	// patience is how long a page may take for anything. Machines that test do much else besides.
	patience = 45 * time.Second
	// startPatience is how long the browser may take to answer for the first time.
	startPatience = 90 * time.Second
	// spare is how much is left of a test's time when waiting ends, so that the failure says what was waited for and the browser is cleared away.
	spare = 10 * time.Second
)

// preferences keep the browser from calling its services. Downloads are allowed: each page has a folder for them.
const preferences = `{"download":{"prompt_for_download":false},"profile":{"default_content_setting_values":{"notifications":2,"geolocation":2,"media_stream":2},
"password_manager_enabled":false},"credentials_enable_service":false,"net":{"network_prediction_options":2},"alternate_error_pages":{"enabled":false},
"search":{"suggest_enabled":false},"safebrowsing":{"enabled":false}}`

// params are those of a command.
type params map[string]any

// Browser is one process of Chromium with its children. It is safe for concurrent use: parallel subtests may each have pages of it.
type Browser struct {
	stderr *os.File      // what the browser says for itself
	gone   chan struct{} // closed when it ended
	err    error         // why; read it after that
	ready  chan struct{} // closed when wire is there

	mu      sync.Mutex // guards what is below
	wire    *wire
	pending map[int64]chan message // commands that wait for their answers
	pages   map[string]*Page       // by session, of a page or of what it holds: frames of other sites, workers
	frames  map[string]*Page       // by top frame
}

// Open starts a browser that ends with the test. Without one on this machine, or with -short, the test is skipped; MARCHWARDEN_CHROMIUM names another than Find finds.
func Open(t testing.TB) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("browsertest: skipped with -short")
	}
	path, ok := chromium.Find(os.Getenv("MARCHWARDEN_CHROMIUM"), exec.LookPath)
	if !ok || runtime.GOOS == "windows" {
		t.Skip("browsertest: no chromium on this machine; install one, or set MARCHWARDEN_CHROMIUM")
	}
	profile, scratch, err := makeProfile(preferences)
	t.Cleanup(func() { // runs after the browser ended: cleanups run last first
		if err := errors.Join(removeProfile(profile), removeProfile(scratch)); err != nil {
			t.Errorf("browsertest: %v", err)
		}
	})
	if err != nil {
		t.Fatalf("browsertest: make profile: %v", err)
	}
	stderr, err := os.Create(filepath.Join(profile, "stderr"))
	if err != nil {
		t.Fatalf("browsertest: %v", err)
	}
	b := &Browser{stderr: stderr, gone: make(chan struct{}), ready: make(chan struct{}), pending: make(map[int64]chan message),
		pages: make(map[string]*Page), frames: make(map[string]*Page)}
	ctx, kill := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.err = run(ctx, program{Path: path, Args: arguments(profile), Env: chromium.Environment(profile, scratch), Stderr: stderr}, b.listen)
		close(b.gone)
	}()
	t.Cleanup(func() {
		kill()
		<-ended
		_ = stderr.Close() // its words were read, or are not wanted
	})
	var version struct {
		Product string `json:"product"`
	}
	if err := b.call("", "Browser.getVersion", nil, &version, until(t, startPatience)); err != nil {
		t.Fatalf("browsertest: %s did not start: %v\n%s", path, err, b.words())
	}
	return b
}

// arguments let the browser reach this machine alone. Names and addresses of others are not found.
func arguments(profile string) []string {
	args := append(chromium.Flags(profile), "--remote-debugging-pipe", "--no-startup-window")
	for i, a := range args {
		if strings.HasPrefix(a, "--disable-features=") { // a flag counts once; a page that is gone back to is loaded again
			args[i] = a + ",BackForwardCache"
		}
	}
	return append(args, "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost", "--hide-scrollbars", "--force-color-profile=srgb",
		"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding", "--disable-ipc-flooding-protection",
		"--font-render-hinting=none", "--window-size=1280,800")
}

// listen takes what the browser says until it ends.
func (b *Browser) listen(w *wire) error {
	b.mu.Lock()
	b.wire = w
	b.mu.Unlock()
	close(b.ready)
	for m := range w.In() {
		if m.ID == 0 {
			b.event(m)
			continue
		}
		b.mu.Lock()
		answer := b.pending[m.ID]
		delete(b.pending, m.ID)
		b.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
	return w.Err()
}

// send writes a command. Its answer goes to the channel, or nowhere when that is nil.
func (b *Browser) send(session, method string, with params, answer chan message) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wire == nil {
		return 0, errGone
	}
	id, err := b.wire.Send(session, method, with)
	if err == nil && answer != nil {
		b.pending[id] = answer
	}
	return id, err
}

var errLate = errors.New("no answer in time")

// call sends a command and waits for its answer.
func (b *Browser) call(session, method string, with params, result any, deadline time.Time) error {
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	select {
	case <-b.ready:
	case <-b.gone:
		return b.ended()
	case <-late.C:
		return fmt.Errorf("%s: %w", method, errLate)
	}
	answer := make(chan message, 1)
	id, err := b.send(session, method, with, answer)
	if errors.Is(err, errGone) {
		<-b.gone // it says why
		return b.ended()
	}
	if err != nil {
		return err
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return fmt.Errorf("%s: %w", method, m.Error)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-b.gone:
		return b.ended()
	case <-late.C:
		b.mu.Lock()
		delete(b.pending, id)
		b.mu.Unlock()
		return fmt.Errorf("%s: %w", method, errLate)
	}
}

// ended says how the browser did, which it has.
func (b *Browser) ended() error {
	return fmt.Errorf("%w: %w", errGone, b.err)
}

// words are the last that the browser said for itself.
func (b *Browser) words() string {
	const most = 2000
	text, err := os.ReadFile(b.stderr.Name())
	if err != nil {
		return ""
	}
	return string(bytes.ToValidUTF8(text[max(0, len(text)-most):], nil))
}

// until is when waiting ends: after d, or in time before the whole test does.
func until(t testing.TB, d time.Duration) time.Time {
	at := time.Now().Add(d)
	if limited, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := limited.Deadline(); ok && end.Add(-spare).Before(at) {
			return end.Add(-spare)
		}
	}
	return at
}
