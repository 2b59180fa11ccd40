package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

func newServe(a *app) *cobra.Command {
	return group(&cobra.Command{Use: "serve", Short: "let other programs ask a researcher, over MCP"},
		newServed(a, settings.PI, "the investigator", "Its network is chosen as for 'marchwarden ask'; with --engine, the workers of a\ncluster are.",
			"marchwarden serve pi --online --library ~/papers", append(workOptions, "researchers", "allow-egress", "isolate")...),
		newServed(a, researcher.FilesName, "your folders, or the embedded library,", "What is searched is chosen as for 'marchwarden ask'.",
			"marchwarden serve files --library ~/notes", "model", "library", "embedded"),
		newServed(a, database.Name, "a database, read-only,", "The database is the one of --db or MARCHWARDEN_DB; nothing in it can be changed.",
			"MARCHWARDEN_DB=postgres://me@localhost/trials marchwarden serve database", "model", "db", "allow-samples"),
		newServed(a, researcher.WebName, "the open web", "Search engines and model are chosen as for 'marchwarden ask --researcher web'.",
			"marchwarden serve web --search searxng --model ollama/qwen3", "model", "search"),
		newServed(a, researcher.ArxivName, "scientific papers", "It asks arXiv, OpenAlex, Crossref and Semantic Scholar, which need no key.",
			"marchwarden serve arxiv --model ollama/qwen3", "model"))
}

// newServed is the command of one researcher, with the flags that all of them have and its own.
// The help says what it serves in short, and one line that is particular to it.
func newServed(a *app, researcher, short, particular, example string, options ...string) *cobra.Command {
	o := &network.Options{Choice: marchwarden.Choice{Researcher: researcher}}
	who := "the " + o.Researcher + " researcher"
	if o.Researcher == settings.PI {
		who = "the investigator"
	}
	var how serveOptions
	cmd := &cobra.Command{
		Use: o.Researcher, Short: "serve " + short + " over MCP", Args: noArgs,
		Long:    "Serve " + who + " over MCP: one tool, research.\n" + particular + "\n\n'marchwarden help mcp' says how it is served, and to whom.",
		Example: "  " + example + "\n  marchwarden serve " + o.Researcher + " --http 127.0.0.1:8642",
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if o.PartOf {
				a.reader = investigator
			}
			for _, name := range []string{"public-url", "allowed-hosts", "allowed-origins", "rate", "tls-cert", "tls-key", "oauth-issuer", "no-auth"} {
				if f := cmd.Flags().Lookup(name); how.http == "" && f.Changed && f.Value.String() != f.DefValue {
					return invalid("--"+name, "add --http 127.0.0.1:8642, or leave it out", "is for a server over HTTP")
				}
			}
			return how.check()
		},
		RunE: a.run(func(ctx context.Context, c *settings.Settings, _ []string) error {
			return runServe(ctx, a, c, *o, &how)
		}),
	}
	f := cmd.Flags()
	if o.Researcher == settings.PI {
		engineFlag(f)
	}
	f.BoolVar(&o.PartOf, "part-of-investigation", false, "leave the ledger to the investigator that started this server")
	_ = f.MarkHidden("part-of-investigation") // the flag is there
	how.flags(f)
	optionFlags(cmd, o, append(options, "timeout")...)
	return cmd
}

func runServe(ctx context.Context, a *app, c *settings.Settings, o network.Options, how *serveOptions) error {
	log := a.logger(c)
	o.Log = log
	o.Warn = network.Once(func(message string) { log.Warn(message) })
	if how.http != "" { // refused before anything is opened, and read again when it is
		if _, err := doorkeeper(a, c, how, "http://"+how.listen+httpdoor.Path, log); err != nil {
			return err
		}
	}
	d, err := openServed(ctx, a, c, o, how)
	if err != nil {
		return err
	}
	server, err := newMCPServer(a, c, d, how, log)
	if err != nil {
		return errors.Join(err, d.Close())
	}
	if how.http != "" {
		err = serveHTTP(ctx, a, c, how, d.Name, server, log)
	} else {
		err = server.ServeStdio(ctx, a.stdin, a.stdout)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil // told to end, which is how a server ends
	}
	return errors.Join(err, server.Close(), d.Close())
}

// openServed opens the researcher that is served: of this machine, or a cluster.
func openServed(ctx context.Context, a *app, c *settings.Settings, o network.Options, how *serveOptions) (*network.Runner, error) {
	if o.Researcher != settings.PI || c.Text(settings.Engine) == "" {
		return a.Open(c, o)
	}
	if err := workElsewhere(c, o, "it"); err != nil {
		return nil, err
	}
	if len(o.Researchers) > 0 || len(o.AllowEgress) > 0 {
		return nil, invalid("--engine", "leave out --researchers and --allow-egress", "leaves it to the workers of the cluster who is asked, and what they are told")
	}
	limit, err := flagTime("--timeout", o.Timeout, false)
	if err != nil {
		return nil, err
	}
	e, err := a.openCluster(ctx, c, o.Log)
	if err != nil {
		return nil, err
	}
	d := a.OpenCluster(c, o, e, limit)
	d.Closers = append(d.Closers, e.Close)
	return d, nil
}

func newMCPServer(a *app, c *settings.Settings, d *network.Runner, how *serveOptions, log *slog.Logger) (*mcpkit.Server, error) {
	cfg := mcpkit.Config{
		Name: d.Name, Version: programVersion(), Scope: d.Scope, OpenWorld: d.OpenWorld, Private: d.Private, Researcher: d, Evidence: d.Evidence,
		Now: a.Now, RunsDir: c.RunsPath(), MaxConcurrent: how.maxCalls, Records: cmp.Or[mcpkit.Records](d.Shown, d.Records), MaxWall: how.wall, Log: log,
		App: &mcpkit.App{Page: report.AppPage(), Body: report.AppBody},
	}
	if d.PartOf { // its investigation keeps it, and says how much goes on at once
		cfg.RunsDir, cfg.MaxConcurrent = "", maxCalls
	}
	return mcpkit.NewServer(cfg)
}

// maxCalls is the most that a server may be told to do at once.
const maxCalls = 10_000

type serveOptions struct {
	maxWall  string
	maxCalls int

	http     string // the address to listen on; "" is stdio
	door     doorOptions
	origins  []string
	rate     float64
	issuer   string
	audience string
	noAuth   bool

	// What they come to, once they are checked: mcpkit.Config.MaxWall, and where to listen.
	wall   time.Duration
	listen string
}

func (o *serveOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.maxWall, "max-wall", "", "after this `TIME` a call hands over what there is, and the work goes on (default 50s for clients that want no progress; never to switch it off)")
	f.IntVar(&o.maxCalls, "max-calls", 0, fmt.Sprintf("`N` research calls at once; more wait for their turn (default %d)", mcpkit.DefaultConcurrent))
	f.StringVar(&o.http, "http", "", "serve over HTTP at this `ADDRESS`, such as 127.0.0.1:8642, instead of on stdio")
	o.door.flags(f)
	f.StringSliceVar(&o.origins, "allowed-origins", nil, "`LIST` of web origins that browsers may call from")
	f.Float64Var(&o.rate, "rate", 0, "`N` HTTP requests a second of one caller (default 50)")
	f.StringVar(&o.issuer, "oauth-issuer", "", "take access tokens of the authorization server at this `URL`")
	f.StringVar(&o.audience, "oauth-audience", "", "the `URI` that those tokens must be for (default the URL of this server)")
	f.BoolVar(&o.noAuth, "no-auth", false, "ask for no token, although there are some; on loopback only")
}

// doorOptions say how a server over HTTP is reached.
type doorOptions struct {
	publicURL string
	hosts     []string
	cert, key string
}

func (o *doorOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.publicURL, "public-url", "", "the `URL` by which clients reach the server, if a proxy stands before it")
	f.StringSliceVar(&o.hosts, "allowed-hosts", nil, "`LIST` of host names that requests may be for, beside loopback and the address itself")
	f.StringVar(&o.cert, "tls-cert", "", "serve TLS with the certificate in this `FILE`")
	f.StringVar(&o.key, "tls-key", "", "and the key in this `FILE`")
}

// check refuses options that are wrong, and completes the address of a flag. The public URL is nil
// for none; its host is one of the hosts from now on.
func (o *doorOptions) check(flag, address string) (listen string, public *url.URL, err error) {
	if listen, err = listenAt(flag, address); err != nil {
		return "", nil, err
	}
	if (o.cert == "") != (o.key == "") {
		return "", nil, invalid("--tls-cert", "", "needs --tls-key, and --tls-key needs --tls-cert")
	}
	if o.cert != "" {
		if _, err := tls.LoadX509KeyPair(o.cert, o.key); err != nil {
			return "", nil, invalid("--tls-cert", "give the two PEM files of one certificate", "cannot be used with --tls-key: "+durable.Cause(err))
		}
	}
	if err := byServeFlag(httpdoor.CheckHosts(o.hosts, nil)); err != nil || o.publicURL == "" {
		return listen, nil, err
	}
	public, ok := access.ServerURL(o.publicURL)
	if !ok || httpdoor.CheckHosts([]string{public.Host}, nil) != nil {
		return "", nil, invalid("--public-url", "", "must be an http or https URL such as https://research.example.com")
	}
	o.hosts = append(o.hosts, public.Host)
	return listen, public, nil
}

// check refuses options that are wrong or do not go together, before anything is made.
func (o *serveOptions) check() (err error) {
	if o.wall, err = flagTime("--max-wall", o.maxWall, true); err != nil {
		return err
	}
	switch {
	case o.maxCalls < 0 || o.maxCalls > maxCalls:
		return invalid("--max-calls", "", fmt.Sprintf("must be from 1 to %d, not %d", maxCalls, o.maxCalls))
	case !(o.rate >= 0) || o.rate > 100_000:
		return invalid("--rate", "", "must be above 0 and at most 100000")
	case o.issuer == "" && o.audience != "":
		return invalid("--oauth-issuer", "", "must be given with --oauth-audience")
	case o.noAuth && o.issuer != "":
		return invalid("--no-auth", "leave out one of the two", "asks for no token, and --oauth-issuer says whose tokens to ask for")
	case o.http == "":
		return nil
	}
	if o.listen, _, err = o.door.check("--http", o.http); err != nil {
		return err
	}
	return byServeFlag(httpdoor.CheckHosts(nil, o.origins))
}

// flagTime reads a time; "" is 0, and never, where that may be said, is below 0.
func flagTime(flag, text string, never bool) (time.Duration, error) {
	switch {
	case text == "":
		return 0, nil
	case never && text == "never":
		return -1, nil
	}
	d, problem := settings.ParseSpan(text)
	if problem != "" {
		return 0, invalid(flag, "", problem)
	}
	return d, nil
}

// listenOn opens a port; instead is what to do where that cannot be.
func listenOn(at, instead string) (net.Listener, error) {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "listen on " + at, Hint: "another program may use the port: " + instead, Err: err}
	}
	return l, nil
}

// listenAt completes an address: a port alone is one of this machine.
func listenAt(flag, text string) (string, error) {
	at, err := httpdoor.ListenAddress(text)
	return at, settings.Renamed(err, map[string]string{"address": flag})
}

// doorkeeper decides which callers the server accepts. nil accepts every caller that reaches its
// address, which must then be loopback.
func doorkeeper(a *app, c *settings.Settings, o *serveOptions, resource string, log *slog.Logger) (access.Authenticator, error) {
	listen, local := o.listen, httpdoor.Loopback(o.listen)
	if o.noAuth {
		if !local {
			return nil, invalid("--no-auth", "make a token: marchwarden token add NAME", "is for a loopback address, and "+plaintext.Clip(listen, 60)+" can be reached by others")
		}
		return nil, nil
	}
	var others []access.Authenticator
	if token := c.Text(settings.HTTPToken); token != "" {
		fixed, err := access.Fixed(settings.EnvOf(settings.HTTPToken), token)
		if err != nil {
			return nil, invalid(c.Label(settings.HTTPToken), "make one: marchwarden token add NAME", err.Error())
		}
		others = append(others, fixed)
	}
	if o.issuer != "" {
		if !local && o.audience == "" && o.door.publicURL == "" { // a listening address is no name that tokens could be made for
			return nil, invalid("--oauth-issuer", "add --public-url https://research.example.com/mcp", "needs --public-url or --oauth-audience at an address that others can reach")
		}
		oauth, err := access.NewOAuth(access.OAuthConfig{Issuer: o.issuer, Audience: cmp.Or(o.audience, resource), HTTP: a.ServiceClient(), Now: a.Now, Log: log})
		if err != nil {
			return nil, byServeFlag(err)
		}
		others = append(others, oauth)
	}
	auth, err := access.Open(c.TokensPath(), a.Now, local, others...)
	if errors.Is(err, access.ErrNoToken) {
		return nil, invalid("--http", "make a token (marchwarden token add NAME), set "+settings.EnvOf(settings.HTTPToken)+", or use --oauth-issuer", noTokenFor(listen))
	}
	return auth, err
}

// noTokenFor says why an address cannot be served.
func noTokenFor(listen string) string {
	return plaintext.Clip(listen, 60) + " can be reached by others, and there is no token that they would need"
}

// byServeFlag names the flag that a wrong field of a configuration comes from.
func byServeFlag(err error) error {
	return settings.Renamed(err, map[string]string{"issuer": "--oauth-issuer", "audience": "--oauth-audience",
		"hosts": "--allowed-hosts", "origins": "--allowed-origins"})
}

func serveHTTP(ctx context.Context, a *app, c *settings.Settings, o *serveOptions, name string, server *mcpkit.Server, log *slog.Logger) error {
	listener, err := listenOn(o.listen, "choose another one")
	if err != nil {
		return err
	}
	address := httpdoor.Address(listener.Addr(), o.door.cert != "") + httpdoor.Path
	resource := cmp.Or(o.door.publicURL, address)
	auth, err := doorkeeper(a, c, o, resource, log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	cfg := httpdoor.Config{
		Auth: auth, Scope: access.ScopeResearch + " " + access.ScopeRead, Hosts: o.door.hosts, Origins: o.origins, Rate: o.rate, MaxInFlight: max(4096, 4*o.maxCalls),
		Now: a.Now, Log: log, CertFile: o.door.cert, KeyFile: o.door.key,
	}
	if o.issuer != "" {
		if cfg.Metadata, cfg.MetadataURL, err = access.Metadata(resource, o.issuer, "Marchwarden "+name); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	d, err := server.Door(cfg)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	who := "a token is needed"
	if auth == nil {
		who = "no token is needed"
	}
	a.note("serving %s at %s; %s", name, address, who)
	server.Recover()
	return d.Serve(ctx, listener)
}
