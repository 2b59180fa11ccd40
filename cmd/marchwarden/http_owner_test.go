//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// channel is a way to ask for something by its id.
type channel struct {
	name  string
	eras  []string
	tasks bool
	ask   func(id string) (method string, params map[string]any)
	// hex says that the id is the hash of a document.
	hex bool
	// ends says that it ends a run, if it is allowed.
	ends bool
}

func reading(prefix string) func(string) (string, map[string]any) {
	return func(id string) (string, map[string]any) { return "resources/read", map[string]any{"uri": prefix + id} }
}

func byTask(method string) func(string) (string, map[string]any) {
	return func(id string) (string, map[string]any) {
		return method, map[string]any{"taskId": id, "inputResponses": map[string]any{}}
	}
}

func byResume(id string) (string, map[string]any) {
	return "tools/call", map[string]any{"name": "research", "arguments": map[string]any{"resume": id}}
}

// channels are all ways in.
var channels = []channel{
	{name: "trace", eras: bothEras, ask: reading("marchwarden://trace/")},
	{name: "result", eras: bothEras, ask: reading("marchwarden://result/")},
	{name: "evidence", eras: bothEras, ask: reading("marchwarden://evidence/sha256/"), hex: true},
	{name: "subscribe", eras: []string{eraLegacy}, ask: func(id string) (string, map[string]any) {
		return "resources/subscribe", map[string]any{"uri": "marchwarden://trace/" + id}
	}},
	{name: "listen", eras: []string{eraModern}, ask: func(id string) (string, map[string]any) {
		return "subscriptions/listen", map[string]any{"notifications": map[string]any{"resourceSubscriptions": []string{"marchwarden://trace/" + id}}}
	}},
	{name: "tasks/get", eras: []string{eraModern}, tasks: true, ask: byTask("tasks/get")},
	{name: "tasks/update", eras: []string{eraModern}, tasks: true, ask: byTask("tasks/update")},
	{name: "resume", eras: bothEras, ask: byResume},
	{name: "resume as a task", eras: bothEras, tasks: true, ask: byResume},
	{name: "tasks/cancel", eras: []string{eraModern}, tasks: true, ask: byTask("tasks/cancel"), ends: true},
}

// try asks by a channel. One that listens is left as soon as it is heard.
func (ch channel) try(t *testing.T, c *hostClient, id string) *hostAnswer {
	t.Helper()
	method, params := ch.ask(id)
	c.tasks = ch.tasks
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, n, err := c.request(ctx, method, params)
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.send(req, n, func(note hostNote) {
		if note.Method == "notifications/subscriptions/acknowledged" {
			cancel()
		}
	})
	if err != nil && ctx.Err() == nil {
		t.Fatalf("%s of %.80q: %v", ch.name, id, err)
	}
	return a
}

// allowed reports whether a channel gave something.
func (a *hostAnswer) allowed() bool {
	var res toolResult
	if a.fault != nil || a.status != 200 || (a.result == nil && len(a.notes) == 0) {
		return false
	}
	return a.result == nil || json.Unmarshal(a.result, &res) == nil && !res.IsError
}

var (
	eventID   = regexp.MustCompile(`(?m)^id: .*$`)
	messageID = regexp.MustCompile(`"id":\d+`)
)

// shape is all that an answer says, but for the id that was asked for and the numbers of
// messages.
func (a *hostAnswer) shape(id string) string {
	header := a.header.Clone()
	header.Del("Date")
	body := messageID.ReplaceAllString(eventID.ReplaceAllString(a.body, "id:"), `"id":N`)
	return strings.ReplaceAll(fmt.Sprint(a.status, header, body), id, "THE ID")
}

// strangers checks that only the owner gets anything by an id, and that others are told the same as
// of an id that never was.
func strangers(t *testing.T, url, token, kind, id, hash string) (tried int) {
	t.Helper()
	for _, era := range bothEras {
		c := newHost(t, url, token, era)
		for _, ch := range channels {
			theirs, never := id, serve.NewTraceID().String()
			if ch.hex {
				theirs, never = hash, strings.Repeat("0f", 32)
			}
			if theirs == "" || !slices.Contains(ch.eras, era) {
				continue
			}
			tried++
			got, none := ch.try(t, c, theirs), ch.try(t, c, never)
			if a, b := got.shape(theirs), none.shape(never); a != b {
				t.Errorf("%s %s, %s: of somebody else's\n%s\nof what never was\n%s", kind, ch.name, era, a, b)
			}
			tool := strings.HasPrefix(ch.name, "resume")
			if got.allowed() || (!tool && (got.fault == nil || got.fault.Code != -32602)) || (tool && !strings.Contains(string(got.result), "not_found")) {
				t.Errorf("%s %s, %s: not refused as it should be: %s", kind, ch.name, era, got.body)
			}
		}
	}
	return tried
}

// TestOthersSeeNothing has a caller ask, and another one, with a token of their own, try
// to get at it by every way there is: while it goes on and when it has ended.
func TestOthersSeeNothing(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t)
	issuer := newHTTPIssuer(t)
	home := w.home(t)
	alice, bob := w.token(t, home, "alice"), w.token(t, home, "bob")
	s := w.serve(t, home, append(slices.Clone(servings["pi"]), "--rate", "10000", "--oauth-issuer", issuer.URL, "--oauth-audience", httpAudience)...)
	for owner, others := range map[string][]string{
		alice: {bob, issuer.token(t, map[string]any{"sub": "alice"}), issuer.token(t, map[string]any{"sub": "token:alice"})},
		issuer.token(t, map[string]any{"sub": "carol"}): {bob, issuer.token(t, map[string]any{"sub": "bob"}), issuer.token(t, map[string]any{"sub": "Carol"})},
	} {
		held := w.hold(4)
		c := newHost(t, s.url, owner, eraModern)
		c.tasks = true
		id := c.beginTask(t, webtest.Startups)
		arrives(t, held)
		tried := 0
		for _, other := range others {
			tried += strangers(t, s.url, other, "going on", id, "")
		}
		if task := c.task(t, id); task.Status != "working" {
			t.Errorf("somebody else has ended it: %+v", task)
		}
		w.hold(0)
		res := c.finish(t, id)
		hash := strings.TrimPrefix(res.Citations[0].ContentHash, "sha256:")
		for _, other := range others {
			tried += strangers(t, s.url, other, "ended", id, hash)
		}
		open := w.ownerGets(t, s, owner, id, hash, res)
		t.Logf("%d tries by %d others, all as of what never was; the owner got %d of %d", tried, len(others), open, open)
	}
	s.endBy(t, syscall.SIGTERM)
}

// ownerGets checks that every way is open to the owner, and that parts of the
// investigation are too.
func (w *httpWorld) ownerGets(t *testing.T, s *served, token, id, hash string, res *marchwarden.Result) (open int) {
	t.Helper()
	for _, era := range bothEras {
		c := newHost(t, s.url, token, era)
		for _, ch := range channels {
			if !slices.Contains(ch.eras, era) || (ch.ends && era != eraModern) { // which is the last
				continue
			}
			at := id
			if ch.hex {
				at = hash
			}
			if a := ch.try(t, c, at); !a.allowed() {
				t.Errorf("%s, %s: the owner is refused: %d %s", ch.name, era, a.status, a.body)
			}
			open++
		}
		c.tasks = false
		for _, rihla := range res.Rihlas {
			if _, err := c.read(t.Context(), "marchwarden://trace/"+rihla.TraceID.String()); err != nil {
				t.Errorf("a part of the investigation: %v", err)
			}
		}
	}
	return open
}
