//go:build unix

package main

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/browsertest"
)

// uiServed is a program that serves the page, as a process.
type uiServed struct {
	*served        // its url is the page's
	link    string // by which the local user gets in, once; "" in a team
}

var (
	uiLink = regexp.MustCompile(`(http://\S+)/in\?token=\S+`)
	uiAt   = regexp.MustCompile(`the page is at (http://[^;\s]+)`)
)

// ui serves the page in a home and waits until it does. The end of the test ends it.
func (r *rack) ui(t *testing.T, home string, args ...string) *uiServed {
	t.Helper()
	return r.uiAt(t, home, "127.0.0.1:0", args...)
}

// uiAt is ui at an address.
func (r *rack) uiAt(t *testing.T, home, address string, args ...string) *uiServed {
	t.Helper()
	spec := r.spec(home, append([]string{"ui", "--no-open", "--listen", address}, args...)...)
	cmd, out := exec.Command(spec.program, spec.args...), &noted{}
	cmd.Stdout = out
	s := &uiServed{served: launch(t, spec, cmd)}
	eventually(t, "the page is served", func() bool {
		select {
		case <-s.ended:
			t.Fatalf("it does not serve: %s", s.log)
		default:
		}
		if m := uiAt.FindStringSubmatch(s.log.String()); m != nil {
			s.url = m[1]
		}
		s.link = strings.TrimSpace(uiLink.FindString(out.String()))
		return s.url != "" && (s.link != "" || strings.Contains(s.log.String(), "signs in with a token"))
	})
	return s
}

// sample is how many of n things are tried on a page: two in the everyday form, all where
// MARCHWARDEN_TEST_FULL is set.
func sample(n int) int {
	if longTests() {
		return n
	}
	return min(n, 2)
}

// address is where it listens.
func (s *uiServed) address(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// enter lets a browser in by the link.
func (s *uiServed) enter(t *testing.T, b *browsertest.Browser) *browsertest.Page {
	t.Helper()
	p := b.Page(t)
	p.Patience(patience)
	p.Go(s.link)
	p.Wait("#question")
	return p
}

// like opens a page of its own for a test, with the cookies of another.
func (s *uiServed) like(t *testing.T, b *browsertest.Browser, other *browsertest.Page) *browsertest.Page {
	t.Helper()
	p := b.Page(t)
	p.Patience(patience)
	for _, c := range other.Cookies() {
		p.SetCookie(s.url, c.Name, c.Value)
	}
	return p
}

// ask fills in the form, with the researchers that are named and no others, and leads to the page of the run.
func (s *uiServed) ask(t *testing.T, p *browsertest.Page, question string, researchers ...string) (id string) {
	t.Helper()
	p.Go(s.url + "/")
	p.Fill("#question", question)
	p.Click("details.options summary")
	var others []string
	p.Eval(`[...document.querySelectorAll('input[name=researcher]:checked')].map(e => e.value)`, &others)
	for _, name := range others {
		p.Click(`input[name=researcher][value="` + name + `"]`)
	}
	for _, name := range researchers {
		p.Click(`input[name=researcher][value="` + name + `"]`)
	}
	p.Follow(".submit button")
	return runIn(t, p)
}

var runAddress = regexp.MustCompile(`/runs/([0-9a-f-]{36})`)

// runIn is the run whose page is open.
func runIn(t *testing.T, p *browsertest.Page) string {
	t.Helper()
	m := runAddress.FindStringSubmatch(p.URL())
	if m == nil {
		t.Fatalf("not the page of a run:\n%s", p.State())
	}
	return m[1]
}

// answered waits until the page of a run has gone over to its answer.
func answered(p *browsertest.Page) { p.Wait("#answer .sentence[data-source]") }

// calm fails if a page had dialogs, complaints in its console, or asked another server for
// anything.
func (s *uiServed) calm(t *testing.T, where string, p *browsertest.Page) {
	t.Helper()
	for _, m := range p.Complaints() {
		t.Errorf("%s: console: %s", where, m)
	}
	for _, d := range p.Dialogs() {
		t.Errorf("%s: dialog: %+v", where, d)
	}
	for _, r := range p.Strangers(s.url) {
		t.Errorf("%s: asked somebody else: %s", where, r)
	}
}

// exported is a result as the page gives it for download.
func exported(t *testing.T, p *browsertest.Page) *marchwarden.Result {
	t.Helper()
	p.Click(".actions .share summary")
	file := p.Download(func() { p.Click(`.actions a[href$="/export/json"]`) })
	p.Click(".actions .share summary")
	data, err := os.ReadFile(file.Path)
	if err != nil {
		t.Fatal(err)
	}
	res, err := marchwarden.DecodeResult(data)
	if err != nil {
		t.Fatalf("%v: %.300s", err, data)
	}
	return res
}

// jsString is a text as a script writes it.
func jsString(s string) string {
	raw, _ := json.Marshal(s) // strings can be
	return string(raw)
}

// urlQuery is a name and a value as an address has them.
func urlQuery(name, value string) string { return url.Values{name: {value}}.Encode() }
