package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/conform"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

func newResearchers(a *app) *cobra.Command {
	var o network.Options
	cmd := a.listing("researchers", "show the network; check a researcher, approve it or log in with it", noArgs, func(ctx context.Context, c *settings.Settings, _ []string) error {
		o.Warn, o.Told = func(string) {}, func(network.Finished) {}
		members, err := a.OpenPool(c, o)
		if err != nil {
			return err
		}
		defer members.Close()
		var rows []researcherRow
		var broken []string
		for _, h := range members.Health(ctx) {
			row := researcherRow{Name: h.Member.Name, State: network.PartOK, Contract: h.Card.Contract, Transport: h.Member.Transport, Scope: h.Member.Scope, Private: h.Member.Private, Description: term.CleanLine(h.Card.Description),
				Detail: fmt.Sprintf("answered in %s", h.Took.Round(time.Millisecond))}
			if !h.OK {
				row.State, row.Detail = network.PartBroken, h.Problem
				broken = append(broken, h.Member.Name)
			}
			rows = append(rows, row)
		}
		for _, e := range network.Roster(c, o) {
			if e.Off != "" {
				rows = append(rows, researcherRow{Name: e.Name, State: network.PartOff, Transport: e.Transport, Scope: e.Scope, Detail: e.Off, Private: e.Private})
			}
		}
		var table [][]string
		for _, r := range rows {
			table = append(table, []string{r.Name, r.State, r.Contract, r.Transport, r.Scope, r.Detail})
		}
		if err := a.show(rows, []string{"name", "state", "contract", "runs as", "scope", "detail"}, table, "there is no researcher"); err != nil {
			return err
		}
		if len(broken) > 0 {
			return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "does not answer: " + strings.Join(broken, ", "), Hint: "an investigation continues without it and says so"}
		}
		return nil
	})
	optionFlags(cmd, &o, "online", "db")
	cmd.AddCommand(newResearchersCheck(a), newResearchersLogin(a), newResearchersApprove(a))
	return cmd
}

var oneResearcher = argCount(1, 1, "the name of one researcher")

// researcherRow is a row of 'researchers', and its form in JSON. Fields are only
// ever added.
type researcherRow struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Contract  string `json:"contract,omitempty"`
	Transport string `json:"transport,omitempty"`
	Scope     string `json:"scope"`
	Detail    string `json:"detail,omitempty"`
	Private   bool   `json:"private"`
	// Description is what its tool says of itself, which a model of a caller would read.
	Description string `json:"description,omitempty"`
}

func newResearchersCheck(a *app) *cobra.Command {
	var question, tokenEnv string
	var connector bool
	cmd := a.listing("check [flags] NAME | COMMAND [ARG…] | URL", "check whether an MCP server keeps the research contract, or can be a connector",
		argCount(1, 200, "a researcher of config.yaml, a command or an address"), stopping(unfinishedCheck, func(ctx context.Context, c *settings.Settings, args []string) error {
			return runCheck(ctx, a, c, args, conform.Options{Question: question}, tokenEnv, connector)
		}))
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&question, "question", "", "`TEXT` of a question that it should be able to answer")
	cmd.Flags().StringVar(&tokenEnv, "token-env", "", "environment variable `NAME` with the token for an address")
	cmd.Flags().BoolVar(&connector, "connector", false, "use the server's own tools to search and to fetch")
	return cmd
}

func runCheck(ctx context.Context, a *app, c *settings.Settings, args []string, o conform.Options, tokenEnv string, connector bool) error {
	m := settings.Member{Name: "the address", At: "--token-env", Command: args, TokenEnv: tokenEnv}
	if strings.HasPrefix(args[0], "http://") || strings.HasPrefix(args[0], "https://") {
		m.Command, m.URL = nil, args[0]
		if len(args) > 1 {
			return invalid("URL", "", "must stand alone")
		}
		if problem, hint := m.URLProblem(); problem != "" {
			return invalid("URL", hint, problem)
		}
		if i := slices.IndexFunc(c.Members, func(o settings.Member) bool { return o.URL == m.URL }); i >= 0 && tokenEnv == "" {
			m = c.Members[i] // with the login or the token that it has there
		}
	} else if tokenEnv != "" {
		return invalid("--token-env", "", "is for an address")
	}
	named := c.MemberNamed(args[0])
	known := len(args) == 1 && named.External()
	if known {
		m = named
	}
	target, err := a.Target(c, m)
	if err != nil {
		return err
	}
	if !known {
		target.Env = a.Environ() // it is the user who starts it, by hand, and waits
	}
	a.note("checking %s…", strings.Join(args, " "))
	var report conform.Report
	if m.Connector = m.Connector || connector; m.Connector {
		report = a.CheckConnector(ctx, c, m, target, o)
	} else {
		d := client.Dialer{Version: programVersion(), Now: a.Now, HTTP: a.ServiceClient(), Log: a.logger(c)}
		report = conform.Check(ctx, func(ctx context.Context) (*client.Session, error) { return d.Dial(ctx, target) }, o)
	}
	if err := a.show(report, []string{"check", "level", "outcome", "what was seen"}, report.Table(), "nothing was checked"); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !report.OK() && m.Connector {
		return marchwarden.Errorf(marchwarden.CodeUnsupported, "it cannot be a connector as it is")
	}
	if !report.OK() {
		return &marchwarden.Error{Code: marchwarden.CodeUnsupported, Message: "it does not keep the contract", Hint: "a server with tools of its own is checked with --connector"}
	}
	return nil
}

func newResearchersApprove(a *app) *cobra.Command {
	return a.verb("approve NAME", "accept the present description of a researcher's tool", oneResearcher, func(ctx context.Context, c *settings.Settings, args []string) error {
		name := args[0]
		if m := c.MemberNamed(name); !m.External() {
			return notOfConfig(name)
		}
		network, err := a.OpenPool(c, network.Options{Choice: marchwarden.Choice{Researchers: []string{name}}, Warn: func(string) {}})
		if err != nil {
			return err
		}
		described := ""
		for _, h := range network.Health(ctx) {
			described = term.CleanLine(h.Card.Description)
		}
		before, after, err := network.Approve(ctx, name)
		if err = errors.Join(err, network.Close()); err != nil {
			return err
		}
		said := fmt.Sprintf("%s is approved as it is now: %s\n", name, after)
		if before == after {
			said = fmt.Sprintf("%s has not changed: %s\n", name, after)
		}
		return a.print("%sits tool says: %s\n", said, described)
	})
}

// loginPatience is how long the user may take in the browser.
const loginPatience = 10 * time.Minute

func newResearchersLogin(a *app) *cobra.Command {
	var port int
	var noOpen bool
	cmd := a.verb("login NAME", "log in with a researcher that asks for it", oneResearcher, func(ctx context.Context, c *settings.Settings, args []string) error {
		name := args[0]
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
		browser, err := client.ListenForBrowser(port, func(address string) { // of the page where the user agrees
			a.note("log in with %s on this page; the answer is waited for, for %v:", name, loginPatience)
			fmt.Fprintln(a.stdout, address)
			if !noOpen && a.errStyle().Width > 0 {
				a.openBrowser(address)
			}
		})
		if err != nil {
			return err
		}
		defer browser.Close()
		target.Login.Browser, target.Patience = browser, loginPatience
		d := client.Dialer{Version: programVersion(), Now: a.Now, HTTP: a.ServiceClient(), Log: a.logger(c)}
		if _, err := d.LogIn(ctx, target); err != nil {
			return err
		}
		return a.print("logged in with %s\n", name)
	})
	countFlag(cmd.Flags(), &port, "port", 0, 0, 65535, "`PORT` of this machine that the browser comes back to; 0 is any that is free")
	cmd.Flags().BoolVar(&noOpen, "no-open", false, "open no browser; print the address alone")
	return cmd
}

func notOfConfig(name string) error {
	return invalid("NAME", "'marchwarden researchers' shows them", fmt.Sprintf("%q is no researcher of config.yaml", plaintext.Clip(name, 40)))
}
