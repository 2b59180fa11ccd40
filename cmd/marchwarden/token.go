package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

func newToken(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use: "token", Short: "make, list and remove the tokens of your server",
	}, newTokenAdd(a), newTokenRemove(a),
		a.listing("list", "list the tokens; their texts are not known", noArgs, withTokens(a, func(tokens *access.Tokens, _ []string) error {
			list, err := tokens.List()
			if err != nil {
				return err
			}
			rows := []tokenRow{}
			var table [][]string
			for _, t := range list {
				row, until := tokenRow{Name: t.Name, Scopes: t.Scopes, Created: t.Created, Cost: t.MaxCostDay, State: "active"}, "never"
				if t.Expires != nil {
					row.Expires, until = t.Expires, a.inZone(*t.Expires)
				}
				if t.Expired(a.Now()) {
					row.State = "expired"
				}
				rows = append(rows, row)
				table = append(table, []string{t.Name, strings.Join(t.Scopes, ", "), a.inZone(t.Created), until, row.State})
			}
			return a.show(rows, []string{"name", "scopes", "created", "expires", "state"}, table, "there are no tokens yet; 'marchwarden token add NAME' makes one")
		})))
}

// withTokens is work with the tokens of the home folder.
func withTokens(a *app, do func(tokens *access.Tokens, args []string) error) work {
	return func(_ context.Context, c *settings.Settings, args []string) error {
		tokens, err := access.OpenTokens(c.TokensPath(), a.Now)
		if err != nil {
			return err
		}
		return do(tokens, args)
	}
}

func newTokenAdd(a *app) *cobra.Command {
	var scopes []string
	var expires string
	var cost *float64
	cmd := a.verb("add NAME", "make a token and print it, this once", argCount(1, 1, "one name"), withTokens(a, func(tokens *access.Tokens, args []string) error {
		return addToken(a, tokens, args[0], scopes, expires, cost)
	}))
	cmd.Flags().StringSliceVar(&scopes, "scope", []string{access.ScopeResearch, access.ScopeRead}, "what it is good for: `SCOPES` of research and read, with commas")
	cmd.Flags().StringVar(&expires, "expires", "", "the token is good for `TIME`, such as 90d or 12h; without it, until it is removed")
	cmd.Flags().Func("max-cost-day", "models may cost calls with it `USD` a day (UTC), such as 2.00; without it, as much as they do", dollars(&cost))
	return cmd
}

func newTokenRemove(a *app) *cobra.Command {
	return a.verb("remove NAME", "accept a token no longer", argCount(1, 1, "one name"), withTokens(a, func(tokens *access.Tokens, args []string) error {
		if err := tokens.Remove(args[0]); err != nil {
			return err
		}
		a.note("the token %s is removed; servers refuse it within a second", args[0])
		return nil
	}))
}

func addToken(a *app, tokens *access.Tokens, name string, scopes []string, expires string, cost *float64) error {
	if name == settings.EnvOf(settings.HTTPToken) { // which is how its runs are known, too
		return invalid("NAME", "choose another name", "is taken by the token of that variable")
	}
	want := access.Token{Name: name}
	for _, s := range scopes {
		want.Scopes = append(want.Scopes, strings.TrimSpace(s))
	}
	if cost != nil {
		want.MaxCostDay = cmp.Or(*cost, -1) // nothing is no cap
	}
	var err error
	if want.Scopes, err = access.CheckScopes(want.Scopes); err != nil {
		return asFlag(err)
	}
	if expires != "" {
		length, problem := settings.ParseTerm(expires)
		if problem != "" {
			return invalid("--expires", "", problem)
		}
		want.Expires = new(a.Now().Add(length))
	}
	text, err := tokens.Add(rand.Reader, want)
	if err != nil {
		return asFlag(err)
	}
	if _, err := io.WriteString(a.stdout, text+"\n"); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the token, which is lost: remove %s", name)
	}
	end := "until it is removed"
	if want.Expires != nil {
		end = "until " + a.inZone(*want.Expires)
	}
	a.note("the token %s is shown this once and cannot be had again; it is good for %s, %s", name, strings.Join(want.Scopes, " and "), end)
	return nil
}

// asFlag gives an error of a token or a key the name that its field has on the command line.
func asFlag(err error) error {
	return settings.Renamed(err, map[string]string{"name": "NAME", "scope": "--scope", "expires": "--expires", "max-cost-day": "--max-cost-day", "role": "--role"})
}

// tokenRow is a row of 'token list', and its form in JSON. Fields are only ever added.
type tokenRow struct {
	Name    string     `json:"name"`
	Scopes  []string   `json:"scopes"`
	Created time.Time  `json:"created_at"`
	Expires *time.Time `json:"expires_at,omitempty"`
	Cost    float64    `json:"max_cost_day_usd,omitempty"`
	State   string     `json:"state"`
}
