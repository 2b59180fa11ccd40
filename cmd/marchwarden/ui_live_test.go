//go:build unix

package main

import (
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/browsertest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// TestPageLive holds a run up in the middle. Its page survives a reload, a second tab sees the same, and
// both survive that the server is killed and started anew: the run goes on, and so do they.
func TestPageLive(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t)
	w := newHTTPWorld(t)
	home := w.home(t)
	flags := append(slices.Clone(uiFlags), "--max-runs", "1")
	s := w.ui(t, home, flags...)
	p := s.enter(t, b)
	outer, first := t, p // whose end ends the second server, and whose cookies the rest has
	t.Run("restart", func(t *testing.T) {
		p := s.like(t, b, p)
		held := w.hold(4)
		id := s.ask(t, p, webtest.Startups, "files", "web")
		arrives(t, held)
		p.WaitText("#live .journeys", "web")
		p.Wait("#live .journeys")
		p.Reload()
		if got := runIn(t, p); got != id {
			t.Errorf("after loading it again it is the page of %s, not %s", got, id)
		}
		p.WaitText("#live .journeys", "web")
		other := p.Tab()
		other.Patience(patience)
		other.Go(s.url + "/runs/" + id)
		other.WaitText("#live .journeys", "web")
		queued := s.like(t, b, p)
		next := s.ask(t, queued, aboutBoats, "files") // waits for its turn, and has no trace
		pages := []*browsertest.Page{p, other}
		for _, p := range pages {
			p.Eval(`void (window.stays = true)`, nil) // a page that is loaded again has forgotten it
		}
		at := s.address(t)
		s.endBy(t, syscall.SIGKILL)
		for _, p := range pages {
			p.WaitText("#connection", "The connection is lost")
		}
		held = w.hold(1) // lets go of what nobody waits for
		s = w.uiAt(outer, home, at, flags...)
		arrives(t, held)
		in := p.Tab() // sessions ended with the first server
		in.Patience(patience)
		in.Go(s.link)
		in.Wait("#question")
		for _, c := range in.Cookies() {
			queued.SetCookie(s.url, c.Name, c.Value)
			first.SetCookie(s.url, c.Name, c.Value)
		}
		for _, p := range pages {
			p.WaitFor(`document.querySelector('#connection').textContent === ''`)
			p.WaitText("#live .journeys", "web")
			p.WaitFor(`window.stays === true`)
		}
		w.hold(0)
		for _, p := range pages {
			answered(p)
			if got := runIn(t, p); got != id {
				t.Errorf("the answer is that of %s, not %s", got, id)
			}
		}
		answered(queued)
		if got := exported(t, queued); runIn(t, queued) != next || len(got.Rihlas) != 1 || got.Rihlas[0].Researcher != "files" {
			t.Errorf("the question that waited is %s, not %s, and asked %+v", runIn(t, queued), next, got.Rihlas)
		}
		if a, b := p.Text("#answer"), other.Text("#answer"); a != b {
			t.Errorf("one tab shows\n%s\nthe other\n%s", a, b)
		}
	})
	t.Run("stop what a terminal asks", func(t *testing.T) {
		p := s.like(t, b, p)
		held := w.hold(4)
		spec := w.spec(home, "ask", "--researchers", "files,web", "--library", "notes", "--model", "openai/gpt-test", webtest.Startups+" Where?")
		asking := launch(t, spec, exec.Command(spec.program, spec.args...))
		arrives(t, held)
		p.Go(s.url + "/history?status=running")
		p.Follow(".entries a")
		p.Follow(`form[action$="/cancel"] button`)
		p.WaitText(".notice", "told to stop")
		w.hold(0)
		<-asking.ended
		if code := asking.cmd.ProcessState.ExitCode(); code != exitInterrupted {
			t.Errorf("exit code %d: %s", code, asking.log)
		}
		p.WaitText("main", "stopped before its end")
	})
	t.Run("cancel and resume", func(t *testing.T) {
		p := s.like(t, b, p)
		held := w.hold(4)
		id := s.ask(t, p, webtest.Startups+" And who pays?", "files", "web")
		arrives(t, held)
		p.Wait("#live .journeys")
		p.Follow(`form[action$="/cancel"] button`)
		p.WaitText(".notice", "told to stop")
		p.WaitText("main", "stopped before its end")
		if n := p.Count("#live"); n != 0 {
			t.Error("the page still shows it as going on")
		}
		p.Go(s.url + "/history?status=interrupted")
		p.WaitText(".entries", "And who pays?")
		w.hold(0)
		p.Go(s.url + "/runs/" + id)
		p.Follow(`form[action$="/resume"] button`)
		p.WaitFor(`document.querySelector('#answer .sentence[data-source]') && !document.querySelector('main').innerText.includes('stopped before its end')`)
		if got := runIn(t, p); got != id {
			t.Errorf("what went on is %s, not %s", got, id)
		}
		res := exported(t, p)
		if len(res.Citations) == 0 || len(res.Rihlas) == 0 {
			t.Errorf("resumed, it has %d citations of %d rihlas", len(res.Citations), len(res.Rihlas))
		}
		s.calm(t, "cancel and resume", p)
	})
}
