//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/browsertest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/chromium"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// pastRuns are more runs than a page of the history lists.
const pastRuns = 27

// writePast writes runs to look for: the third was cut off, the fifth is very sure, and the seventh alone speaks of saffron.
func writePast(h *byHand) {
	for i := 1; i <= pastRuns; i++ {
		run := handRun{question: fmt.Sprintf("What grows in bed %d of the garden?", i), researcher: []string{"files", "web"}[i%2], going: i == 3,
			result: &marchwarden.Result{Answer: fmt.Sprintf("Bed %d grows carrots.", i), Confidence: 0.5, CostMetadata: marchwarden.CostMetadata{TokensUsed: 1000 * i}}}
		switch i {
		case 5:
			run.result.Confidence = 0.97
		case 7:
			run.result.Answer = "Bed 7 grows saffron."
		}
		if _, w := h.put(run); w != nil {
			if err := w.Close(); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

// TestPageHistory looks for past runs, and does with them what can be done.
func TestPageHistory(t *testing.T) {
	wholeForm(t)
	b := browsertest.Open(t)
	w := newHTTPWorld(t)
	if chromium, ok := chromium.Find(os.Getenv("MARCHWARDEN_CHROMIUM"), exec.LookPath); ok { // for exports to PDF
		w.env = append(w.env, "MARCHWARDEN_CHROMIUM="+chromium)
	}
	home := w.home(t)
	writePast(writeByHand(t, home))
	s := w.ui(t, home, uiFlags...)
	first := s.enter(t, b)
	id := s.ask(t, first, aboutBoats, "files")
	answered(first)
	other := s.ask(t, first, webtest.Startups, "web", "files")
	answered(first)
	for _, part := range []struct {
		name string
		try  func(*testing.T, *browsertest.Page)
	}{
		{"search and filters", func(t *testing.T, p *browsertest.Page) { findRuns(t, s, p) }},
		{"pages", func(t *testing.T, p *browsertest.Page) { turnPages(t, s, p) }},
		{"export", func(t *testing.T, p *browsertest.Page) { w.exportAll(t, s, p, home, other) }},
		{"rerun", func(t *testing.T, p *browsertest.Page) {
			p.Go(s.url + "/runs/" + other)
			p.Click(".actions .acts summary")
			p.Follow(`form[action$="/rerun"] button`)
			p.WaitText(".notice", "the same to the byte")
		}},
		{"drift", func(t *testing.T, p *browsertest.Page) { w.sourcesChange(t, s, p, id) }},
		{"delete", func(t *testing.T, p *browsertest.Page) { deleteRun(t, s, p, home, other) }},
	} {
		t.Run(part.name, func(t *testing.T) {
			p := s.like(t, b, first)
			part.try(t, p)
			if part.name != "delete" { // which looks for what is gone
				s.calm(t, part.name, p)
			}
		})
	}
}

// findRuns looks for runs by words and by filters.
func findRuns(t *testing.T, s *uiServed, p *browsertest.Page) {
	p.Go(s.url + "/history")
	p.Fill("#q", "saffron") // a word of an answer
	p.Follow(".find button.primary")
	if got := p.Texts(".entry .question"); len(got) != 1 || got[0] != "What grows in bed 7 of the garden?" {
		t.Errorf("saffron is in %q", got)
	}
	p.Fill("#q", `"bed 12 of"`) // a phrase of a question
	p.Follow(".find button.primary")
	if got := p.Texts(".entry .question"); len(got) != 1 || got[0] != "What grows in bed 12 of the garden?" {
		t.Errorf("bed 12 is in %q", got)
	}
	p.Fill("#q", "nothing speaks of zeppelins")
	p.Follow(".find button.primary")
	p.WaitText("main", "Nothing fits")
	p.Go(s.url + "/history")
	p.Click(".find details summary")
	p.Click(`input[name=status][value=interrupted]`)
	p.Follow(".find details button")
	if got := p.Texts(".entry .question"); len(got) != 1 || got[0] != "What grows in bed 3 of the garden?" {
		t.Errorf("interrupted are %q", got)
	}
	p.Follow(`a[href="/history"]:not([aria-current]), .find a[href="/history"]`)
	p.Click(".find details summary")
	p.Click(`input[name=researcher][value=web]`)
	p.Follow(".find details button")
	web := (pastRuns+1)/2 + 1 // those by hand, and the investigation that sent it
	p.WaitText("#results-title", fmt.Sprintf("%d questions", web))
	p.Go(s.url + "/history?q=" + strings.Repeat("w+", 3000))
	p.WaitText("#faults", "must be at most")
}

// turnPages goes to the older runs and back.
func turnPages(t *testing.T, s *uiServed, p *browsertest.Page) {
	all := pastRuns + 2
	p.Go(s.url + "/history")
	p.WaitText("#results-title", fmt.Sprintf("1 to 25 of %d questions", all))
	seen := map[string]bool{}
	for _, q := range p.Texts(".entry .question") {
		seen[q] = true
	}
	p.Follow(`.pages a[rel=next]`)
	p.WaitText("#results-title", fmt.Sprintf("26 to %d of %d questions", all, all))
	for _, q := range p.Texts(".entry .question") {
		seen[q] = true
	}
	if len(seen) != all {
		t.Errorf("%d runs are listed on both pages, want %d", len(seen), all)
	}
	if p.Count(`.pages a[rel=next]`) != 0 {
		t.Error("there is a page after the last")
	}
	p.Follow(`.pages a[rel=prev]`)
	p.WaitText("#results-title", "1 to 25")
}

// PDF is not offered where nothing prints it.
func TestFormatsWithoutBrowser(t *testing.T) {
	c, err := world(t, map[string]string{"MARCHWARDEN_CHROMIUM": "/nowhere/chromium"}).loadConfig()
	if err != nil {
		t.Fatal(err)
	}
	b := &uiApp{answers: network.PerQuestion{Settings: c}}
	got := b.Formats()
	if len(got) != len(bundle.Formats())-1 || slices.ContainsFunc(got, func(f web.Format) bool { return f.Name == "pdf" }) {
		t.Errorf("offered: %v", got)
	}
}

// exportAll downloads every format and holds it to what the command writes.
func (w *httpWorld) exportAll(t *testing.T, s *uiServed, p *browsertest.Page, home, id string) {
	p.Go(s.url + "/runs/" + id)
	p.Click(".actions .share summary")
	if n := p.Count(".actions .share li"); n != len(bundle.Formats()) {
		t.Errorf("%d formats are offered, want %d", n, len(bundle.Formats()))
	}
	for _, f := range bundle.Formats() {
		p.Wait(".actions .share[open]")
		file := p.Download(func() { p.Click(fmt.Sprintf(`.actions a[href$="/export/%s"]`, f.Name)) })
		got, err := os.ReadFile(file.Path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file.Name, f.Suffixes[0]) || !strings.Contains(file.Name, id[:8]) {
			t.Errorf("%s is named %s", f.Name, file.Name)
		}
		path := filepath.Join(t.TempDir(), "run"+f.Suffixes[0])
		out, err := w.spec(home, "export", "--format", f.Name, "-o", path, id).run(0)
		if err != nil || out.code != exitOK {
			t.Fatalf("export: exit code %d, %v: %s", out.code, err, out.stderr)
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == "pdf" { // it says when it was made
			got, want = got[:4], want[:4]
		}
		if f.Name != "mwz" && !bytes.Equal(got, want) { // so does this one, which is verified instead
			t.Errorf("%s: %d bytes from the page are not the %d of the command", f.Name, len(got), len(want))
		}
		if f.Name == "mwz" {
			bundle := filepath.Join(t.TempDir(), "run.mwz")
			if err := os.WriteFile(bundle, got, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := w.spec(home, "verify", bundle).run(0); err != nil || out.code != exitOK {
				t.Errorf("verify: exit code %d, %v: %s%s", out.code, err, out.stdout, out.stderr)
			}
		}
	}
}

// sourcesChange changes a file that was cited and has the page look again.
func (w *httpWorld) sourcesChange(t *testing.T, s *uiServed, p *browsertest.Page, id string) {
	p.Go(s.url + "/runs/" + id + "/drift")
	if p.Count(".passage") != 0 {
		t.Error("something is known of the sources before they were looked at")
	}
	write(t, filepath.Join(w.dir, "notes", "genes.md"), "# Startups\n\nNova Edit is a startup in Chicago that works on a CRISPR gene therapy.\n")
	p.Follow(`form[action$="/drift"] button`)
	p.WaitFor(`document.querySelector('h1') && document.querySelector('.passage') !== null`) // it comes again by itself
	p.WaitText(".passage del", "Boston")
	p.WaitText(".passage ins", "Chicago")
	p.Go(s.url + "/runs/" + id)
	p.WaitFor(`/changed/i.test(document.querySelector('#sources').innerText)`)
}

// deleteRun deletes a run when it was confirmed, and not before.
func deleteRun(t *testing.T, s *uiServed, p *browsertest.Page, home, id string) {
	trace := filepath.Join(home, ".marchwarden", "traces", id+".jsonl")
	before, err := filepath.Glob(filepath.Join(filepath.Dir(trace), "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	p.Go(s.url + "/runs/" + id)
	p.Click(".actions .acts summary")
	p.Follow(".actions a.danger")
	p.WaitText("main", webtest.Startups)
	p.Follow("form.actions a.button") // no, go back
	answered(p)
	if _, err := os.Stat(trace); err != nil {
		t.Fatalf("it is gone without a word: %v", err)
	}
	p.Click(".actions .acts summary")
	p.Follow(".actions a.danger")
	p.Follow("button.danger")
	p.WaitText(".notice", "was deleted")
	if strings.Contains(p.Text(".entries"), webtest.Startups) {
		t.Error("it is still listed")
	}
	if _, err := os.Stat(trace); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its trace is still there: %v", err)
	}
	after, err := filepath.Glob(filepath.Join(filepath.Dir(trace), "*.jsonl"))
	if err != nil || len(before)-len(after) < 3 {
		t.Errorf("of %d traces %d are left: its rihlas did not go with it (%v)", len(before), len(after), err)
	}
	p.Go(s.url + "/runs/" + id)
	p.WaitText("main", "no such run")
}
