package web

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// browser keeps cookies and follows no redirect.
type browser struct {
	*http.Client
	w    *world
	csrf string
}

func (w *world) browser() *browser {
	jar, _ := cookiejar.New(nil) // there are no options that could be wrong
	c := &http.Client{Jar: jar, Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	w.t.Cleanup(c.CloseIdleConnections)
	return &browser{Client: c, w: w}
}

// local is the local user's browser, who is in.
func (w *world) local() *browser {
	w.t.Helper()
	b := w.browser()
	if resp, text := b.send("GET", strings.TrimPrefix(w.server.Link(w.http.URL), w.http.URL), nil); resp.StatusCode != 303 {
		w.t.Fatalf("%d %s", resp.StatusCode, text)
	}
	return b
}

func (b *browser) send(method, path string, form url.Values) (*http.Response, string) {
	b.w.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(b.w.t.Context(), method, b.w.http.URL+path, body)
	if err != nil {
		b.w.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html,*/*")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := b.Do(req)
	if err != nil {
		b.w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.w.t.Fatal(err)
	}
	return resp, string(text)
}

func (b *browser) get(path string) (int, string) {
	b.w.t.Helper()
	resp, text := b.send("GET", path, nil)
	return resp.StatusCode, text
}

// until looks at a page until it has a text.
func (b *browser) until(path, wanted string) (text string) {
	b.w.t.Helper()
	for range 1000 {
		if _, text = b.get(path); strings.Contains(text, wanted) {
			return text
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.w.t.Fatalf("it never has %q:\n%s", wanted, mainOf(text))
	return ""
}

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

func formToken(text string) string {
	if m := csrfField.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// post sends a form with the token of the session, and gives where it leads.
func (b *browser) post(path string, form url.Values) (status int, to, text string) {
	b.w.t.Helper()
	if b.csrf == "" {
		_, text := b.get("/")
		b.csrf = formToken(text)
	}
	if form == nil {
		form = url.Values{}
	}
	form.Set("csrf", b.csrf)
	resp, text := b.send("POST", path, form)
	return resp.StatusCode, resp.Header.Get("Location"), text
}

// has fails unless a page has all of these texts.
func has(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, mainOf(text))
		}
	}
}

// lacks fails if a page has any of these texts.
func lacks(t *testing.T, text string, unwanted ...string) {
	t.Helper()
	for _, bad := range unwanted {
		if bad != "" && strings.Contains(text, bad) {
			t.Errorf("it has %q:\n%s", bad, mainOf(text))
		}
	}
}

// mainOf is what is particular to a page.
func mainOf(text string) string {
	if _, rest, ok := strings.Cut(text, "<main"); ok {
		text = rest
	}
	return text[:min(len(text), 3000)]
}

// path is the address of a run, and of what follows it.
func path(id marchwarden.TraceID, rest string) string { return "/runs/" + id.String() + rest }
