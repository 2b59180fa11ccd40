package browsertest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Page is one tab. Unless it is a Tab of another, it shares no cookie, cache or storage with any.
type Page struct {
	t        testing.TB
	b        *Browser
	session  string
	frame    string // the top one, which is the target's name too
	context  string // whose cookies it has
	folder   string // of its downloads
	patience time.Duration

	scriptless bool // its documents may not run their scripts

	mu       sync.Mutex    // guards what is below
	changed  chan struct{} // closed and replaced at every event
	crashed  bool
	accept   bool            // what dialogs are answered
	url      string          // where the top frame is, as far as events told
	loader   string          // of the document in the top frame
	commits  int             // documents that the top frame had
	seen     map[string]bool // their loaders
	loaded   map[string]bool // those that finished
	console  []Message
	dialogs  []Dialog
	requests []*Request
	byID     map[string]*Request // the last of each ID: a redirect keeps it
	files    map[string]*File    // by the browser's name for a download
	order    []string            // those names, oldest first
}

// Page opens a tab that closes with the test, with cookies, cache and storage of its own.
func (b *Browser) Page(t testing.TB) *Page {
	t.Helper()
	var made struct {
		ID string `json:"browserContextId"`
	}
	if err := b.call("", "Target.createBrowserContext", nil, &made, until(t, patience)); err != nil {
		t.Fatalf("browsertest: %v\n%s", err, b.words())
	}
	t.Cleanup(func() { // a browser that is gone has none
		b.forget(made.ID)
		_ = b.call("", "Target.disposeBrowserContext", params{"browserContextId": made.ID}, nil, time.Now().Add(5*time.Second))
	})
	return b.open(t, made.ID, t.TempDir())
}

// forget lets go of the pages with these cookies.
func (b *Browser) forget(context string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, all := range []map[string]*Page{b.pages, b.frames} {
		maps.DeleteFunc(all, func(_ string, p *Page) bool { return p.context == context })
	}
}

// Tab opens another tab with the same cookies and storage.
func (p *Page) Tab() *Page {
	p.t.Helper()
	return p.b.open(p.t, p.context, p.folder)
}

func (b *Browser) open(t testing.TB, context, folder string) *Page {
	t.Helper()
	p := &Page{t: t, b: b, context: context, folder: folder, patience: patience, changed: make(chan struct{}), url: "about:blank",
		seen: make(map[string]bool), loaded: make(map[string]bool), byID: make(map[string]*Request), files: make(map[string]*File)}
	if err := b.attach(p, until(t, patience)); err != nil {
		t.Fatalf("browsertest: open a page: %v\n%s", err, b.words())
	}
	return p
}

// attach makes the tab and has all that is told about it told to p.
func (b *Browser) attach(p *Page, deadline time.Time) error {
	var target struct {
		ID string `json:"targetId"`
	}
	var attached struct {
		ID string `json:"sessionId"`
	}
	if err := b.call("", "Browser.setDownloadBehavior", params{"behavior": "allowAndName", "downloadPath": p.folder, "browserContextId": p.context, "eventsEnabled": true}, nil, deadline); err != nil {
		return err
	}
	if err := b.call("", "Target.createTarget", params{"url": "about:blank", "browserContextId": p.context}, &target, deadline); err != nil {
		return err
	}
	if err := b.call("", "Target.attachToTarget", params{"targetId": target.ID, "flatten": true}, &attached, deadline); err != nil {
		return err
	}
	p.frame, p.session = target.ID, attached.ID
	b.mu.Lock()
	b.pages[p.session], b.frames[p.frame] = p, p
	b.mu.Unlock()
	for _, c := range []struct {
		method string
		with   params
	}{
		{"Target.setAutoAttach", params{"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true}}, // what the page holds and asks for by itself
		{"Inspector.enable", nil}, {"Network.enable", nil}, {"Runtime.enable", nil}, {"Log.enable", nil}, {"Page.enable", nil},
		{"Page.setLifecycleEventsEnabled", params{"enabled": true}},
		{"Emulation.setFocusEmulationEnabled", params{"enabled": true}},
	} {
		if err := b.call(p.session, c.method, c.with, nil, deadline); err != nil {
			return err
		}
	}
	return nil
}

// Patience sets how long the page may take for anything, from now on.
func (p *Page) Patience(d time.Duration) { p.patience = d }

// call sends a command to the page.
func (p *Page) call(method string, with params, result any) error {
	return p.b.call(p.session, method, with, result, until(p.t, p.patience))
}

// must is call for what cannot fail on a page that is there. What leads to another page,
// and has no result, may be answered by the leaving.
func (p *Page) must(method string, with params, result any) {
	p.t.Helper()
	if err := p.call(method, with, result); err != nil && (result != nil || !left(err)) {
		p.fail("%v", err)
	}
}

// left reports that the page went elsewhere before it answered.
func left(err error) bool {
	var said *fault
	return errors.As(err, &said) && (strings.Contains(err.Error(), "navigated or closed") || strings.Contains(err.Error(), "context was destroyed"))
}

var errCrashed = errors.New("the page crashed")

// await returns when done says so, which is asked at every event of the page, with p.mu held.
func (p *Page) await(done func() bool) error {
	late := time.NewTimer(time.Until(until(p.t, p.patience)))
	defer late.Stop()
	for {
		p.mu.Lock()
		ok, crashed, changed := done(), p.crashed, p.changed
		p.mu.Unlock()
		switch {
		case ok:
			return nil
		case crashed:
			return errCrashed
		}
		select {
		case <-changed:
		case <-p.b.gone:
			return p.b.ended()
		case <-late.C:
			return errLate
		}
	}
}

// fail ends the test with what is known about the page.
func (p *Page) fail(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("browsertest: %s\n%s", fmt.Sprintf(format, args...), p.State())
}

// State describes the page for a failure: its address, title, text (clipped), console, dialogs, and the requests that failed or have no answer yet.
func (p *Page) State() string {
	var now struct{ URL, Title, Text string }
	const look = `({URL: document.URL, Title: document.title, Text: document.body ? document.body.innerText.slice(0, 3000) : ''})`
	err := p.evaluate(look, &now, time.Now().Add(3*time.Second))
	p.mu.Lock()
	defer p.mu.Unlock()
	var s strings.Builder
	if err != nil {
		fmt.Fprintf(&s, "page: %s (it cannot be looked at: %v)\n", p.url, err)
	} else {
		fmt.Fprintf(&s, "page: %s\ntitle: %s\ntext: %s\n", now.URL, now.Title, clip(now.Text, 1500))
	}
	for _, m := range p.console[max(0, len(p.console)-20):] {
		fmt.Fprintf(&s, "console: %s\n", clip(m.String(), 500))
	}
	for _, d := range p.dialogs {
		fmt.Fprintf(&s, "dialog: %s: %s\n", d.Kind, clip(d.Text, 200))
	}
	troubled := slices.DeleteFunc(slices.Clone(p.requests), func(r *Request) bool { return r.Done && r.Failed == "" && r.Status < 400 })
	for _, r := range troubled[max(0, len(troubled)-20):] {
		fmt.Fprintf(&s, "request: %s\n", clip(r.String(), 300))
	}
	select {
	case <-p.b.gone:
		fmt.Fprintf(&s, "browser: ended: %v\n%s\n", p.b.err, p.b.words())
	default:
	}
	return s.String()
}

// clip shortens a text to about n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + " […]"
}
