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

	"github.com/spf13/pflag"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// The most that a server may be told to do at once, and as often.
const (
	maxCalls = 10_000
	maxRate  = 100_000
)

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

	as servedAs // what they come to, once they are checked
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
	f.StringSliceVar(&o.hosts, "allowed-hosts", nil, "`LIST` of host names that requests may be for, besides loopback and the address itself")
	f.StringVar(&o.cert, "tls-cert", "", "serve TLS with the certificate in this `FILE`")
	f.StringVar(&o.key, "tls-key", "", "and the key in this `FILE`")
}

// check refuses options that are wrong, and completes the address of a flag. The public URL is nil
// for none; its host is one of the hosts from now on.
func (o *doorOptions) check(flag, address string) (listen string, public *url.URL, err error) {
	if listen, err = listenAt(flag, address); err != nil {
		return "", nil, err
	}
	if err := usableCertificate(o.cert, o.key); err != nil {
		return "", nil, err
	}
	if err := byServeFlag(httpdoor.CheckHosts(o.hosts)); err != nil || o.publicURL == "" {
		return listen, nil, err
	}
	public, ok := access.ServerURL(o.publicURL)
	if !ok || httpdoor.CheckHosts([]string{public.Host}) != nil {
		return "", nil, invalid("--public-url", "", "must be an http or https URL such as https://research.example.com")
	}
	o.hosts = append(o.hosts, public.Host)
	return listen, public, nil
}

type servedAs struct {
	wall   time.Duration // mcpkit.Config.MaxWall
	listen string
}

// check refuses options that are wrong or do not go together, before anything is made.
func (o *serveOptions) check() (servedAs, error) {
	var s servedAs
	var err error
	if s.wall, err = flagTime("--max-wall", o.maxWall, true); err != nil {
		return s, err
	}
	switch {
	case o.maxCalls < 0 || o.maxCalls > maxCalls:
		return s, invalid("--max-calls", "", fmt.Sprintf("must be from 1 to %d, not %d", maxCalls, o.maxCalls))
	case !(o.rate >= 0) || o.rate > maxRate:
		return s, invalid("--rate", "", fmt.Sprintf("must be above 0 and at most %d", maxRate))
	case o.issuer == "" && o.audience != "":
		return s, invalid("--oauth-issuer", "", "must be given with --oauth-audience")
	case o.noAuth && o.issuer != "":
		return s, invalid("--no-auth", "leave out one of the two", "asks for no token, and --oauth-issuer says whose tokens to ask for")
	case o.http == "":
		return s, o.onlyHTTP()
	}
	if s.listen, _, err = o.door.check("--http", o.http); err != nil {
		return s, err
	}
	return s, byServeFlag(httpdoor.CheckOrigins(o.origins))
}

// usableCertificate refuses files of a certificate that nothing could be served with.
func usableCertificate(cert, key string) error {
	switch {
	case (cert == "") != (key == ""):
		return invalid("--tls-cert", "", "needs --tls-key, and --tls-key needs --tls-cert")
	case cert == "":
		return nil
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		return invalid("--tls-cert", "give the two PEM files of one certificate", "cannot be used with --tls-key: "+durable.Cause(err))
	}
	return nil
}

// onlyHTTP refuses the flags that are for HTTP alone.
func (o *serveOptions) onlyHTTP() error {
	for _, f := range []struct {
		flag  string
		given bool
	}{{"--public-url", o.door.publicURL != ""}, {"--allowed-hosts", len(o.door.hosts) > 0}, {"--allowed-origins", len(o.origins) > 0}, {"--rate", o.rate != 0},
		{"--tls-cert", o.door.cert != ""}, {"--tls-key", o.door.key != ""}, {"--oauth-issuer", o.issuer != ""}, {"--no-auth", o.noAuth}} {
		if f.given {
			return invalid(f.flag, "add --http 127.0.0.1:8642, or leave it out", "is for a server over HTTP")
		}
	}
	return nil
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
	listen := o.as.listen
	local := httpdoor.Loopback(listen)
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
	listener, err := listenOn(o.as.listen, "choose another one")
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
