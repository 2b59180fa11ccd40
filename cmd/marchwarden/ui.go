package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/door"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/history"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/gate"
)

const uiHelp = `Open Marchwarden in your browser: ask questions and watch the researchers work,
read past answers with the evidence behind each sentence, compare runs, and see
what they cost.

The page is at http://127.0.0.1:8643. The printed link lets your browser in,
once; the browser is remembered for 30 days, over restarts too. For another
link, press Enter where the program runs.

A question that was asked on the page continues when the browser is closed, and
after a restart of this program. Runs of 'marchwarden ask' are listed, too, and
can be watched.

At an address that others can reach, each user signs in with a token of their
own ('marchwarden token add NAME') and sees the runs that were asked for with
it, and no others. Give it a certificate, or put a proxy with one before it and
name its address with --public-url.

Ctrl-C ends the program; what is being researched then is taken up again at the
next start. Where other people have accounts on this machine, use --no-open:
they can see with which address a browser is started.

EXIT STATUS
  0    told to end
  1    failed
  2    wrong usage or bad input`

// uiOptions are how the page is served.
type uiOptions struct {
	listen    string
	noOpen    bool
	team      bool
	hosts     []string
	publicURL string
	cert, key string
	maxRuns   int
	ask       askOptions // what questions are asked with
}

// uiPort is the page's port unless the user names another.
const uiPort = "127.0.0.1:8643"

// uiName is under which name the runs of the page are kept.
const uiName = "ui"

func newUI(a *app) *cobra.Command {
	var o uiOptions
	cmd := &cobra.Command{
		Use: "ui", Short: "ask, watch, read and check in your browser", Long: uiHelp, Args: noArgs,
		Example: "  marchwarden ui\n  marchwarden ui --no-open --listen 127.0.0.1:9000\n  marchwarden ui --library ~/papers --online",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := notBlank(cmd); err != nil {
				return err
			}
			return a.runUI(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", uiPort, "serve at this `ADDRESS`")
	f.BoolVar(&o.noOpen, "no-open", false, "print the link and open no browser")
	f.BoolVar(&o.team, "team", false, "let each user sign in with a token, on loopback too")
	f.StringSliceVar(&o.hosts, "allowed-hosts", nil, "`LIST` of host names that requests may be for, besides loopback and the address itself")
	f.StringVar(&o.publicURL, "public-url", "", "the `URL` by which browsers reach the page, if a proxy stands before it")
	f.StringVar(&o.cert, "tls-cert", "", "serve TLS with the certificate in this `FILE`")
	f.StringVar(&o.key, "tls-key", "", "and the key in this `FILE`")
	f.IntVar(&o.maxRuns, "max-runs", 4, "`N` questions at once; more wait for their turn")
	d := &o.ask.desk
	f.BoolVar(&d.Online, "online", false, "let questions leave this machine unless the form says otherwise: ask the web and arXiv, too")
	databaseFlags(f, d)
	f.StringVar(&d.Model, "model", "", "language `MODEL` that plans and writes; extractive for none")
	f.StringVar(&d.Search, "search", "", "search the web by this `LIST` of engines; implies --online")
	f.StringVar(&d.Render, "render", "", "`WHEN` to run pages that need JavaScript in a local Chromium: auto or never (default auto)")
	f.StringVar(&d.Timeout, "timeout", "", "end a research after this `TIME`, such as 90s (default 10m where the network is used, else none)")
	f.StringSliceVar(&d.AllowEgress, "allow-egress", nil, "`LIST` of researchers whose findings others may be told, such as files,database")
	f.StringArrayVar(&d.Library, "library", nil, "search the folder `DIR`; may be given several times")
	f.BoolVar(&d.Embedded, "embedded", false, "search the embedded library too")
	isolateFlag(f, d)
	complete(cmd, "search", network.EngineNames()...)
	complete(cmd, "render", settings.RenderAuto, settings.RenderNever)
	return cmd
}

// isOrigin reports whether a text is an address without a path.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.User == nil && (u.Path == "" || u.Path == "/") && u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && door.CheckHosts([]string{u.Host}) == nil
}

// secure reports whether browsers come by TLS: to this program, or to a proxy.
func (o *uiOptions) secure() bool {
	return o.cert != "" || strings.HasPrefix(strings.ToLower(o.publicURL), "https:")
}

// known are the host names that requests may be for, besides loopback and the address itself.
func (o *uiOptions) known() []string {
	if u, err := url.Parse(o.publicURL); err == nil && u.Host != "" {
		return append(slices.Clone(o.hosts), u.Host)
	}
	return o.hosts
}

// check refuses options that are wrong or do not go together, before anything is made.
func (o *uiOptions) check() (listen string, local bool, err error) {
	if err := usableCertificate(o.cert, o.key); err != nil {
		return "", false, err
	}
	switch {
	case o.publicURL != "" && !isOrigin(o.publicURL):
		return "", false, invalid("--public-url", "", "must be an http or https URL without a path, such as https://research.example.com")
	case o.maxRuns < 1 || o.maxRuns > network.MaxParallel:
		return "", false, invalid("--max-runs", "", fmt.Sprintf("must be from 1 to %d, not %d", network.MaxParallel, o.maxRuns))
	}
	if listen, err = listenAt("--listen", o.listen); err != nil {
		return "", false, err
	}
	if local, err = door.Loopback(listen); err != nil {
		return "", false, invalid("--listen", "", err.Error())
	}
	return listen, local, byServeFlag(door.CheckHosts(o.hosts))
}

func (a *app) runUI(ctx context.Context, o uiOptions) error {
	listen, local, err := o.check()
	if err != nil {
		return err
	}
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	if err := o.ask.desk.Check(&a.Host, c, settings.PI); err != nil {
		return err
	}
	if _, err := c.Deadline(o.ask.desk.Timeout, true); err != nil {
		return err
	}
	if err := a.StartTracing(c); err != nil { // here, since questions are asked at the same time
		return err
	}
	log := a.logger(c)
	auth, err := a.uiDoorkeeper(c, o, listen, local)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "listen on " + listen, Hint: "another program may use the port, or another 'marchwarden ui' runs: choose another one with --listen", Err: err}
	}
	b, err := a.openBureau(c, o, auth, log)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if !local && !o.secure() {
		a.warn("tokens and answers go over the network as they are: add --tls-cert and --tls-key, or a proxy and --public-url https://…")
	}
	err = b.serve(ctx, l, o, auth != nil)
	return errors.Join(err, b.close())
}

// uiDoorkeeper decides who gets in: nil is the local user alone.
func (a *app) uiDoorkeeper(c *settings.Settings, o uiOptions, listen string, local bool) (access.Authenticator, error) {
	if local && !o.team {
		return nil, nil
	}
	named, err := access.OpenTokens(c.TokensPath(), a.Now)
	if err != nil {
		return nil, err
	}
	tokens, err := named.List()
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		const hint = "make a token for each user: marchwarden token add NAME"
		if local {
			return nil, invalid("--team", hint, "is for people who sign in with a token, and there is none")
		}
		return nil, invalid("--listen", hint, plaintext.Clip(listen, 60)+" can be reached by others, and there is no token that they would need")
	}
	return named, nil
}

// bureau is all that the page works with.
type bureau struct {
	a       *app
	c       *settings.Settings
	log     *slog.Logger
	base    network.Options // what questions are asked with
	records *network.Records
	history *history.History
	runs    *runs.Desk
	server  *web.Server
	unkept  error // why nothing can be asked, if so
}

// uiKeep is how long it is known whose a run is: for as long as its trace may be there, or its
// owner could not see it any more.
const uiKeep = 100 * 366 * 24 * time.Hour

func (a *app) openBureau(c *settings.Settings, o uiOptions, auth access.Authenticator, log *slog.Logger) (*bureau, error) {
	rec, err := a.OpenRecords(c)
	if err != nil {
		return nil, err
	}
	key, err := a.sealingKey(c)
	if err != nil {
		return nil, errors.Join(err, rec.Close())
	}
	b := &bureau{a: a, c: c, log: log, base: o.ask.desk, records: rec}
	b.base.Warn, b.base.Told, b.base.Log = sayOnce(func(m string) { log.Warn(m) }), func(network.Finished) {}, log
	shown := shownRecords{rec}
	keep := runs.Config{Researcher: clerk{b}, Dir: c.RunsPath(), Now: a.Now, Name: uiName, MaxRunning: o.maxRuns, Retention: uiKeep, Log: log, Recorded: shown.Result}
	if b.runs, err = runs.Open(keep); err != nil && network.Unwritable(err) {
		a.warn("nothing can be asked on the page, since nothing can be kept: " + err.Error())
		b.unkept, keep.Dir = err, ""
		b.runs, err = runs.Open(keep)
	}
	if err != nil {
		return nil, errors.Join(err, rec.Close())
	}
	store := rec.Store()
	b.history = history.Open(history.Config{Store: store, Now: a.Now})
	b.server, err = web.New(web.Config{
		Gate:  gate.Config{Now: a.Now, Key: key, Auth: auth, Hosts: o.known(), Secure: o.secure(), Log: log},
		Runs:  b.runs,
		Store: store, History: b.history, Office: b, Tests: b,
		Spent: func() ([]ledger.Entry, error) {
			entries, _, err := ledger.Read(c.Text(settings.Ledger))
			return entries, err
		},
		Curve: b.curve, Mind: b.mind(), Now: a.Now, Zone: time.Local, Log: log,
	})
	if err != nil {
		return nil, errors.Join(err, b.runs.Close(context.Background()), rec.Close())
	}
	return b, nil
}

// sealingKey is the key of the sessions. What is there can be read where nothing can be
// written: then browsers are remembered for as long as the program runs.
func (a *app) sealingKey(c *settings.Settings) ([]byte, error) {
	key, err := gate.OpenKey(filepath.Join(c.Home(), "ui.key"), rand.Reader)
	if err == nil || !network.Unwritable(err) {
		return key, err
	}
	a.warn("browsers are forgotten when this program ends: " + err.Error())
	key = make([]byte, gate.KeySize)
	_, _ = rand.Read(key) // it never fails: the program ends if there is nothing random
	return key, nil
}

// curve is the table that turns scores into probabilities, if there is one.
func (b *bureau) curve() (*confidence.Table, error) {
	raw, err := network.CalibrationOf(b.c)
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	return confidence.TableOf(raw)
}

// mind is who writes, for people.
func (b *bureau) mind() string {
	return network.ChooseModel(b.c, b.base.Model, true).Name
}

// serve answers until ctx ends.
func (b *bureau) serve(ctx context.Context, l net.Listener, o uiOptions, team bool) error {
	srv := &http.Server{Handler: b.server.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(b.log.Handler(), slog.LevelDebug)}
	srv.RegisterOnShutdown(b.server.Close)
	b.runs.Recover()
	go func() { _, _, _ = b.history.Find(ctx, history.Query{Limit: 1}, nil) }() // what was read once is remembered: the first page does not wait for it
	scheme := "http"
	if o.cert != "" {
		scheme = "https"
	}
	base := strings.TrimSuffix(cmp.Or(o.publicURL, scheme+"://"+shownHost(l.Addr())), "/")
	served := make(chan error, 1)
	go func() {
		if o.cert != "" {
			served <- srv.ServeTLS(l, o.cert, o.key)
			return
		}
		served <- srv.Serve(l)
	}()
	if team {
		b.a.note("the page is at %s; each user signs in with a token", base)
	} else {
		b.invite(ctx, base, o.noOpen)
	}
	select {
	case err := <-served:
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "serve the page")
	case <-ctx.Done():
	}
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), uiGrace)
	defer stop()
	if err := srv.Shutdown(grace); err != nil {
		return errors.Join(srv.Close()) // what was left is closed
	}
	return nil
}

// uiGrace is how long requests in flight have to end.
const uiGrace = 3 * time.Second

// shownHost is an address for people to open: one that listens everywhere is shown by
// a name that works on this machine.
func shownHost(at net.Addr) string {
	host, port, err := net.SplitHostPort(at.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("localhost", port)
	}
	return at.String()
}

func (b *bureau) close() error {
	b.server.Close()
	return errors.Join(b.runs.Close(context.Background()), b.records.Close())
}
