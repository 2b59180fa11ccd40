package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// route is an address of the page and what it takes.
type route struct {
	path    string // ID stands for a run
	methods string
}

var routes = []route{
	{"/", "GET, HEAD"}, {"/ask", "POST"}, {"/history", "GET, HEAD"},
	{"/watch", "GET, HEAD"}, {"/watch/ID/remove", "POST"}, {"/runs/ID/watch", "POST"},
	{"/runs/ID", "GET, HEAD"}, {"/runs/ID/panel", "GET, HEAD"}, {"/runs/ID/source/1", "GET, HEAD"}, {"/runs/ID/source/1/page", "GET, HEAD"}, {"/runs/ID/export/md", "GET, HEAD"},
	{"/runs/ID/drift", "GET, HEAD, POST"}, {"/runs/ID/cancel", "POST"}, {"/runs/ID/resume", "POST"}, {"/runs/ID/rerun", "POST"}, {"/runs/ID/delete", "GET, HEAD, POST"},
}

// Every address takes its methods and no others, and says which those are. GET and HEAD of one
// that takes neither find no page.
func TestMethods(t *testing.T) {
	w := newWorld(t, nil)
	id := w.run("", question)
	b := w.local()
	b.post("/nowhere", nil) // has the token
	for _, r := range routes {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"} {
			if strings.Contains(r.methods, method) {
				continue
			}
			resp, _ := b.send(method, strings.Replace(r.path, "ID", id.String(), 1), url.Values{"csrf": {b.csrf}, "confirmed": {"yes"}})
			refused := resp.StatusCode == http.StatusMethodNotAllowed && strings.HasSuffix(resp.Header.Get("Allow"), r.methods)
			if method == "GET" || method == "HEAD" {
				refused = resp.StatusCode == http.StatusNotFound
			}
			if method == "PUT" || method == "PATCH" || method == "DELETE" || method == "BREW" { // the gate may refuse them before: their forms are not read
				refused = refused || resp.StatusCode == http.StatusForbidden
			}
			if !refused {
				t.Errorf("%s %s: %d, allow %q, not %q", method, r.path, resp.StatusCode, resp.Header.Get("Allow"), r.methods)
			}
		}
	}
	if len(w.actor.removed) > 0 {
		t.Error("something was deleted")
	}
	for _, path := range []string{"/", "/history", "/watch", "/runs/" + id.String(), "/runs/" + id.String() + "/drift", "/runs/" + id.String() + "/panel?source=1"} {
		resp, text := b.send("HEAD", path, nil)
		if resp.StatusCode != 200 || text != "" || resp.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("HEAD %s: %d %v", path, resp.StatusCode, resp.Header)
		}
	}
}

// Addresses of runs that there are not are all the same page, whatever they try.
func TestWrongAddresses(t *testing.T) {
	w := newWorld(t, nil)
	id := w.run("", question)
	b := w.local()
	for _, name := range []string{idOf(404).String(), "x", "1", id.String()[:35], id.String() + "0", strings.ToUpper(id.String()) + "%00", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%2e%2e%2f" + id.String(), "%2Fetc%2Fpasswd",
		id.String() + "%2f..", id.String() + ".jsonl", id.String() + "%0a", "%ff%fe", strings.Repeat("a", 8000), "%3Cscript%3Ealert(1)%3C%2Fscript%3E", "{id}", "*"} {
		for _, r := range routes {
			if !strings.Contains(r.path, "ID") {
				continue
			}
			path := strings.Replace(r.path, "ID", name, 1)
			var statuses []int
			if strings.Contains(r.methods, "GET") {
				status, text := b.get(path)
				statuses = append(statuses, status)
				has(t, text, "there is no such run")
				lacks(t, text, w.home, "<script>alert", "passwd", idOf(404).String())
			}
			if strings.Contains(r.methods, "POST") {
				status, _, text := b.post(path, nil)
				statuses = append(statuses, status)
				lacks(t, text, w.home)
			}
			for _, status := range statuses {
				if status != http.StatusNotFound {
					t.Errorf("%s: %d", path[:min(len(path), 80)], status)
				}
			}
		}
	}
	for _, path := range []string{"/nowhere", "/runs", "/runs/", path(id, "/"), path(id, "/nothing"), path(id, "/export/"), path(id, "/source/"), "/static/none.js", "/static/%2e%2e/app.js", "/history/x", "/in2"} {
		status, text := b.get(path)
		if status != 404 && status != 307 && status != 301 {
			t.Errorf("%s: %d", path, status)
		}
		lacks(t, text, w.home)
	}
	resp, _ := b.send("GET", "//evil.example/%2e%2e", nil)
	if to := resp.Header.Get("Location"); strings.HasPrefix(to, "//") || strings.Contains(to, "://") {
		t.Errorf("it leads to %s", to)
	}
}

// A user who is not signed in gets nothing.
func TestStrangers(t *testing.T) {
	w := newWorld(t, nil)
	id := w.run("", question)
	b := w.browser()
	for _, r := range routes {
		path := strings.Replace(r.path, "ID", id.String(), 1)
		for _, method := range strings.Split(r.methods, ", ") {
			resp, text := b.send(method, path, url.Values{})
			if resp.StatusCode != 401 && resp.StatusCode != 403 {
				t.Errorf("%s %s: %d", method, path, resp.StatusCode)
			}
			lacks(t, text, "alfalfa", question, w.home)
		}
	}
	local := w.local()
	for _, r := range routes {
		if strings.Contains(r.methods, "POST") {
			if resp, _ := local.send("POST", strings.Replace(r.path, "ID", id.String(), 1), url.Values{"csrf": {"forged"}, "confirmed": {"yes"}}); resp.StatusCode != 403 {
				t.Errorf("%s without the token of the session: %d", r.path, resp.StatusCode)
			}
		}
	}
}

// Errors of those who act have a status each, and their pages tell no more than they may.
func TestRefusals(t *testing.T) {
	cause := &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "open /srv/secret/store"}
	for _, c := range []struct {
		code   marchwarden.Code
		status int
	}{
		{marchwarden.CodeInvalid, 400}, {marchwarden.CodeNotFound, 404}, {marchwarden.CodeDenied, 403}, {marchwarden.CodeUnavailable, 503}, {marchwarden.CodeTimeout, 503},
		{marchwarden.CodeRateLimited, 503}, {marchwarden.CodeCanceled, 503}, {marchwarden.CodeUnsupported, 409}, {marchwarden.CodeCorrupt, 500}, {marchwarden.CodeInternal, 500}, {"", 500},
	} {
		t.Run(string(c.code), func(t *testing.T) {
			w, people := newTeam(t, nil, map[string][]string{"ann": {access.ScopeResearch, access.ScopeRead}})
			id := w.run("ann", question)
			var err error = &marchwarden.Error{Code: c.code, Message: "it is at /srv/secret/place", Hint: "look at /srv/secret/hint", Err: cause}
			if c.code == "" {
				err = context.Canceled // of another package's making, and with no code of ours
				c.status = 503
			}
			w.actor.refuse, w.tests.err = err, err
			for _, act := range []string{"/resume", "/rerun", "/delete"} {
				status, _, text := people["ann"].post(path(id, act), url.Values{"confirmed": {"yes"}})
				if status != c.status {
					t.Errorf("%s: %d, not %d", act, status, c.status)
				}
				lacks(t, text, "secret", w.home)
				if c.code == marchwarden.CodeNotFound {
					has(t, text, "there is no such run")
					lacks(t, text, "it is at")
				}
			}
			status, text := people["ann"].get(path(id, ""))
			if status != 200 {
				t.Errorf("afterwards: %d %s", status, mainOf(text))
			}
		})
	}
	w := newWorld(t, nil)
	id := w.run("", question)
	w.actor.refuse = &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "it is busy", Hint: "wait", Err: cause}
	_, _, text := w.local().post(path(id, "/resume"), nil)
	has(t, text, "it is busy: open /srv/secret/store", "wait") // it is the local user's own machine
	has(t, w.log.String(), "a page failed")
}

// A notice is one of a few: what an address says is never shown.
func TestNotices(t *testing.T) {
	w := newWorld(t, nil)
	id := w.run("", question)
	b := w.local()
	for notice, words := range notices {
		_, text := b.get(path(id, "?notice="+notice))
		has(t, text, `<p class="notice" role="status">`+words)
	}
	for _, notice := range []string{"<script>alert(1)</script>", "deleted2", "DELETED", " deleted", ""} {
		_, text := b.get("/history?notice=" + url.QueryEscape(notice))
		lacks(t, text, `class="notice"`, "alert(1)", "deleted2")
	}
}
