package main

import (
	"crypto/rand"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

const tokenHelp = `Manage the tokens by which others may use 'marchwarden serve --http'.

A token has a name, scopes, and an end if you like. Its text is printed once,
when it is made: only a hash of it is kept, in tokens.json in the home folder.
Who has a token sees the runs that were asked for with it, and no others. A
server that is running takes notice of new and removed tokens within a second.

The scopes are:
  research  ask questions, and stop what was asked for
  read      read results, traces and documents, and follow what is going on
  metrics   read the measurements of the server`

func newToken(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "token", Short: "make, list and remove the tokens of your server", Long: tokenHelp,
		Example: "  marchwarden token add laptop\n  marchwarden token add prometheus --scope metrics\n  marchwarden token list",
		Args:    needCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTokenAdd(a), newTokenList(a), newTokenRemove(a))
	return cmd
}

type tokenOptions struct {
	scopes  []string
	expires string
}

func newTokenAdd(a *app) *cobra.Command {
	var o tokenOptions
	cmd := &cobra.Command{
		Use: "add NAME", Short: "make a token and print it, this once",
		Long: "Make a token and print it on stdout, this once. NAME is 1 to 64 letters, digits,\ndots, dashes or underscores.",
		Example: "  marchwarden token add laptop\n  marchwarden token add ci --scope research,read --expires 90d\n" +
			"  marchwarden token add prometheus --scope metrics > prometheus.token",
		Args: argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("expires") && strings.TrimSpace(o.expires) == "" {
				return invalid("--expires", "leave it out for a token without an end", "must not be blank")
			}
			return a.runTokenAdd(o, args[0])
		},
	}
	cmd.Flags().StringSliceVar(&o.scopes, "scope", []string{access.ScopeResearch, access.ScopeRead}, "what it is good for: `SCOPES` of research, read and metrics, with commas")
	cmd.Flags().StringVar(&o.expires, "expires", "", "the token is good for `TIME`, such as 90d or 12h; without it, until it is removed")
	return cmd
}

func newTokenList(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "list the tokens; their texts are not known", Args: noArgs,
		Example: "  marchwarden token list\n  marchwarden token list --json",
		RunE:    func(*cobra.Command, []string) error { return a.runTokenList(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newTokenRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "accept a token no longer", Args: argCount(1, 1, "one name"),
		Long:    "Accept a token no longer. A server that is running refuses it within a second;\nwhat was begun with it goes on.",
		Example: "  marchwarden token remove laptop",
		RunE:    func(_ *cobra.Command, args []string) error { return a.runTokenRemove(args[0]) },
	}
}

// openTokens opens the tokens of the home folder.
func (a *app) openTokens() (*access.Tokens, error) {
	c, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	return access.OpenTokens(c.TokensPath(), a.Now)
}

func (a *app) runTokenAdd(o tokenOptions, name string) error {
	if name == settings.EnvOf(settings.HTTPToken) { // which is how its runs are known, too
		return invalid("NAME", "choose another name", "is taken by the token of that variable")
	}
	want := access.Token{Name: name}
	for _, s := range o.scopes {
		want.Scopes = append(want.Scopes, strings.TrimSpace(s))
	}
	var err error
	if want.Scopes, err = access.CheckScopes(want.Scopes); err != nil {
		return asFlag(err)
	}
	if o.expires != "" {
		length, problem := settings.ParseTerm(o.expires)
		if problem != "" {
			return invalid("--expires", "", problem)
		}
		want.Expires = a.Now().Add(length)
	}
	tokens, err := a.openTokens()
	if err != nil {
		return err
	}
	text, err := tokens.Add(rand.Reader, want)
	if err != nil {
		return asFlag(err)
	}
	if _, err := io.WriteString(a.stdout, text+"\n"); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the token, which is lost: remove %s", name)
	}
	end := "until it is removed"
	if !want.Expires.IsZero() {
		end = "until " + a.inZone(want.Expires)
	}
	a.note("the token %s is shown this once and cannot be had again; it is good for %s, %s", name, strings.Join(want.Scopes, " and "), end)
	return nil
}

// asFlag gives an error of a token or a key the name that its field has on the command line.
func asFlag(err error) error {
	return settings.Renamed(err, map[string]string{"name": "NAME", "scope": "--scope", "expires": "--expires", "role": "--role", "account": "--account"})
}

// The states of a token.
const (
	tokenActive  = "active"
	tokenExpired = "expired"
)

// tokenRow is a row of 'token list', and its form in JSON. Fields are only ever added.
type tokenRow struct {
	Name    string     `json:"name"`
	Scopes  []string   `json:"scopes"`
	Created time.Time  `json:"created_at"`
	Expires *time.Time `json:"expires_at,omitempty"`
	State   string     `json:"state"`
}

func (a *app) runTokenList(asJSON bool) error {
	tokens, err := a.openTokens()
	if err != nil {
		return err
	}
	list, err := tokens.List()
	if err != nil {
		return err
	}
	rows := []tokenRow{}
	var table [][]string
	for _, t := range list {
		row, until := tokenRow{Name: t.Name, Scopes: t.Scopes, Created: t.Created, State: tokenActive}, "never"
		if !t.Expires.IsZero() {
			row.Expires, until = &t.Expires, a.inZone(t.Expires)
		}
		if t.Expired(a.Now()) {
			row.State = tokenExpired
		}
		rows = append(rows, row)
		table = append(table, []string{t.Name, strings.Join(t.Scopes, ", "), a.inZone(t.Created), until, row.State})
	}
	if asJSON {
		return printJSON(a.forPrograms(), rows)
	}
	if len(rows) == 0 {
		a.note("there are no tokens yet; 'marchwarden token add NAME' makes one")
		return nil
	}
	return a.outStyle().Table(a.stdout, []string{"name", "scopes", "created", "expires", "state"}, table)
}

func (a *app) runTokenRemove(name string) error {
	tokens, err := a.openTokens()
	if err != nil {
		return err
	}
	if err := tokens.Remove(name); err != nil {
		return err
	}
	a.note("the token %s is removed; servers refuse it within a second", name)
	return nil
}
