//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/browsertest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// signIn opens a page of its own for a user with a token.
func (s *uiServed) signIn(t *testing.T, b *browsertest.Browser, token string) *browsertest.Page {
	t.Helper()
	p := b.Page(t)
	p.Patience(patience)
	p.Go(s.url + "/history")
	p.Fill("#token", token)
	p.Follow("main form button")
	p.WaitText("h1", "History") // where they wanted to go
	return p
}

// reply is what a request got.
type reply struct {
	Status int
	Body   string
}

// request asks for a path from within a page, with its cookies, and by POST with its token against forgery.
func request(p *browsertest.Page, method, path, form string) reply {
	var got reply
	p.Eval(fmt.Sprintf(`(async () => {
		const csrf = document.querySelector('input[name=csrf]')?.value ?? '';
		const with_ = {method: %[1]s, redirect: 'manual'};
		if (with_.method === 'POST') { with_.body = new URLSearchParams('csrf=' + encodeURIComponent(csrf) + '&' + %[3]s); }
		const answer = await fetch(%[2]s, with_);
		return {Status: answer.type === 'opaqueredirect' ? 303 : answer.status, Body: await answer.text()};
	})()`, jsString(method), jsString(path), jsString(form)), &got)
	return got
}

// teamRoutes are all ways to a run. Those that change it come last.
var teamRoutes = []struct{ method, path, form string }{
	{"GET", "/runs/ID", ""}, {"GET", "/runs/ID?source=1", ""}, {"GET", "/runs/ID/panel?source=1", ""}, {"GET", "/runs/ID/source/1", ""},
	{"GET", "/runs/ID/export/json", ""}, {"GET", "/runs/ID/export/mwz", ""}, {"GET", "/runs/ID/export/html", ""}, {"GET", "/runs/ID/drift", ""}, {"GET", "/runs/ID/delete", ""},
	{"POST", "/runs/ID/rerun", ""}, {"POST", "/runs/ID/drift", ""}, {"POST", "/runs/ID/resume", ""}, {"POST", "/runs/ID/cancel", ""},
	{"POST", "/runs/ID/delete", "confirmed=yes"},
}

// TestPageTeam has two people use one page. What one of them asked is not there for the other, in the same
// words as what never was, by any way; a token that is taken back ends its session, and one for reading cannot ask.
func TestPageTeam(t *testing.T) {
	wholeForm(t)
	b := browsertest.Open(t)
	w := newHTTPWorld(t)
	home := w.home(t)
	alice, bob, reader := w.token(t, home, "alice"), w.token(t, home, "bob"), w.token(t, home, "reader", "--scope", "read")
	s := w.ui(t, home, append(slices.Clone(uiFlags), "--team")...)
	hers, his := s.signIn(t, b, alice), s.signIn(t, b, bob)
	done := s.ask(t, hers, aboutBoats, "files")
	answered(hers)
	held := w.hold(2)
	going := s.ask(t, hers, "Who repaired the roof of the boathouse?", "files", "web")
	arrives(t, held)
	hers.Wait("#live .journeys")
	before := hers.Text("h1")

	for _, id := range []string{done, going} {
		never := serve.NewTraceID().String()
		for _, route := range teamRoutes {
			ask := func(id string) reply {
				return request(his, route.method, strings.ReplaceAll(route.path, "ID", id), route.form)
			}
			got, none := ask(id), ask(never)
			if got.Status != 404 || none.Status != 404 {
				t.Errorf("%s %s: %d for what is somebody else's, %d for what never was", route.method, route.path, got.Status, none.Status)
			}
			if a, b := strings.ReplaceAll(got.Body, id, "ID"), strings.ReplaceAll(none.Body, never, "ID"); a != b {
				t.Errorf("%s %s: of somebody else's\n%s\nof what never was\n%s", route.method, route.path, a, b)
			}
		}
	}
	for _, path := range []string{"/history", "/history?q=boathouse", "/history?status=running", "/", "/?from=" + done} {
		his.Go(s.url + path)
		his.Wait("main")
		if text := his.Text("main") + his.Title(); strings.Contains(text, "boathouse") || his.Count(".entry") != 0 {
			t.Errorf("%s tells of her run: %s", path, text)
		}
		if path == "/?from="+done && his.Value("#question") != "" {
			t.Errorf("her question is filled in: %q", his.Value("#question"))
		}
	}
	w.hold(0)
	answered(hers)
	if got := hers.Text("h1"); got != before {
		t.Errorf("her page went from %q to %q", before, got)
	}
	hers.Go(s.url + "/history?q=boathouse")
	if n := hers.Count(".entry"); n != 2 {
		t.Errorf("she finds %d of her 2 runs", n)
	}
	for _, route := range teamRoutes {
		if route.method != "GET" {
			break
		}
		if got := request(hers, route.method, strings.ReplaceAll(route.path, "ID", done), route.form); got.Status != 200 {
			t.Errorf("%s: she gets %d", route.path, got.Status)
		}
	}
	t.Run("reading alone", func(t *testing.T) { readsAlone(t, s, s.signIn(t, b, reader), done) })
	t.Run("a token is taken back", func(t *testing.T) {
		p := s.signIn(t, b, bob)
		out, err := w.spec(home, "token", "remove", "bob").run(0)
		if err != nil || out.code != exitOK {
			t.Fatalf("exit code %d, %v: %s", out.code, err, out.stderr)
		}
		eventually(t, "the session ends", func() bool { return request(p, "GET", "/history", "").Status == 401 })
		p.Go(s.url + "/")
		p.Wait("#token")
		if p.Count("#question") != 0 {
			t.Error("the form is still there")
		}
	})
	t.Run("signing out", func(t *testing.T) {
		p := s.signIn(t, b, alice)
		p.Follow(`form[action="/out"] button`)
		p.Go(s.url + "/history")
		p.Wait("#token")
	})
}

// readsAlone holds a user whose token is for reading to that.
func readsAlone(t *testing.T, s *uiServed, p *browsertest.Page, hers string) {
	for _, route := range []struct{ path, form string }{
		{"/ask", "question=Why%3F&researcher=files"}, {"/runs/" + hers + "/resume", ""}, {"/runs/" + hers + "/cancel", ""}, {"/runs/" + hers + "/delete", "confirmed=yes"}, {"/runs/" + hers + "/drift", ""},
	} {
		if got := request(p, "POST", route.path, route.form); got.Status != 403 && got.Status != 404 {
			t.Errorf("POST %s: %d: %s", route.path, got.Status, got.Body)
		}
	}
	if got := request(p, "POST", "/ask", "question=Why%3F&researcher=files"); got.Status != 403 {
		t.Errorf("asking: %d", got.Status)
	}
	p.Go(s.url + "/history")
	p.WaitText("main", "Nothing was asked yet")
}
