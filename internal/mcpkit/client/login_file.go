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
