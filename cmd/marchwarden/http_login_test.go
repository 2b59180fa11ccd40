//go:build unix

package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// issuerOffice is where an issuer gives tokens to programs whose users agree.
type issuerOffice struct {
	mu      sync.Mutex
	asked   map[string]url.Values // codes that were given, with what was asked for
	refresh map[string]string     // refresh tokens in force, with the server they are for
	secrets []string              // all that was given in confidence
	renewed int
	wrong   []string // what was not as it must be
	closed  bool     // nothing is renewed any more
}

// lend gives an issuer the pages of its office. A user agrees at once; a token is over
// soon, so that every program has to renew it.
func (i *httpIssuer) lend(t *testing.T, mux *http.ServeMux) {
	o := &i.office
	o.asked, o.refresh = map[string]url.Values{}, map[string]string{}
	give := func(kind string) string {
		secret := kind + "-" + rand.Text()
		o.secrets = append(o.secrets, secret)
		return secret
	}
	must := func(ok bool, what string) {
		if !ok {
			o.wrong = append(o.wrong, what)
		}
	}
	say := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v) // a client that is gone needs none
	}
	locked := func(h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			o.mu.Lock()
			defer o.mu.Unlock()
			h(w, r)
		}
	}
	mux.HandleFunc("POST /register", locked(func(w http.ResponseWriter, r *http.Request) {
		var m map[string]any
		must(json.NewDecoder(r.Body).Decode(&m) == nil, "a registration is no JSON")
		m["client_id"], m["client_secret"], m["token_endpoint_auth_method"] = "program-1", give("client"), "client_secret_post"
		say(w, http.StatusCreated, m)
	}))
	mux.HandleFunc("GET /authorize", locked(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		must(q.Get("code_challenge_method") == "S256" && q.Get("state") != "" && strings.Contains(q.Get("scope"), "research"), "the page was asked for "+r.URL.RawQuery)
		code := give("code")
		o.asked[code] = q
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	}))
	mux.HandleFunc("POST /token", locked(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // what is missing is noticed below
		resource := r.Form.Get("resource")
		must(slices.Contains(o.secrets, r.Form.Get("client_secret")), "the program does not say who it is")
		switch r.Form.Get("grant_type") {
		case "authorization_code":
			asked := o.asked[r.Form.Get("code")]
			delete(o.asked, r.Form.Get("code"))
			sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
			must(asked.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:]), "the verifier is wrong")
			must(asked.Get("resource") == resource, "the token is for another server than was agreed to")
		case "refresh_token":
			old := r.Form.Get("refresh_token")
			for_, known := o.refresh[old]
			delete(o.refresh, old)
			if o.closed || !known {
				say(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant", "error_description": "never heard of " + old})
				return
			}
			must(for_ == resource, "a token for another server is renewed")
			o.renewed++
		default:
			must(false, "a grant of the type "+r.Form.Get("grant_type"))
		}
		access, refresh := i.token(t, map[string]any{"aud": resource, "jti": give("access")}), give("refresh")
		o.secrets = append(o.secrets, access)
		o.refresh[refresh] = resource
		say(w, http.StatusOK, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 5, "refresh_token": refresh})
	}))
}

// TestLogIn logs in with a server of ours that asks for it, and asks it; what was given
// for it is nowhere but where it belongs.
func TestLogIn(t *testing.T) {
	t.Parallel()
	w, issuer := newHTTPWorld(t), newHTTPIssuer(t)
	server := w.serve(t, w.home(t), "files", "--library", "notes", "--oauth-issuer", issuer.URL)
	home := w.home(t)
	write(t, filepath.Join(home, ".marchwarden", "config.yaml"), "researchers:\n  - {name: far, scope: boathouses and roofs, private: true, url: '"+server.url+"'}\n")
	var said bytes.Buffer
	run := func(want int, args ...string) string {
		t.Helper()
		out, err := w.spec(home, args...).run(0)
		if err != nil || out.code != want {
			t.Errorf("%v: exit code %d, %v: %s%s", args, out.code, err, out.stdout, out.stderr)
		}
		said.Write(out.stdout)
		said.Write(out.stderr)
		return string(out.stdout) + string(out.stderr)
	}
	ask := []string{"ask", "--researchers", "far", "--json", "Who repaired the roof of the boathouse?"}
	const how = "run: marchwarden researchers login far"
	if got := run(exitFailed, "researchers", "--json"); !strings.Contains(got, "the researcher asks for a login (status 401)") || !strings.Contains(got, how) {
		t.Errorf("before the login: %s", got)
	}
	if got := run(exitOK, ask...); !strings.Contains(got, how) {
		t.Errorf("a question before the login: %s", got)
	}

	said.WriteString(w.logIn(t, home))
	file := filepath.Join(home, ".marchwarden", "logins.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	for range 2 {
		if got := run(exitOK, ask...); !strings.Contains(got, "Marta Lindqvist") {
			t.Errorf("after the login: %s", got)
		}
	}
	issuer.office.mu.Lock()
	if issuer.office.renewed < 2 {
		t.Errorf("tokens were renewed %d times", issuer.office.renewed)
	}
	issuer.office.closed = true
	issuer.office.mu.Unlock()
	if got := run(exitFailed, "researchers", "--json"); !strings.Contains(got, "the authorization server gave no token (status 400): invalid_grant") || !strings.Contains(got, how) {
		t.Errorf("after the end of the login: %s", got)
	}

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	var left strings.Builder
	eachFile(t, home, &left)
	for _, problem := range issuer.office.wrong {
		t.Error(problem)
	}
	for _, secret := range issuer.office.secrets {
		for place, text := range map[string]string{"said": said.String(), "left": left.String(), "logged": server.log.String()} {
			if strings.Contains(text, secret) {
				t.Errorf("%s was %s", secret[:8], place)
			}
		}
	}
}

var loginPage = regexp.MustCompile(`(?m)^http://\S+/authorize\?\S+$`)

// logIn has a user log in with the researcher far, and gives what the program said.
func (r *rack) logIn(t *testing.T, home string) string {
	t.Helper()
	spec := r.spec(home, "researchers", "login", "far", "--no-open")
	cmd := exec.Command(spec.program, spec.args...)
	out := &noted{}
	cmd.Stdout = out
	s := launch(t, spec, cmd)
	var page string
	eventually(t, "the program names a page", func() bool {
		select {
		case <-s.ended:
			t.Fatalf("it ends: %s%s", out, s.log)
		default:
		}
		page = loginPage.FindString(out.String())
		return page != ""
	})
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, strange := range []string{"", "?code=x&state=y", "?error=access_denied"} { // pages of others
		res, err := http.Get(u.Query().Get("redirect_uri") + strange)
		if err != nil || res.StatusCode != http.StatusNotFound {
			t.Errorf("%q: %v, %v", strange, res, err)
			continue
		}
		res.Body.Close()
	}
	res, err := http.Get(page)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	<-s.ended
	if code := cmd.ProcessState.ExitCode(); code != exitOK || !strings.Contains(out.String(), "logged in with far") {
		t.Errorf("exit code %d: %s%s", code, out, s.log)
	}
	return out.String() + s.log.String()
}

// TestLogInStaysOutside holds the addresses that a researcher's server names to the rules
// for pages.
func TestLogInStaysOutside(t *testing.T) {
	t.Parallel()
	w, issuer := newHTTPWorld(t), newHTTPIssuer(t)
	w.env = append(w.env, "MARCHWARDEN_FETCH_ALLOW=")
	server := w.serve(t, w.home(t), "files", "--library", "notes", "--oauth-issuer", issuer.URL)
	home := w.home(t)
	write(t, filepath.Join(home, ".marchwarden", "config.yaml"), "researchers:\n  - {name: far, scope: boathouses and roofs, private: true, url: '"+server.url+"'}\n")
	out, err := w.spec(home, "researchers", "login", "far", "--no-open").run(0)
	if err != nil || out.code != exitFailed || !strings.Contains(string(out.stderr), "127.0.0.1 is refused: it is a loopback address") { // the rest may be cut off
		t.Errorf("exit code %d, %v: %s%s", out.code, err, out.stdout, out.stderr)
	}
}
