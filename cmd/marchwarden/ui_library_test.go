//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/browsertest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
)

// A document that is handed over stays in its folder, whatever it is called. What is no plain name, or
// of a kind that is not read, is refused, and so is one more than there is room for.
func TestKeepDocument(t *testing.T) {
	a, c := appHere(t, map[string]string{"MARCHWARDEN_HOME": t.TempDir()})
	good := []string{"notes.md", "Überblick 2024.pdf", "a.b.csv", "README"}
	for _, name := range good {
		if err := network.KeepDocument(&a.Host, c, name, []byte("text")); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", ".hidden.md", "../up.md", "a/b.md", `a\b.md`, "/etc/passwd.md", "C:evil.md", "NUL.md:stream.md", "a\x00.md", "a\n.md", "\u202etxt.md", "\xff.md",
		"end.md ", " begin.md", "end.md.", "virus.exe", "noextension", strings.Repeat("x", 300) + ".md"} {
		if err := network.KeepDocument(&a.Host, c, name, []byte("text")); !errors.Is(err, marchwarden.CodeInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	outside := filepath.Join(t.TempDir(), "outside.md")
	write(t, outside, "theirs")
	if err := os.Symlink(outside, filepath.Join(c.DocumentsPath(), "link.md")); err != nil {
		t.Fatal(err)
	}
	if err := network.KeepDocument(&a.Host, c, "link.md", []byte("ours")); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "theirs" {
		t.Errorf("a link led outside: %q %v", data, err)
	}
	for i := range 1000 - len(good) - 1 {
		write(t, filepath.Join(c.DocumentsPath(), fmt.Sprintf("%d.md", i)), "")
	}
	if err := network.KeepDocument(&a.Host, c, "more.md", nil); !errors.Is(err, marchwarden.CodeInvalid) {
		t.Errorf("one more: %v", err)
	}
	if err := network.KeepDocument(&a.Host, c, "notes.md", []byte("again")); err != nil {
		t.Errorf("the same again: %v", err)
	}
}

// TestPageLibrary adds a folder by its path and a document by dropping it, asks about both, and removes the folder.
func TestPageLibrary(t *testing.T) {
	b := browsertest.Open(t)
	r := newRack(t)
	r.env = append(r.env, "MARCHWARDEN_ONLINE=false") // as it is for who sets nothing
	home, papers := r.home(t), t.TempDir()
	write(t, filepath.Join(papers, "tides.md"), "# Tides\n\nTides are caused by the pull of the Moon.\n")
	s := r.ui(t, home)
	p := s.enter(t, b)
	p.Follow(`nav a[href="/library"]`)
	p.WaitText("main", "No folder of yours")
	p.Fill("#path", filepath.Join(papers, "nowhere"))
	p.Follow(".go-on button")
	p.WaitText("#faults", "does not exist")
	p.Fill("#path", papers)
	p.Follow(".go-on button")
	p.WaitText(".entries", "1 document")
	p.WaitText(".entries", papers)
	drop := func(name, text string) {
		p.Eval(fmt.Sprintf(`(() => { const held = new DataTransfer(); held.items.add(new File([%s], %s));
			document.querySelector('.drop').dispatchEvent(new DragEvent('drop', {dataTransfer: held, bubbles: true, cancelable: true})); })()`, jsString(text), jsString(name)), nil)
	}
	drop("boats.md", "# Boats\n\nThe boathouse of the island was built in 1887.\n")
	p.WaitFor(`document.querySelectorAll('.entry').length === 2 && !/not read yet/.test(document.querySelector('.entries').innerText)`)
	s.calm(t, "the library", p)
	drop("virus.exe", "x")
	p.WaitText("#sent", "virus.exe: files of this kind are not read")
	if p.Go(s.url + "/"); p.Count(".examples button") != 0 {
		t.Error("there are examples of what is not searched")
	}
	for question, want := range map[string]string{"What causes tides?": "pull of the Moon", "When was the boathouse of the island built?": "1887"} {
		p.Go(s.url + "/")
		p.WaitFor(`document.activeElement.id === "question"`)
		p.Fill("#question", question)
		p.Leads(func() { p.Press("Enter") })
		answered(p)
		p.WaitText("#answer", want)
		p.WaitText(".trust", "quoted from 1 document")
	}
	p.Go(s.url + "/library")
	p.Follow(fmt.Sprintf(`button[aria-label=%q]`, "Remove "+papers))
	p.WaitText(".notice", "searched no longer")
	if n := p.Count(".entry"); n != 1 {
		t.Errorf("%d folders are left", n)
	}
	if _, err := os.Stat(filepath.Join(papers, "tides.md")); err != nil {
		t.Errorf("the folder was changed: %v", err)
	}
}

// moved is how much of a page has moved by itself.
const moved = `new Promise(done => new PerformanceObserver(list => done(list.getEntries().filter(e => !e.hadRecentInput).reduce((sum, e) => sum + e.value, 0))).observe({type: 'layout-shift', buffered: true}) || setTimeout(() => done(0), 300))`

// TestPageFirstScreen: at any size the box has the focus and its button is in view; an example is answered by one click;
// the answer fits the screen; and nothing moves on the way.
func TestPageFirstScreen(t *testing.T) {
	b := browsertest.Open(t)
	r := newRack(t)
	r.env = append(r.env, "MARCHWARDEN_ONLINE=false") // as it is for who sets nothing
	s := r.ui(t, r.home(t))
	p := s.enter(t, b)
	for _, screen := range []browsertest.Screen{{Width: 1280, Height: 800}, {Width: 390, Height: 844, Phone: true}, {Width: 375, Height: 667, Phone: true, Dark: true}, {Width: 2560, Height: 1440}} {
		p.Show(screen)
		p.Go(s.url + "/")
		p.WaitFor(`document.activeElement.id === "question"`)
		var at struct{ Bottom, Wide float64 }
		p.Eval(`({Bottom: document.querySelector('.submit button').getBoundingClientRect().bottom, Wide: document.documentElement.scrollWidth - innerWidth})`, &at)
		if at.Bottom > float64(screen.Height) || at.Wide > 1 {
			t.Errorf("%d by %d: the button ends at %.0f, and the page is %.0f too wide", screen.Width, screen.Height, at.Bottom, at.Wide)
		}
	}
	p.Show(browsertest.Screen{Width: 1280, Height: 800})
	p.Go(s.url + "/")
	examples := p.Count(".examples button")
	if examples < 3 {
		t.Fatalf("%d examples", examples)
	}
	for i := range sample(examples) {
		p.Go(s.url + "/")
		p.Follow(fmt.Sprintf(".examples button:nth-of-type(%d)", i+1))
		answered(p)
		p.WaitText(".trust", "quoted from")
		var bottom, shift float64
		p.Eval(`document.querySelector('.about').getBoundingClientRect().bottom`, &bottom)
		p.Eval(moved, &shift)
		if bottom > 800 || shift > 0.01 {
			t.Errorf("example %d: the answer ends at %.0f, and %.3f moved", i+1, bottom, shift)
		}
	}
	s.calm(t, "the first screen", p)
}
