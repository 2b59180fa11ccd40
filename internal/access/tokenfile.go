package access

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// maxFileBytes bounds a tokens file; 1,000 tokens with all they can have need less.
const maxFileBytes = 1 << 20

// The form of the file:
//
//	{"version": 1, "tokens": [{"name": …, "sha256": 64 hex digits, "scopes": […], "created": …, "expires": …, "max_cost_day_usd": …}, …]}
//
// Tokens are in the order of their names. A field that is not known is an error: what
// a later version says there may be that a token is not good any more. So is a version
// that is not known, and fields must not change their meaning within one.
type fileForm struct {
	Version int         `json:"version"`
	Tokens  []entryForm `json:"tokens"`
}

type entryForm struct {
	Name    string     `json:"name"`
	SHA256  string     `json:"sha256"`
	Scopes  []string   `json:"scopes"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
	MaxCost float64    `json:"max_cost_day_usd,omitempty"`
}

const (
	fileVersion = 1
	fileKind    = "tokens file" // as errors call it
)

// format is the text of a file. It fails for a time that JSON has no form for.
func format(entries []entry) ([]byte, error) {
	form := fileForm{Version: fileVersion, Tokens: make([]entryForm, len(entries))}
	for i, e := range entries {
		form.Tokens[i] = entryForm{Name: e.Name, SHA256: hex.EncodeToString(e.sum[:]), Scopes: e.Scopes, Created: e.Created, MaxCost: e.MaxCostDay}
		if !e.Expires.IsZero() {
			form.Tokens[i].Expires = &e.Expires
		}
	}
	text, err := json.MarshalIndent(form, "", "  ")
	return append(text, '\n'), err
}

// parse reads the text of a file. Its errors quote nothing of it but names of tokens that are sound.
func parse(text []byte) ([]entry, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var form fileForm
	if err := durable.DecodeStrict(text, &form); err != nil {
		return nil, err
	}
	if form.Version != fileVersion {
		return nil, fmt.Errorf("its version is %d, not %d", form.Version, fileVersion)
	}
	if len(form.Tokens) > maxTokens {
		return nil, fmt.Errorf("it has %d tokens, over the limit of %d", len(form.Tokens), maxTokens)
	}
	entries := make([]entry, len(form.Tokens))
	for i, f := range form.Tokens {
		var err error
		if entries[i], err = f.entry(); err != nil {
			return nil, fmt.Errorf("token %d: %w", i+1, err)
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(entries); i++ {
		if entries[i].Name == entries[i-1].Name {
			return nil, fmt.Errorf("there are two tokens %q", entries[i].Name)
		}
	}
	return entries, nil
}

func (f entryForm) entry() (entry, error) {
	e := entry{Token: Token{Name: f.Name, Created: f.Created, MaxCostDay: f.MaxCost}}
	if err := checkName(f.Name); err != nil {
		return entry{}, err
	}
	sum, err := hex.DecodeString(f.SHA256)
	if err != nil || len(sum) != len(e.sum) {
		return entry{}, fmt.Errorf("sha256 must be %d hex digits", 2*len(e.sum))
	}
	copy(e.sum[:], sum)
	if e.Scopes, err = CheckScopes(f.Scopes); err != nil {
		return entry{}, errors.New("scopes must be of " + strings.Join(Scopes(), ", ") + ", at least one")
	}
	if f.MaxCost < 0 { // or it would be no cap
		return entry{}, errors.New("max_cost_day_usd must be more than 0")
	}
	if f.Expires != nil {
		if e.Expires = *f.Expires; e.Expires.IsZero() { // which would be never
			return entry{}, errors.New("expires must be a later time")
		}
	}
	return e, nil
}
