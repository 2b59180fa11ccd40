package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// loginPatience is how long the user may take in the browser.
const loginPatience = 10 * time.Minute

const loginHelp = `Log in with a researcher of config.yaml that is at an address and asks for it
(OAuth). Your browser is opened, or the address of the page is there to be
copied; when you have agreed, it comes back to a port of this machine. What the
researcher's authorization server gives is kept in logins.json in the home
folder, for you alone to read, sent to that researcher and no other, and renewed
by itself. To log out, remove the file.

` + exitStatus

type loginOptions struct {
	port   int
	noOpen bool
}

func newResearchersLogin(a *app) *cobra.Command {
	var o loginOptions
	cmd := &cobra.Command{
		Use: "login NAME", Short: "log in with a researcher that asks for it", Long: loginHelp, Args: argCount(1, 1, "the name of one researcher"),
		Example: "  marchwarden researchers login lab\n  marchwarden researchers login lab --port 8765",
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.port < 0 || o.port > 65535 {
				return invalid("--port", "", "must be 0 to 65535")
			}
			return a.runLogin(cmd.Context(), args[0], o)
		},
	}
	cmd.Flags().IntVar(&o.port, "port", 0, "`PORT` of this machine that the browser comes back to; 0 is any that is free")
	cmd.Flags().BoolVar(&o.noOpen, "no-open", false, "open no browser; print the address alone")
	return cmd
}

func (a *app) runLogin(ctx context.Context, name string, o loginOptions) error {
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	m := c.MemberNamed(name)
	switch {
	case !m.External():
		return notOfConfig(name)
	case m.URL == "":
		return invalid("NAME", "env names the variables that a command may see", name+" is a program; a login is for a researcher at an address")
	case m.TokenEnv != "":
		return invalid("NAME", "remove token_env from config.yaml to log in instead", name+" has its token from "+m.TokenEnv)
	}
	target, err := a.Target(c, m)
	if err != nil {
		return err
	}
	browser, err := client.ListenForBrowser(o.port, func(address string) { a.showLogin(name, address, o) })
	if err != nil {
		return err
	}
	defer browser.Close()
	target.Login.Browser, target.Patience = browser, loginPatience
	d := client.Dialer{Version: programVersion(), Now: a.Now, HTTP: a.ServiceClient(), Log: a.logger(c)}
	if _, err := d.LogIn(ctx, target); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "logged in with %s\n", name)
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the outcome")
}

// showLogin prints the address of the page where the user agrees, and opens it.
func (a *app) showLogin(name, address string, o loginOptions) {
	a.note("log in with %s on this page; the answer is waited for, for %v:", name, loginPatience)
	fmt.Fprintln(a.stdout, address)
	if !o.noOpen && a.errStyle().Width > 0 {
		a.openBrowser(address)
	}
}

func notOfConfig(name string) error {
	return invalid("NAME", "'marchwarden researchers' shows them", fmt.Sprintf("%q is no researcher of config.yaml", plaintext.Clip(name, 40)))
}
