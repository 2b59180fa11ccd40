package web

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

var asker = []string{access.ScopeResearch, access.ScopeRead}

// What one has asked is nowhere to be found by another: on no address and in no list.
func TestOthersRuns(t *testing.T) {
	w, people := newTeam(t, nil, map[string][]string{"ann": asker, "bob": asker})
	ann, bob := people["ann"], people["bob"]
	hers, his := w.run("ann", question), w.run("bob", "What is peach pie made of?")
	locals := w.run("", "What gives Deseret Valley its water?")

	_, none := bob.get(path(idOf(1), ""))
	for _, id := range []marchwarden.TraceID{hers, locals} {
		for _, r := range routes {
			if !strings.Contains(r.path, "ID") {
				continue
			}
			at := strings.Replace(r.path, "ID", id.String(), 1)
			if strings.Contains(r.methods, "GET") {
				status, text := bob.get(at)
				if status != 404 || mainOf(text) != mainOf(none) {
					t.Errorf("GET %s: %d, or not as what there is not:\n%s", r.path, status, mainOf(text))
				}
			}
			if strings.Contains(r.methods, "POST") {
				if status, _, _ := bob.post(at, url.Values{"confirmed": {"yes"}}); status != 404 {
					t.Errorf("POST %s: %d", r.path, status)
				}
			}
		}
		_, text := bob.get("/?from=" + id.String())
		lacks(t, text, question, "its water")
	}
	if len(w.actor.removed)+len(w.actor.resumed)+w.checked() > 0 {
		t.Error("something was done to them")
	}
	for _, at := range []string{"/", "/history", "/history?q=Deseret", "/history?status=complete"} {
		_, text := bob.get(at)
		lacks(t, text, hers.String(), locals.String(), question, "its water")
	}
	_, text := bob.get("/history")
	has(t, text, "peach pie", "token:bob")
	if ids := listed(text); len(ids) != 1 || ids[0] != his.String() {
		t.Errorf("his are %v", ids)
	}
	_, text = ann.get("/history")
	if ids := listed(text); len(ids) != 1 || ids[0] != hers.String() {
		t.Errorf("hers are %v", ids)
	}
	if status, text := ann.get(path(hers, "")); status != 200 || !strings.Contains(text, "alfalfa") {
		t.Errorf("her own: %d", status)
	}
	// Only who asked deletes.
	if status, to, _ := ann.post(path(hers, "/delete"), url.Values{"confirmed": {"yes"}}); status != 303 || to != "/history?notice=deleted" || len(w.actor.removed) != 1 {
		t.Errorf("%d %s %v", status, to, w.actor.removed)
	}
}

// A run that goes on is its caller's alone, too, from the first moment.
func TestOthersRunsThatGoOn(t *testing.T) {
	w, people := newTeam(t, nil, map[string][]string{"ann": asker, "bob": asker})
	h := newHeld(w)
	_, to, _ := people["ann"].post("/ask", url.Values{"question": {question}, "researcher": {"files"}})
	for _, begun := range []bool{false, true} {
		if begun {
			close(h.begin)
			<-h.begun
		}
		if status, _ := people["ann"].get(to); status != 200 {
			t.Errorf("hers, begun %t: %d", begun, status)
		}
		if status, _ := people["bob"].get(to); status != 404 {
			t.Errorf("his, begun %t: %d", begun, status)
		}
		if status, _, _ := people["bob"].post(to+"/cancel", nil); status != 404 {
			t.Errorf("he cancels, begun %t: %d", begun, status)
		}
		_, text := people["bob"].get("/")
		lacks(t, text, "At work now", question)
	}
	close(h.end)
	w.ended(mustID(t, to))
}

// Who may only read can do nothing, and is shown no buttons for it.
func TestReaders(t *testing.T) {
	w, people := newTeam(t, nil, map[string][]string{"ann": {access.ScopeRead}, "mon": {access.ScopeRead}})
	id := w.run("ann", question)
	for _, name := range []string{"ann", "mon"} {
		b := people[name]
		for _, r := range routes {
			if strings.Contains(r.methods, "POST") {
				status, _, text := b.post(strings.Replace(r.path, "ID", id.String(), 1), url.Values{"confirmed": {"yes"}, "question": {question}, "researcher": {"files"}})
				if status != 403 {
					t.Errorf("%s: POST %s: %d", name, r.path, status)
				}
				has(t, text, "your token is not good for that", "scope research")
			}
		}
	}
	if len(w.actor.asked)+len(w.actor.resumed)+len(w.actor.removed)+w.checked() > 0 {
		t.Error("something was done")
	}
	status, text := people["ann"].get(path(id, ""))
	if status != 200 {
		t.Errorf("%d", status)
	}
	for _, act := range []string{"/resume", "/rerun", "/delete"} {
		lacks(t, text, `"`+path(id, act)+`"`)
	}
	has(t, text, path(id, "/export/md"))
	_, text = people["ann"].get(path(id, "/drift"))
	lacks(t, text, "Check the sources again")
	_, text = people["ann"].get("/")
	has(t, text, "Your token lets you read, and not ask.")
	if status, _ := people["ann"].get(path(id, "/delete")); status != 403 {
		t.Errorf("%d", status)
	}
	out := w.browser()
	if status, _ := out.get("/"); status != 401 {
		t.Errorf("nobody: %d", status)
	}
}

// Thousands of runs of others do not make the pages slow.
func TestThousandsOfOthersRuns(t *testing.T) {
	w, people := newTeam(t, nil, map[string][]string{"ann": asker})
	runs := 500
	if datatest.Full() {
		runs = 2000
	}
	w.many(runs)
	w.run("ann", question)
	people["ann"].get("/")
	began := time.Now()
	_, text := people["ann"].get("/history")
	if n := len(listed(text)); n != 1 {
		t.Errorf("%d runs", n)
	}
	t.Log(time.Since(began).Round(time.Millisecond))
	if took := time.Since(began); took > 5*time.Second {
		t.Error(fmt.Sprint(took))
	}
}
