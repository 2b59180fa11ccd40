//go:build unix

package main

import (
	"fmt"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/browsertest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// uiFlags are how the page of most tests is served.
var uiFlags = []string{"--library", "notes", "--model", "openai/gpt-test"}

// marked is what the panel shows of a source.
type marked struct {
	Text   string // that is marked
	Seen   bool   // the mark is in view, in its box and on the screen
	Number string // as the panel's head has it
}

// lookAtMark reads the panel when it shows a source.
const lookAtMark = `(() => {
	const mark = document.querySelector('#source.open #excerpt'), head = document.querySelector('#source .kind');
	if (!mark) return null;
	const m = mark.getBoundingClientRect(), box = (mark.closest('.stored') || mark).getBoundingClientRect();
	const within = (low, high) => m.top >= low - 1 && Math.min(m.bottom, m.top + 20) <= high + 1;
	return {Text: mark.textContent, Seen: within(box.top, box.bottom) && within(0, innerHeight), Number: head.textContent.replace(/\s+/g, ' ').trim()};
})()`

// showsSource waits until the panel shows a source, and holds what it marks to the citation.
func showsSource(t *testing.T, p *browsertest.Page, by string, n int, c marchwarden.Citation) {
	t.Helper()
	p.WaitFor(fmt.Sprintf(`document.querySelector('#source.open .kind') && document.querySelector('#source .kind').textContent.includes('Source %d of')`, n))
	var got marked
	p.Eval(lookAtMark, &got)
	if got.Text != c.RawExcerpt {
		t.Errorf("by %s, source %d: marked is\n%q\nthe excerpt is\n%q", by, n, got.Text, c.RawExcerpt)
	}
	if !got.Seen {
		t.Errorf("by %s, source %d: the mark is not in view", by, n)
	}
}

// TestPageAnswer asks on the page, watches, and holds what is marked in the panel of every
// citation to its excerpt: by mouse, by keyboard alone, and by addresses alone, without a script.
func TestPageAnswer(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t)
	w := newHTTPWorld(t)
	s := w.ui(t, w.home(t), uiFlags...)
	p := s.enter(t, b)
	held := w.hold(3)
	id := s.ask(t, p, webtest.Startups, "files", "web")
	arrives(t, held)
	p.Wait("#live .journeys")
	p.WaitText("#live .journeys", "web")
	p.WaitText("#live .journeys", "files")
	var shift float64
	if p.Eval(moved, &shift); shift > 0.01 {
		t.Errorf("%.3f of the page moved while it was watched", shift)
	}
	w.hold(0)
	answered(p)
	if got := runIn(t, p); got != id {
		t.Fatalf("the answer of %s came for %s", got, id)
	}
	res := exported(t, p)
	if len(res.Citations) < 3 {
		t.Fatalf("only %d citations", len(res.Citations))
	}
	for _, part := range []struct {
		name string
		try  func(*testing.T, *uiServed, *browsertest.Page, string, *marchwarden.Result)
	}{{"mouse", byMouse}, {"keyboard", byKeyboard}, {"asking by keyboard", askByKeyboard}, {"without script", withoutScript}} {
		t.Run(part.name, func(t *testing.T) {
			if part.name == "keyboard" && !longTests() {
				t.Skip("set MARCHWARDEN_TEST_FULL=1")
			}
			p := s.like(t, b, p)
			p.Go(s.url + "/runs/" + id)
			part.try(t, s, p, id, res)
			s.calm(t, part.name, p)
		})
	}
	s.calm(t, "the page", p)
}

func byMouse(t *testing.T, _ *uiServed, p *browsertest.Page, _ string, res *marchwarden.Result) {
	var first []int // the source that each sentence leads to
	p.Eval(`[...document.querySelectorAll('#answer .sentence[data-source]')].map(s => Number((s.querySelector('a.cite') || s).dataset.source))`, &first)
	if len(first) < 2 {
		t.Fatalf("%d sentences", len(first))
	}
	for i, n := range first[:sample(len(first))] {
		p.Eval(fmt.Sprintf(`void document.querySelectorAll('#answer .sentence[data-source]').forEach((s, i) => s.toggleAttribute('data-next', i === %d))`, i), nil)
		p.Click("#answer .sentence[data-next]")
		showsSource(t, p, "a click on a sentence", n, res.Citations[n-1])
	}
	cited := res.Citations[:sample(len(res.Citations))]
	for i, c := range cited {
		p.Click(fmt.Sprintf(`#sources a[data-source="%d"]`, i+1))
		showsSource(t, p, "the list of sources", i+1, c)
		if p.Count(fmt.Sprintf(`#answer a.cite[data-source="%d"]`, i+1)) > 0 {
			p.Click(`#source a.close`)
			p.WaitGone("#source.open")
			p.Click(fmt.Sprintf(`#answer a.cite[data-source="%d"]`, i+1))
			showsSource(t, p, "a number behind a sentence", i+1, c)
		}
	}
	p.Eval(`history.back()`, nil) // the source before
	p.WaitFor(fmt.Sprintf(`!document.querySelector('#source.open .kind')?.textContent.includes('Source %d of')`, len(cited)))
	p.Click(fmt.Sprintf(`#sources a[data-source="%d"]`, 1))
	showsSource(t, p, "the list of sources", 1, res.Citations[0])
	p.Follow(`#source a[href*="/source/1"]`)
	var texts []string
	p.Eval(`[...document.querySelectorAll('.stored mark')].map(m => m.textContent)`, &texts)
	if len(texts) == 0 || !contains(texts, res.Citations[0].RawExcerpt) {
		t.Errorf("the whole text marks %q, not %q", texts, res.Citations[0].RawExcerpt)
	}
	p.Back()
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// focused describes where the focus is.
const focused = `(e => e && (e.id || (e.dataset && e.dataset.source && e.className + ' ' + e.dataset.source) || e.tagName))(document.activeElement)`

func focusOf(p *browsertest.Page) (at string) {
	p.Eval(focused, &at)
	return at
}

// tabTo presses Tab until a selector has the focus.
func tabTo(t *testing.T, p *browsertest.Page, selector string) {
	t.Helper()
	for range 200 {
		var there bool
		p.Eval(fmt.Sprintf(`document.activeElement && document.activeElement.matches(%s)`, jsString(selector)), &there)
		if there {
			return
		}
		p.Press("Tab")
	}
	t.Fatalf("Tab does not lead to %s:\n%s", selector, p.State())
}

func byKeyboard(t *testing.T, _ *uiServed, p *browsertest.Page, _ string, res *marchwarden.Result) {
	p.Wait(".keys") // which says how
	var ways []int
	p.Eval(`[...document.querySelectorAll('#answer .sentence[data-source]')].map(s => Number((s.querySelector('a.cite') || s).dataset.source))`, &ways)
	for _, n := range ways {
		p.Press("j")
		p.Press("Enter")
		showsSource(t, p, "j and Enter", n, res.Citations[n-1])
		p.Press("Escape")
		p.WaitGone("#source.open")
		p.WaitFor(fmt.Sprintf(`document.activeElement.dataset.source === "%d"`, n)) // the focus is where it was
	}
	if len(ways) > 1 {
		p.Press("k")
		p.Press("Enter")
		n := ways[len(ways)-2]
		showsSource(t, p, "k and Enter", n, res.Citations[n-1])
		p.Press("Escape")
		p.WaitGone("#source.open")
	}
	p.Reload()
	tabTo(t, p, "#answer a.cite")
	var n int
	p.Eval(`Number(document.activeElement.dataset.source)`, &n)
	p.Press("Enter")
	showsSource(t, p, "Tab and Enter", n, res.Citations[n-1])
	if at := focusOf(p); at != "source" {
		t.Errorf("the focus is at %s, not in the panel", at)
	}
	tabTo(t, p, "#source a.close")
	p.Press("Enter")
	p.WaitGone("#source.open")
}

func askByKeyboard(t *testing.T, s *uiServed, p *browsertest.Page, _ string, _ *marchwarden.Result) {
	p.Go(s.url + "/")
	p.WaitFor(`document.activeElement.id === "question"`)
	for _, r := range aboutBoats {
		p.Press(string(r))
	}
	p.Leads(func() { p.Press("Enter") })
	answered(p)
	if got := p.Text("h1"); got != aboutBoats {
		t.Errorf("asked was %q, not %q", got, aboutBoats)
	}
}

// withoutScript does with scripting off what people do: they ask, read sources and look for runs.
func withoutScript(t *testing.T, s *uiServed, p *browsertest.Page, id string, res *marchwarden.Result) {
	p.Scripts(false)
	at := s.url + "/runs/" + id
	p.Go(at)
	for i, c := range res.Citations[:sample(len(res.Citations))] {
		p.Follow(fmt.Sprintf(`#sources a[data-source="%d"]`, i+1))
		showsSource(t, p, "an address", i+1, c)
	}
	p.Go(at)
	p.Follow("#answer .sentence a.cite")
	p.Wait("#source.open #excerpt")
	p.Follow("#source a.close")
	p.Wait("#answer")
	p.Go(s.url + "/history")
	p.Fill("#q", "boathouse")
	p.Follow(".find button.primary")
	p.WaitText(".entries", aboutBoats)
	if n := p.Count(".entry"); n != 1 {
		t.Errorf("%d runs are about a boathouse, want 1", n)
	}
	p.Go(s.url + "/")
	p.Fill("#question", aboutBoats)
	p.Follow(".submit button")
	for p.Count("#answer") == 0 { // as the page says: look again
		p.Wait("#run")
		p.Follow("noscript a")
	}
	p.Wait("#answer .sentence")
}
