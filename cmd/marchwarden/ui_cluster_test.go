//go:build unix

package main

import (
	"syscall"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/browsertest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// TestUICluster asks a cluster on the page: the run is listed and shown while it goes on there,
// can be stopped, outlives the page, and comes home.
func TestUICluster(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t)
	w := newHTTPWorld(t)
	hub := w.background(t, `hub \S+ at (nats://[0-9.:]+);`, "hub", "--listen", "127.0.0.1:0")
	w.background(t, `worker (\S+) serves`, "worker", "--engine", hub, "--researchers", "web", "--model", "openai/gpt-test")
	home := w.home(t)
	s := w.ui(t, home, "--engine", hub)
	p := s.enter(t, b)

	// It goes on while the page is away.
	held := w.hold(4)
	id := s.ask(t, p, webtest.Startups, "web")
	arrives(t, held)
	p.Wait("#live .journeys")
	p.Go(s.url + "/history?status=running")
	if text := p.Text("main"); p.Count(".entry") != 1 {
		t.Errorf("what goes on in the cluster is not listed: %s", text)
	}
	s.endBy(t, syscall.SIGTERM)
	w.hold(0)
	s = w.ui(t, home, "--engine", hub)
	p = s.enter(t, b)
	p.Go(s.url + "/runs/" + id)
	answered(p)
	w.verified(t, home, id)

	// It is stopped, and what was found by then comes home.
	held = w.hold(4)
	id = s.ask(t, p, "Who lends money to startups?", "web")
	arrives(t, held)
	p.Wait("#live .journeys")
	p.Follow(`form[action$="/cancel"] button`)
	p.WaitText("main", "stopped before its end")
	w.hold(0)
	p.Follow(`form[action$="/resume"] button`)
	p.WaitFor(`document.querySelector('#answer .sentence[data-source]') && !document.querySelector('main').innerText.includes('stopped before its end')`)
	if got := runIn(t, p); got != id {
		t.Errorf("what went on is %s, not %s", got, id)
	}
	eventually(t, "the record has come home with its documents", func() bool {
		out, err := w.spec(home, "verify", id).run(0)
		return err == nil && out.code == exitOK
	})
}
