//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/browsertest"
)

// samplePages are the pages of a home that writeSample filled; the first five are those of the pictures.
func samplePages(s *uiServed, id, live string) []struct{ name, address, wait string } {
	run := s.url + "/runs/" + id
	return []struct{ name, address, wait string }{
		{"ask", s.url + "/", "#question"},
		{"run", s.url + "/runs/" + live, "#live .reads li"},
		{"answer", run + "?source=1", "#source.open .leaf img"},
		{"history", s.url + "/history", ".entry"},
		{"library", s.url + "/library", ".entry"},
		{"source", run + "/source/1", ".stored"},
		{"drift", run + "/drift", ".passage"},
		{"confirm", run + "/delete", "button.danger"},
		{"not found", s.url + "/nowhere", "#problem-title"},
		{"history with a fault", s.url + "/history?q=" + strings.Repeat("w+", 3000), "#faults"},
		{"cut off", s.url + "/runs/" + handID(1100).String(), "main"},
	}
}

// shownSample serves the sample.
func shownSample(t *testing.T) (s *uiServed, id, live string) {
	t.Helper()
	r := newRack(t)
	home := r.home(t)
	h := writeByHand(t, home)
	sample := writeSample(h)
	going, w := h.put(sampleLive())
	t.Cleanup(func() { _ = w.Close() }) // it goes on until then
	return r.ui(t, home, "--library", "notes", "--online"), sample.String(), going.String()
}

// maxPicture is how large a picture may be, in bytes.
const maxPicture = 250 << 10

// TestPagePictures makes the pictures of docs/: MARCHWARDEN_TEST_PICTURES names the folder ('make screenshots').
func TestPagePictures(t *testing.T) {
	folder := os.Getenv("MARCHWARDEN_TEST_PICTURES")
	if folder == "" {
		t.Skip("MARCHWARDEN_TEST_PICTURES names no folder for pictures")
	}
	b := browsertest.Open(t)
	s, id, live := shownSample(t)
	p := s.enter(t, b)
	for _, theme := range []string{"light", "dark"} {
		p.Show(browsertest.Screen{Width: 1280, Height: 900, Dark: theme == "dark", Still: true})
		for _, page := range samplePages(s, id, live)[:5] {
			p.Go(page.address)
			p.Wait(page.wait)
			p.Eval(`Promise.all([...document.images].map(i => i.decode())).then(() => void scrollTo(0, 0))`, nil)
			path := filepath.Join(folder, fmt.Sprintf("ui-%s-%s.png", page.name, theme))
			p.Save(path, false)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			size, err := png.DecodeConfig(bytes.NewReader(data))
			if err != nil || size.Width != 1280 || len(data) > maxPicture {
				t.Errorf("%s: %d by %d, %d bytes, %v", path, size.Width, size.Height, len(data), err)
			}
			t.Logf("%s: %d bytes", path, len(data))
		}
	}
}

// TestPageAccessible holds every page to axe-core, in light and dark and on a phone: no serious finding and no critical one.
func TestPageAccessible(t *testing.T) {
	path := os.Getenv("MARCHWARDEN_TEST_AXE")
	if path == "" {
		t.Skip("MARCHWARDEN_TEST_AXE names no axe.min.js ('npm install axe-core')")
	}
	axe, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b := browsertest.Open(t)
	s, id, live := shownSample(t)
	p := s.enter(t, b)
	checked := 0
	for _, screen := range []struct {
		name string
		browsertest.Screen
	}{{"light", browsertest.Screen{}}, {"dark", browsertest.Screen{Dark: true}}, {"phone", browsertest.Screen{Width: 390, Height: 844, Phone: true, Still: true}}} {
		p.Show(screen.Screen)
		for _, page := range samplePages(s, id, live) {
			p.Go(page.address)
			p.Wait(page.wait)
			p.Eval(`void document.querySelectorAll('details').forEach(d => { d.open = true })`, nil)
			p.Inject(string(axe))
			var found []struct {
				ID, Impact, Help string
				Nodes            []struct {
					HTML           string `json:"html"`
					FailureSummary string `json:"failureSummary"`
				}
			}
			p.Eval(`axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.filter(v => v.impact === 'serious' || v.impact === 'critical'))`, &found)
			for _, f := range found {
				nodes, _ := json.Marshal(f.Nodes[:min(3, len(f.Nodes))]) // texts can be
				t.Errorf("%s, %s: %s %s (%s): %.1200s", page.name, screen.name, f.Impact, f.ID, f.Help, nodes)
			}
			checked++
			var wide int
			p.Eval(`document.documentElement.scrollWidth - innerWidth`, &wide)
			if wide > 1 {
				t.Errorf("%s, %s: %d pixels wider than the screen", page.name, screen.name, wide)
			}
		}
	}
	t.Logf("%d pages looked at", checked)
}
