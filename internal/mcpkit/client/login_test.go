package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const lab = "https://lab.example/mcp"

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// issuer gives a new token for every refresh token, once, or answers as it is told.
type issuer struct {
	*httptest.Server
	mu     sync.Mutex
	good   string // refresh token
	asked  int
	answer func(w http.ResponseWriter, form url.Values)
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{good: "refresh-canary-0"}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		_ = r.ParseForm() // what is missing is noticed below
		i.asked++
		w.Header().Set("Content-Type", "application/json")
		switch {
		case i.answer != nil:
			i.answer(w, r.Form)
		case r.Form.Get("grant_type") != "refresh_token" || r.Form.Get("refresh_token") != i.good || r.Form.Get("resource") != lab || r.Form.Get("client_id") != "us":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":"invalid_grant","error_description":%q}`, r.Form.Encode())
		default:
			i.good = fmt.Sprintf("refresh-canary-%d", i.asked)
			fmt.Fprintf(w, `{"access_token":"access-canary-%d","token_type":"Bearer","expires_in":3600,"refresh_token":%q}`, i.asked, i.good)
		}
	}))
	t.Cleanup(i.Close)
	return i
}

// given is a file with a login that ends an hour from the start.
func (i *issuer) given(t *testing.T, change func(*entry)) string {
	t.Helper()
	end := start.Add(time.Hour)
	e := entry{URL: lab, Resource: lab, TokenURL: i.URL, Style: 1, ClientID: "us", Access: "access-canary-0", Refresh: i.good, Expires: &end}
	if change != nil {
		change(&e)
	}
	file := filepath.Join(t.TempDir(), "logins.json")
	if err := loginsFile.Edit(file, func([]entry) ([]entry, error) { return []entry{e}, nil }); err != nil {
		t.Fatal(err)
	}
	return file
}

func of(file string, now time.Time, hide func(...string)) *Login {
	if hide == nil {
		hide = func(...string) {}
	}
	return &Login{URL: lab, Name: "lab", File: file, HTTP: &http.Client{}, Now: func() time.Time { return now }, Hide: hide}
}

// refuse is a request to the researcher and its refusal.
func refuse(t *testing.T, l *Login, status int, challenge, used string) error {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, lab, nil)
	resp := &http.Response{StatusCode: status, Header: http.Header{"Www-Authenticate": {challenge}}, Body: http.NoBody}
	return l.Refused(req, resp, used)
}

// wantDenied says how to log in, and tells nothing that is secret.
func wantDenied(t *testing.T, err error, words string) {
	t.Helper()
	if !errors.Is(err, marchwarden.CodeDenied) || !strings.Contains(err.Error(), words) || marchwarden.HintOf(err) != "run: marchwarden researchers login lab" {
		t.Errorf("got %v (%s), want denied: %s", err, marchwarden.HintOf(err), words)
	}
	if strings.Contains(fmt.Sprintf("%+v %s", err, marchwarden.HintOf(err)), "canary") {
		t.Errorf("a secret is in %v", err)
	}
}

// A token that is over is renewed once, whatever processes need it at the same time.
func TestRenew(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	file := i.given(t, nil)
	var hidden []string
	var mu sync.Mutex
	hide := func(s ...string) { mu.Lock(); defer mu.Unlock(); hidden = append(hidden, s...) }
	if got, err := of(file, start, hide).Token(t.Context()); err != nil || got != "access-canary-0" || i.asked != 0 {
		t.Errorf("before its end: %q, %v; %d requests", got, err, i.asked)
	}
	late := time.Now() // which the new end is counted from
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got, err := of(file, late, hide).Token(t.Context()); err != nil || got != "access-canary-1" {
				t.Errorf("after its end: %q, %v", got, err)
			}
		})
	}
	all.Wait()
	if i.asked != 1 {
		t.Errorf("it was renewed %d times", i.asked)
	}
	for _, secret := range []string{"access-canary-0", "access-canary-1", "refresh-canary-0", "refresh-canary-1"} {
		if !slices.Contains(hidden, secret) {
			t.Errorf("%s is not hidden", secret)
		}
	}
	i.answer = func(w http.ResponseWriter, _ url.Values) {
		fmt.Fprint(w, `{"access_token":"a2","token_type":"Bearer"}`)
	}
	l := of(file, late.Add(2*time.Hour), nil)
	if got, err := l.Token(t.Context()); err != nil || got != "a2" || l.have.Refresh != "refresh-canary-1" || l.have.Expires != nil {
		t.Errorf("without a new refresh token: %q, %v, %+v", got, err, l.have)
	}
}

// A refusal is answered by a better token, or by what the user can do.
func TestRefused(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	file := i.given(t, nil)
	l := of(file, start, nil)
	old, err := l.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second was sent before the first was refused
		if err := refuse(t, l, 401, "Bearer", old); err != nil {
			t.Error(err)
		}
	}
	if got, _ := l.Token(t.Context()); got != "access-canary-1" || i.asked != 1 {
		t.Errorf("got %q after %d requests", got, i.asked)
	}
	wantDenied(t, refuse(t, l, 403, `Bearer error="insufficient_scope", scope="read write"`, "access-canary-1"), "it asks for a login that allows more")
	if e, err := l.read(); err != nil || !slices.Equal(e.Scopes, []string{"read", "write"}) || e.Access != "access-canary-1" {
		t.Errorf("the file has %+v, %v", e, err)
	}
	wantDenied(t, refuse(t, of(filepath.Join(t.TempDir(), "none.json"), start, nil), 401, "Bearer", ""), "the researcher asks for a login (status 401)")
	wantDenied(t, refuse(t, of(i.given(t, func(e *entry) { e.Refresh = "" }), start, nil), 401, "Bearer", "access-canary-0"), "the login is over")
	wantDenied(t, refuse(t, of(i.given(t, func(e *entry) { e.Refresh = "refresh-canary-9" }), start, nil), 401, "Bearer", "access-canary-0"),
		"the authorization server gave no token (status 400): invalid_grant")
	i.answer = func(w http.ResponseWriter, form url.Values) { http.Error(w, form.Encode(), http.StatusBadGateway) }
	for name, change := range map[string]func(*entry){"failing": nil, "gone": func(e *entry) { e.TokenURL = "http://127.0.0.1:1/canary" }} {
		err := refuse(t, of(i.given(t, change), start, nil), 401, "Bearer", "access-canary-0")
		if !errors.Is(err, marchwarden.CodeUnavailable) || strings.Contains(err.Error(), "canary") {
			t.Errorf("a server that is %s: %v", name, err)
		}
	}
}

// A login is for one address, and for its owner.
func TestFile(t *testing.T) {
	t.Parallel()
	file := newIssuer(t).given(t, nil)
	other := of(file, start, nil)
	other.URL = "https://lab.example.org/mcp"
	if got, err := other.Token(t.Context()); got != "" || err != nil {
		t.Errorf("another address gets %q, %v", got, err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := of(file, start, nil).Token(t.Context()); !errors.Is(err, marchwarden.CodeDenied) {
		t.Errorf("a file that all can read: %v", err)
	}
	for _, text := range []string{"canary", `{"version":2,"logins":[]}`, `{"version":1,"canary":1}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := of(file, start, nil).Token(t.Context()); !errors.Is(err, marchwarden.CodeCorrupt) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// redirecting sends back what it is asked for by another address.
type redirecting struct{ to string }

func (r redirecting) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.to == "" {
		return nil, marchwarden.Errorf(marchwarden.CodeDenied, "%s is outside", req.URL.Host)
	}
	return &http.Response{StatusCode: http.StatusTemporaryRedirect, Header: http.Header{"Location": {r.to}}, Body: http.NoBody, Request: req}, nil
}

// What a server names is reached by the way for untrusted addresses, and no redirect leads away.
func TestClient(t *testing.T) {
	t.Parallel()
	home, err := url.Parse(lab)
	if err != nil {
		t.Fatal(err)
	}
	c := LoginClient(home, redirecting{"https://other.example/"}, redirecting{})
	for address, want := range map[string]string{lab + "/token": "redirects to another", "https://lab.example:8443/": "lab.example:8443 is outside", "http://lab.example/": "lab.example is outside"} {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := c.Do(req); !errors.Is(err, marchwarden.CodeDenied) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", address, resp, err)
		}
	}
}

// A login that the user refuses says so, and a page at no address of the web is not shown.
func TestVisit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ page, error, want string }{
		"refused":            {"/authorize", "access_denied", "the authorization server refused the login: access_denied"},
		"refused oddly":      {"/authorize", "<b>canary", "the authorization server refused the login"},
		"a page with tricks": {"/\u202eauthorize", "", "the page of the login is at no address of the web"},
		"no place at all":    {"file:///etc/passwd", "", "the login failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var base string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				page := tc.page
				if strings.HasPrefix(page, "/") {
					page = base + page
				}
				_ = json.NewEncoder(w).Encode(map[string]any{ // as whatever it is asked for
					"resource": base + "/mcp", "authorization_servers": []string{base}, "issuer": base, "authorization_endpoint": page,
					"token_endpoint": base + "/token", "code_challenge_methods_supported": []string{"S256"},
				})
			}))
			defer server.Close()
			base = server.URL
			browser, err := ListenForBrowser(0, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer browser.Close()
			browser.show = func(address string) {
				to, _ := url.Parse(address) // Visit has read it
				go func() {
					resp, err := http.Get(browser.Redirect() + "?" + url.Values{"state": {to.Query().Get("state")}, "error": {tc.error}}.Encode())
					if err == nil {
						resp.Body.Close()
					}
				}()
			}
			l := &Login{URL: base + "/mcp", Name: "lab", File: filepath.Join(t.TempDir(), "logins.json"), HTTP: &http.Client{}, ClientID: "us", Browser: browser, Now: time.Now, Hide: func(...string) {}}
			err = l.Anew(t.Context())
			if !errors.Is(err, marchwarden.CodeDenied) && !errors.Is(err, marchwarden.CodeMalformed) || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
