package network

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client/login"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// CalibrationOf is the table that answers are scored with: the user's own, or the one
// that comes with the program.
func CalibrationOf(c *settings.Settings) (json.RawMessage, error) {
	path := c.CalibrationPath()
	b, err := readTable(path)
	var t *confidence.Table
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t, err = confidence.Shipped()
	case err == nil:
		t, err = confidence.ParseTable(b)
	}
	if err != nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: path, Message: "the calibration table cannot be used",
			Hint: "remove the file to use the table that comes with the program, or make it anew with 'marchwarden-lab calibrate'", Err: err}
	}
	return json.Marshal(t)
}

// readTable reads a table, which is a regular file of modest size: it goes into the
// record of every run.
func readTable(path string) ([]byte, error) {
	const most = 1 << 20
	f, err := durable.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadLimited(f, most, "the table")
}

// loginOf is the user's login with a researcher at an address.
func (a *Host) loginOf(c *settings.Settings, m settings.Member) (*login.Login, error) {
	secret, err := a.secretOf(m, "client_secret_env", m.SecretEnv)
	if err != nil {
		return nil, err
	}
	home, err := url.Parse(m.URL)
	if err != nil {
		return nil, settings.Invalid(m.At, "", "url of "+m.Name+" cannot be read")
	}
	allow, err := FetchAllow(c)
	if err != nil {
		return nil, err
	}
	return &login.Login{
		URL: m.URL, Name: m.Name, File: c.LoginsPath(), ClientID: m.ClientID, ClientSecret: secret, Now: a.Now, Hide: a.Hide.Learn,
		// Answers hold the secrets that are to be kept: they are not cleaned as others are.
		HTTP: login.Client(home, serviceTransport(), guard.New(allow).Transport()),
	}, nil
}

// secretOf is what is in the variable that a key of a researcher names; "" if none does.
func (a *Host) secretOf(m settings.Member, key, variable string) (string, error) {
	if variable == "" {
		return "", nil
	}
	value, _ := a.Env(variable)
	if value = strings.TrimSpace(value); value == "" {
		return "", settings.Invalid(m.At, "set it in the environment", key+" of "+m.Name+" names "+variable+", which is not set")
	}
	return value, nil
}

// WorkerFor is who works on what a researcher is asked, and the only members it may send; none
// means all. An external researcher is asked by an investigator, which checks what it says.
func WorkerFor(name string, only []string) (queue string, send []string) {
	if name == settings.PI || settings.IsBuiltin(name) {
		return name, only
	}
	return settings.PI, []string{name}
}
