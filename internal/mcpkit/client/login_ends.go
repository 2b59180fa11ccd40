package client

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// loginsFile is the form of the file. A login is found by the address of its researcher: no other gets its token.
var loginsFile = durable.Named[entry]{What: "login", Name: func(e entry) string { return e.URL }, Check: func([]entry, int) error { return nil }}

type entry struct {
	URL      string `json:"url"`      // of the researcher
	Resource string `json:"resource"` // as the authorization server was told
	TokenURL string `json:"token_url"`
	// Style is how the program shows who it is, as oauth2.AuthStyle counts.
	Style        int    `json:"auth_style"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret,omitempty"`
	// Scopes are those that the researcher has asked for when a login was too little.
	Scopes  []string   `json:"scopes,omitempty"`
	Access  string     `json:"access_token"`
	Refresh string     `json:"refresh_token,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
}

// take notes a new token. A server that sends no new refresh token means the old one.
func (e *entry) take(t *oauth2.Token) {
	e.Access, e.Expires = t.AccessToken, nil
	if t.RefreshToken != "" {
		e.Refresh = t.RefreshToken
	}
	if !t.Expiry.IsZero() {
		e.Expires = &t.Expiry
	}
}

// place is where the entry of an address is among all, or -1.
func place(all []entry, url string) int {
	return slices.IndexFunc(all, func(e entry) bool { return e.URL == url })
}

func (l *Login) read() (*entry, error) {
	all, _, err := loginsFile.Read(l.File)
	i := place(all, l.URL)
	if err != nil || i < 0 {
		return nil, told(err)
	}
	l.Hide(all[i].secrets()...)
	return &all[i], nil
}

// LoginSecrets are all that a file of logins keeps in confidence; none if it cannot be read.
func LoginSecrets(file string) []string {
	all, _, _ := loginsFile.Read(file)
	var secrets []string
	for _, e := range all {
		secrets = append(secrets, e.secrets()...)
	}
	return secrets
}

func (e entry) secrets() []string { return []string{e.Access, e.Refresh, e.ClientSecret} }

// told adds what to do about a file that is none.
func told(err error) error {
	if !errors.Is(err, marchwarden.CodeCorrupt) {
		return err
	}
	return &marchwarden.Error{Code: marchwarden.CodeCorrupt, Message: "read the logins", Hint: "remove logins.json from the home folder and log in again", Err: err}
}

// edit changes the entry of the login while no other process does. One that is blank is not there.
func (l *Login) edit(change func(e *entry) error) error {
	return told(loginsFile.Edit(l.File, func(all []entry) ([]entry, error) {
		var e entry
		if i := place(all, l.URL); i >= 0 {
			e = all[i]
			all = slices.Delete(all, i, i+1)
		}
		if err := change(&e); err != nil || e.URL == "" {
			return all, err
		}
		return append(all, e), nil
	}))
}

// Loopback is the browser of this machine: it comes back to a port for this machine alone, until Close.
type Loopback struct {
	redirect string
	show     func(address string)
	server   *http.Server
	served   chan error // how the server ended
	back     chan url.Values

	mu    sync.Mutex // guards what follows
	state string     // that the browser must bring back; "" for none
}

// ListenForBrowser opens a port; 0 is any. show gets the address that the user is to open.
func ListenForBrowser(port int, show func(address string)) (*Loopback, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "open a port for the browser to come back to")
	}
	b := &Loopback{redirect: "http://" + l.Addr().String() + "/callback", show: show, served: make(chan error, 1), back: make(chan url.Values, 1)}
	b.server = &http.Server{Handler: b, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() { b.served <- b.server.Serve(l) }()
	return b, nil
}

// Close gives the port back. A page that is on its way gets there.
func (b *Loopback) Close() error {
	quit, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if b.server.Shutdown(quit) == nil {
		return nil
	}
	return b.server.Close() // a browser holds its connection
}

// Redirect is where the browser comes back to.
func (b *Loopback) Redirect() string { return b.redirect }

// ServeHTTP takes what the browser brings with the state of the login; all else is of other pages.
func (b *Loopback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer") // the address holds the code
	query := r.URL.Query()
	if r.Method != http.MethodGet || r.URL.Path != "/callback" || !b.expects(query.Get("state")) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = io.WriteString(w, "Marchwarden has the answer. You can close this page and go back to the terminal.\n") // a browser that is gone needs none
	b.back <- query
}

// expects reports, once, whether a state is that of the login under way.
func (b *Loopback) expects(state string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == "" || subtle.ConstantTimeCompare([]byte(state), []byte(b.state)) != 1 {
		return false
	}
	b.state = ""
	return true
}

// Visit shows the address and waits for the browser, as long as ctx allows.
func (b *Loopback) Visit(ctx context.Context, address string) (url.Values, error) {
	to, err := url.Parse(address)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeMalformed, "read the address of the login page")
	}
	b.mu.Lock()
	b.state = to.Query().Get("state")
	b.mu.Unlock()
	b.show(address)
	select {
	case query := <-b.back:
		return query, nil
	case err := <-b.served:
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "wait for the browser to come back")
	case <-ctx.Done():
		return nil, marchwarden.Wrap(context.Cause(ctx), marchwarden.CodeCanceled, "wait for the browser to come back")
	}
}
