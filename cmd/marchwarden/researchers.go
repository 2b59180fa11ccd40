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

var researchersHelp = `Show the researchers of your network: name, scope, where each runs, the version
of the contract it keeps, and whether it answers. Built-in researchers run
inside the program; others join by a few lines in config.yaml:

  researchers:
    - name: trials
      scope: clinical trials of our group
      command: [python3, researcher.py]
    - name: lab
      scope: measurements of the lab
      url: https://lab.example.org/mcp
      token_env: LAB_TOKEN      # or 'marchwarden researchers login lab'

The description of a tool that is not ours is remembered when it is first seen.
If it changes, the researcher is not asked any more until you approve it.` + exits("0 every researcher answers", "1 one does not; it is named", "2 wrong usage, or a setting that cannot be read")

func newResearchers(a *app) *cobra.Command {
	var o network.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use: "researchers", Short: "show the network; check a researcher, approve it or log in with it", Long: researchersHelp, Args: noArgs,
		Example: "  marchwarden researchers --online\n  marchwarden researchers check python3 researcher.py\n  marchwarden researchers approve trials",
		RunE: a.run(func(ctx context.Context, c *settings.Settings, _ []string) error {
			return runResearchers(ctx, a, c, o, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&o.Online, "online", false, "as for ask: with the web and arXiv")
	cmd.Flags().StringVar(&o.DB, "db", "", "as for ask: with the database at `URL`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(newResearchersCheck(a), newResearchersApprove(a), newResearchersLogin(a))
	return cmd
}

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

func runResearchers(ctx context.Context, a *app, c *settings.Settings, o network.Options, asJSON bool) error {
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
	table := make([][]string, len(rows))
	for i, r := range rows {
		table[i] = []string{r.Name, r.State, r.Contract, r.Transport, r.Scope, r.Detail}
	}
	if err := a.show(asJSON, rows, []string{"name", "state", "contract", "runs as", "scope", "detail"}, table, "there is no researcher"); err != nil {
		return err
	}
	if len(broken) > 0 {
		return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "does not answer: " + strings.Join(broken, ", "), Hint: "an investigation goes on without it and says so"}
	}
	return nil
}

var checkHelp = `Find out whether an external MCP server keeps the research contract: it is
started (or dialled), asked a real question, and given bad input. The command
and its arguments follow; an address begins with http:// or https://.` + exits("0 it keeps the contract", "1 it does not; what is wrong is named", "2 wrong usage")

func newResearchersCheck(a *app) *cobra.Command {
	var question, tokenEnv string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check [flags] COMMAND [ARG…] | URL", Short: "check whether an MCP server keeps the research contract", Long: checkHelp,
		Example: "  marchwarden researchers check python3 researcher.py\n  marchwarden researchers check --token-env LAB_TOKEN https://lab.example.org/mcp",
		Args:    argCount(1, 200, "a command or an address"),
		RunE: a.run(func(ctx context.Context, c *settings.Settings, args []string) error {
			return runCheck(ctx, a, c, args, conform.Options{Question: question}, tokenEnv, asJSON)
		}),
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&question, "question", "", "`TEXT` of a question that it should be able to answer")
	cmd.Flags().StringVar(&tokenEnv, "token-env", "", "environment variable `NAME` with the token for an address")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func runCheck(ctx context.Context, a *app, c *settings.Settings, args []string, o conform.Options, tokenEnv string, asJSON bool) error {
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
	target, err := a.Target(c, m)
	if err != nil {
		return err
	}
	target.Env = a.Environ() // it is the user who starts it, by hand, and waits
	target.Patience = max(target.Patience, time.Minute)
	d := client.Dialer{Version: programVersion(), Now: a.Now, HTTP: a.ServiceClient(), Log: a.logger(c)}
	a.note("checking %s…", strings.Join(args, " "))
	report := conform.Check(ctx, func(ctx context.Context) (*client.Session, error) { return d.Dial(ctx, target) }, o)
	if err := a.show(asJSON, report, []string{"check", "level", "outcome", "what was seen"}, report.Table(), "nothing was checked"); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: "the check is not complete", Err: errInterrupted}
	}
	if !report.OK() {
		return marchwarden.Errorf(marchwarden.CodeUnsupported, "it does not keep the contract")
	}
	return nil
}

func newResearchersApprove(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "approve NAME", Short: "accept the present description of a researcher's tool", Args: argCount(1, 1, "the name of one researcher"),
		Long: "Accept the description that the tool of a researcher has now, after it changed.",
		RunE: a.run(func(ctx context.Context, c *settings.Settings, args []string) error {
			return runApprove(ctx, a, c, args[0])
		}),
	}
}

func runApprove(ctx context.Context, a *app, c *settings.Settings, name string) error {
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
}

// loginPatience is how long the user may take in the browser.
const loginPatience = 10 * time.Minute

const loginHelp = `Log in with a researcher of config.yaml that is at an address and asks for it
(OAuth). Your browser is opened, or the address of the page is there to be
copied; when you have agreed, it comes back to a port of this machine. What the
researcher's authorization server gives is kept in logins.json in the home
folder, for you alone to read, sent to that researcher and no other, and renewed
by itself. To log out, remove the file.`

func newResearchersLogin(a *app) *cobra.Command {
	var port int
	var noOpen bool
	cmd := &cobra.Command{
		Use: "login NAME", Short: "log in with a researcher that asks for it", Long: loginHelp, Args: argCount(1, 1, "the name of one researcher"),
		Example: "  marchwarden researchers login lab\n  marchwarden researchers login lab --port 8765",
		RunE: a.run(func(ctx context.Context, c *settings.Settings, args []string) error {
			return runLogin(ctx, a, c, args[0], port, noOpen)
		}),
	}
	countFlag(cmd.Flags(), &port, "port", 0, 0, 65535, "`PORT` of this machine that the browser comes back to; 0 is any that is free")
	cmd.Flags().BoolVar(&noOpen, "no-open", false, "open no browser; print the address alone")
	return cmd
}

func runLogin(ctx context.Context, a *app, c *settings.Settings, name string, port int, noOpen bool) error {
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
}

func notOfConfig(name string) error {
	return invalid("NAME", "'marchwarden researchers' shows them", fmt.Sprintf("%q is no researcher of config.yaml", plaintext.Clip(name, 40)))
}
