package client

import (
	"errors"
	"slices"
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

func find(all []entry, url string) (entry, bool) {
	i := slices.IndexFunc(all, func(e entry) bool { return e.URL == url })
	if i < 0 {
		return entry{}, false
	}
	return all[i], true
}

// with is all with e in the place of the entry of the same address.
func with(all []entry, e entry) []entry {
	all = slices.DeleteFunc(slices.Clone(all), func(o entry) bool { return o.URL == e.URL })
	return append(all, e)
}

func (l *Login) read() (*entry, error) {
	all, _, err := loginsFile.Read(l.File)
	e, known := find(all, l.URL)
	if err != nil || !known {
		return nil, told(err)
	}
	l.hide(e)
	return &e, nil
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

// edit changes the file while no other process does.
func edit(path string, change func(all []entry) ([]entry, error)) error {
	return told(loginsFile.Edit(path, change))
}
