package access

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

type entryForm struct {
	Name    string     `json:"name"`
	SHA256  string     `json:"sha256"`
	Scopes  []string   `json:"scopes"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
	MaxCost float64    `json:"max_cost_day_usd,omitempty"`
}

// tokensFile is the form of the file.
var tokensFile = durable.Named[entryForm]{What: "token", Name: func(f entryForm) string { return f.Name }, Check: func(list []entryForm, i int) error {
	_, err := list[i].entry()
	return err
}}

func formOf(e entry) entryForm {
	f := entryForm{Name: e.Name, SHA256: hex.EncodeToString(e.sum[:]), Scopes: e.Scopes, Created: e.Created, MaxCost: e.MaxCostDay}
	if !e.Expires.IsZero() {
		f.Expires = &e.Expires
	}
	return f
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
