package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const (
	maxNameBytes = 64
	secretBytes  = 32
	textPrefix   = "mw_" // by which people and scanners for secrets know a token
	checkEvery   = time.Second
)

// Token is a named token, without its text, which only its holder has.
type Token struct {
	Name    string     `json:"name"`
	Scopes  []string   `json:"scopes"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"` // nil if it does not
	// MaxCostDay is what calls with it may cost in a day (UTC), in US dollars; 0 is no cap.
	MaxCostDay float64 `json:"max_cost_day_usd,omitempty"`
}

// Expired reports whether the token is accepted no longer.
func (t Token) Expired(now time.Time) bool {
	return t.Expires != nil && !now.Before(*t.Expires)
}

type entry struct {
	Token
	Sum string `json:"sha256"` // of the token, in hex digits
}

// pastScope is one that earlier versions knew. A token of theirs may still name it; it grants nothing.
const pastScope = "metrics"

// tokensFile is the form of the file.
var tokensFile = durable.Named[entry]{What: "token", Name: func(e entry) string { return e.Name }, Check: func(list []entry, i int) error {
	e := list[i]
	unknown := func(s string) bool { return s != pastScope && !slices.Contains(Scopes(), s) }
	switch {
	case checkName(e.Name) != nil:
		return checkName(e.Name)
	case len(e.Sum) != 2*sha256.Size || strings.Trim(e.Sum, "0123456789abcdef") != "":
		return fmt.Errorf("sha256 must be %d hex digits", 2*sha256.Size)
	case len(e.Scopes) == 0 || slices.ContainsFunc(e.Scopes, unknown):
		return errors.New("scopes must be of " + strings.Join(Scopes(), ", ") + ", at least one")
	case e.MaxCostDay < 0: // or it would be no cap
		return errors.New("max_cost_day_usd must be more than 0")
	}
	return nil
}}

// Tokens is a file of named tokens, and accepts them as "token:NAME". It looks at the file again
// when a second has passed, so that what another process adds or removes counts without a restart.
// It is safe for concurrent use, and several processes may change one file.
type Tokens struct {
	path string
	now  func() time.Time

	mu      sync.Mutex // guards what follows, and is held while the file is read
	checked time.Time  // when the file was last read; zero if never
	entries []entry    // what was in it
	err     error      // why there are none
}

// OpenTokens opens a tokens file. One that does not exist has no tokens; the first Add
// makes it. CodeDenied if others than its owner can read or write it, CodeCorrupt if
// it is no tokens file, CodeUnavailable if it cannot be read.
func OpenTokens(path string, now func() time.Time) (*Tokens, error) {
	t := &Tokens{path: path, now: now}
	if _, err := t.current(true); err != nil {
		return nil, err
	}
	return t, nil
}

// List returns the tokens by name, those that have expired too. It reads the file.
func (t *Tokens) List() ([]Token, error) {
	entries, err := t.current(true)
	if err != nil {
		return nil, err
	}
	tokens := make([]Token, len(entries))
	for i, e := range entries {
		tokens[i] = e.Token
		tokens[i].Scopes = slices.Clone(e.Scopes)
	}
	return tokens, nil
}

// Add makes a token of 256 bits from random, keeps its hash under want.Name and returns its text, which
// cannot be had again. It is on the disk when Add returns. want.Created is not looked at. CodeInvalid if
// the name is taken or malformed, scopes or its cost are wrong, it has expired already, or there are 1,000 tokens.
func (t *Tokens) Add(random io.Reader, want Token) (string, error) {
	if err := checkName(want.Name); err != nil {
		return "", err
	}
	scopes, err := CheckScopes(want.Scopes)
	if err != nil {
		return "", err
	}
	now := t.now().UTC().Truncate(time.Second)
	if want.Expired(now) {
		return "", &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "expires", Message: "must be in the future"}
	}
	if want.MaxCostDay != 0 && !(want.MaxCostDay > 0 && want.MaxCostDay <= marchwarden.MaxCostUSD) {
		return "", &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "max-cost-day", Message: fmt.Sprintf("must be more than 0 and at most %d", marchwarden.MaxCostUSD)}
	}
	secret := make([]byte, secretBytes)
	if _, err := io.ReadFull(random, secret); err != nil {
		return "", marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make a token: read random bytes")
	}
	text := textPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret))
	if want.Scopes, want.Created = scopes, now; want.Expires != nil {
		want.Expires = new(want.Expires.UTC().Truncate(time.Second))
	}
	if err := tokensFile.Add(t.path, entry{want, digestOf(text)}); err != nil {
		return "", err
	}
	_, err = t.current(true)
	return text, err
}

// Remove forgets a token; servers refuse it within a second. CodeNotFound if there is none.
func (t *Tokens) Remove(name string) error {
	if err := tokensFile.Remove(t.path, name); err != nil {
		return err
	}
	_, err := t.current(true)
	return err
}

// Authenticate accepts a token of the file that has not expired; none while the file cannot be used.
func (t *Tokens) Authenticate(_ context.Context, token string) (Principal, error) {
	if len(token) > maxTokenBytes {
		return Principal{}, refuse(errUnknown)
	}
	entries, err := t.current(false)
	if err != nil {
		return Principal{}, refuse(err)
	}
	i := match(entries, digestOf(token))
	switch {
	case i < 0:
		return Principal{}, refuse(errUnknown)
	case entries[i].Expired(t.now()):
		return Principal{}, refuse(errExpired)
	}
	return Principal{ID: tokenPrefix + entries[i].Name, Scopes: slices.Clone(entries[i].Scopes), MaxCostDay: entries[i].MaxCostDay}, nil
}

// match is the index of the entry with a digest, or -1, found in a time that says nothing.
func match(entries []entry, sum string) int {
	found := -1
	for i := range entries {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare([]byte(entries[i].Sum), []byte(sum)), i, found)
	}
	return found
}

// current are the entries as they are now, or were a second ago at most. The slice is not to be changed.
func (t *Tokens) current(now bool) ([]entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.now()
	if age := at.Sub(t.checked); !now && !t.checked.IsZero() && age >= 0 && age < checkEvery {
		return t.entries, t.err
	}
	t.checked = at
	t.entries, _, t.err = tokensFile.Read(t.path)
	for i := range t.entries {
		t.entries[i].Scopes = ours(t.entries[i].Scopes)
	}
	return t.entries, t.err
}

// checkName holds names to what is safe in a file, a log line and an argument.
func checkName(name string) error {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	if name == "" || len(name) > maxNameBytes || strings.Trim(name, allowed) != "" {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "name", Message: fmt.Sprintf("must be 1 to %d letters, digits, dots, dashes or underscores", maxNameBytes)}
	}
	return nil
}
