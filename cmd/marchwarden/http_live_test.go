//go:build unix

package main

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// follower hears of changes of a resource.
type follower struct {
	heard atomic.Int64
	odd   atomic.Int64 // of other resources
	leave func(t *testing.T)
}

// follow subscribes as the era has it, and listens.
func follow(t *testing.T, c *hostClient, uri string) *follower {
	t.Helper()
	f := &follower{}
	ctx, cancel := context.WithCancel(t.Context())
	began := make(chan struct{})
	done := make(chan struct{})
	each := func(note hostNote) {
		switch {
		case note.Method == "notifications/subscriptions/acknowledged":
			close(began)
		case note.Method == "notifications/resources/updated" && note.Params.URI == uri:
			f.heard.Add(1)
		default:
			f.odd.Add(1)
		}
	}
	req, id, err := c.request(ctx, "subscriptions/listen", map[string]any{"notifications": map[string]any{"resourceSubscriptions": []string{uri}}})
	if c.era == eraLegacy {
		id = 0
		req, err = http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
		c.dress(req)
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(done)
		_, _ = c.send(req, id, each) // it ends when it is left
	}()
	f.leave = func(t *testing.T) { cancel(); <-done }
	t.Cleanup(cancel)
	if c.era == eraModern {
		arrives(t, began)
		return f
	}
	if a, err := c.do(t.Context(), "resources/subscribe", map[string]any{"uri": uri}); err != nil || a.fault != nil {
		t.Fatalf("%v, %s", err, a.body)
	}
	f.leave = func(t *testing.T) { // the stream stays open
		t.Helper()
		if a, err := c.do(t.Context(), "resources/unsubscribe", map[string]any{"uri": uri}); err != nil || a.fault != nil {
			t.Fatalf("%v, %s", err, a.body)
		}
	}
	return f
}

// TestLiveTrace follows a run while it goes on: each follower hears of what is written,
// until it leaves; a client that did not ask hears nothing.
func TestLiveTrace(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t)
	home := w.home(t)
	alice, bob := w.token(t, home, "alice"), w.token(t, home, "bob")
	s := w.serve(t, home, servings["web"]...)
	asker := newHost(t, s.url, alice, eraModern)
	asker.tasks = true
	held := w.hold(1)
	id := asker.beginTask(t, webtest.Startups)
	arrives(t, held)
	uri := "marchwarden://trace/" + id

	legacy, modern := follow(t, newHost(t, s.url, alice, eraLegacy), uri), follow(t, newHost(t, s.url, alice, eraModern), uri)
	leaver := follow(t, newHost(t, s.url, alice, eraLegacy), uri)
	leaver.leave(t)
	// Another caller knows the address, and can end nothing by it.
	stranger := newHost(t, s.url, bob, eraLegacy)
	if _, err := stranger.do(t.Context(), "resources/unsubscribe", map[string]any{"uri": uri}); err != nil {
		t.Fatal(err)
	}
	held = w.hold(1)
	arrives(t, held)
	eventually(t, "both hear of what is written", func() bool { return legacy.heard.Load() > 0 && modern.heard.Load() > 0 })
	time.Sleep(time.Second) // all that there was to hear is heard: records are looked at twice a second
	first := []int64{legacy.heard.Load(), modern.heard.Load()}
	legacy.leave(t)
	atLeave := legacy.heard.Load()
	w.hold(0)
	asker.finish(t, id)
	eventually(t, "who stayed hears of the end", func() bool { return modern.heard.Load() > first[1] })
	modern.leave(t)
	if legacy.heard.Load() != atLeave || leaver.heard.Load() != 0 {
		t.Errorf("who had left heard %d and %d times more", legacy.heard.Load()-atLeave, leaver.heard.Load())
	}
	if n := legacy.odd.Load() + modern.odd.Load() + leaver.odd.Load(); n != 0 {
		t.Errorf("%d messages that nobody asked for", n)
	}
	text, err := asker.read(t.Context(), uri)
	if err != nil || !strings.Contains(text, `"action":"complete"`) {
		t.Errorf("%v: the trace reads %.200s", err, text)
	}
	t.Logf("heard while it went on: %v; the one that stayed: %d", first, modern.heard.Load())
	s.endBy(t, syscall.SIGTERM)
}
