package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web"
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

With --engine a cluster answers: its workers decide what is searched, and every
record comes home while it is written. A question continues there when this
program ends.

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

// Under which names the runs of the page are kept, those of a cluster apart.
const (
	uiName        = "ui"
	uiClusterName = "ui-cluster"
)

// clusterGrace is how long a task that was stopped may take to hand over what it has.
const clusterGrace = 5 * time.Second

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
	engineFlag(f, &o.ask.engine)
	complete(cmd, "search", network.EngineNames()...)
	complete(cmd, "render", settings.RenderAuto, settings.RenderNever)
	return cmd
}

// isOrigin reports whether a text is an address without a path.
func isOrigin(text string) bool {
	u, ok := access.ServerURL(text)
	return ok && (u.Path == "" || u.Path == "/") && httpdoor.CheckHosts([]string{u.Host}) == nil
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
	if local, err = httpdoor.Loopback(listen); err != nil {
		return "", false, invalid("--listen", "", err.Error())
	}
	return listen, local, byServeFlag(httpdoor.CheckHosts(o.hosts))
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
	at, err := c.EngineURLFor(o.ask.engine)
	if err != nil {
		return err
	}
	if at != "" {
		err = workElsewhere(c, o.ask.desk, "on the page")
	} else if err = o.ask.desk.Check(&a.Host, c, settings.PI); err == nil {
		_, err = c.Deadline(o.ask.desk.Timeout, true)
	}
	if err != nil {
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
	b := &uiApp{a: a, c: c, log: log, base: o.ask.desk}
	if at != "" {
		err = b.openCluster(ctx, at)
	}
	if err == nil {
		err = b.open(o, auth)
	}
	if err != nil {
		return errors.Join(err, l.Close(), b.closeCluster())
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
	auth, err := access.Open(c.TokensPath(), a.Now, false)
	if errors.Is(err, access.ErrNoToken) {
		const hint = "make a token for each user: marchwarden token add NAME"
		if local {
			return nil, invalid("--team", hint, "is for people who sign in with a token, and there is none")
		}
		return nil, invalid("--listen", hint, noTokenFor(listen))
	}
	return auth, err
}

// uiApp is all that the page works with.
type uiApp struct {
	a       *app
	c       *settings.Settings
	log     *slog.Logger
	base    network.Options // what questions are asked with
	records *network.Records
	history *run.History
	runs    *runs.Desk
	server  *web.Server
	unkept  error // why nothing can be asked, if so
	// cluster answers the questions; nil if this process does. engine is its connection.
	cluster *submit.Cluster
	engine  *cluster.Engine
}

// uiKeep is how long it is known whose a run is: for as long as its trace may be there, or its
// owner could not see it any more.
const uiKeep = 100 * 366 * 24 * time.Hour

// open opens the records, the runs and the page.
func (b *uiApp) open(o uiOptions, auth access.Authenticator) error {
	a, c, log := b.a, b.c, b.log
	rec, err := a.OpenRecords(c)
	if err != nil {
		return err
	}
	key, err := a.sealingKey(c)
	if err != nil {
		return errors.Join(err, rec.Close())
	}
	b.records = rec
	b.base.Warn, b.base.Told, b.base.Log = sayOnce(func(m string) { log.Warn(m) }), func(network.Finished) {}, log
	keep := runs.Config{Researcher: uiResearcher{b}, Dir: c.RunsPath(), Now: a.Now, Name: uiName, MaxRunning: o.maxRuns, Retention: uiKeep, Log: log, Recorded: rec.Result}
	if b.cluster != nil { // they go on there, and not on a page without the cluster
		b.cluster.Home = &submit.Home{Engine: b.engine, Traces: rec.Traces, Blobs: rec.Blobs.Store}
		keep.Name, keep.Grace = uiClusterName, clusterGrace
	}
	if b.runs, err = runs.Open(keep); err != nil && network.Unwritable(err) {
		a.warn("nothing can be asked on the page, since nothing can be kept: " + err.Error())
		b.unkept, keep.Dir = err, ""
		b.runs, err = runs.Open(keep)
	}
	if err != nil {
		return errors.Join(err, rec.Close())
	}
	store := rec.Store()
	b.history = run.OpenHistory(store, a.Now)
	b.server, err = web.New(web.Config{
		Gate:  httpdoor.SignInConfig{Now: a.Now, Key: key, Auth: auth, Hosts: o.known(), Secure: o.secure(), Log: log},
		Runs:  b.runs,
		Store: store, History: b.history, App: b,
		Spent: func() ([]ledger.Entry, error) {
			entries, _, err := ledger.Read(c.Text(settings.Ledger))
			return entries, err
		},
		Curve: b.curve, Mind: b.mind(), Now: a.Now, Zone: time.Local, Log: log,
	})
	if err != nil {
		return errors.Join(err, b.runs.Close(context.Background()), rec.Close())
	}
	return nil
}

// sealingKey is the key of the sessions. What is there can be read where nothing can be
// written: then browsers are remembered for as long as the program runs.
func (a *app) sealingKey(c *settings.Settings) ([]byte, error) {
	key, err := httpdoor.OpenKey(filepath.Join(c.Home(), "ui.key"), rand.Reader)
	if err == nil || !network.Unwritable(err) {
		return key, err
	}
	a.warn("browsers are forgotten when this program ends: " + err.Error())
	key = make([]byte, httpdoor.KeySize)
	_, _ = rand.Read(key) // it never fails: the program ends if there is nothing random
	return key, nil
}

// curve is the table that turns scores into probabilities, if there is one.
func (b *uiApp) curve() (*confidence.Table, error) {
	raw, err := network.CalibrationOf(b.c)
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	return confidence.TableOf(raw)
}

// mind is who writes, for people.
func (b *uiApp) mind() string {
	if b.cluster != nil {
		return "the workers of the cluster"
	}
	return network.ChooseModel(b.c, b.base.Model, true).Name
}

// serve answers until ctx ends.
func (b *uiApp) serve(ctx context.Context, l net.Listener, o uiOptions, team bool) error {
	b.runs.Recover()
	go func() { _, _, _ = b.history.Find(ctx, run.Query{Limit: 1}, nil) }() // what was read once is remembered: the first page does not wait for it
	base := strings.TrimSuffix(cmp.Or(o.publicURL, httpdoor.Address(l.Addr(), o.cert != "")), "/")
	if team {
		b.a.note("the page is at %s; each user signs in with a token", base)
	} else {
		b.invite(ctx, base, o.noOpen)
	}
	return b.server.Serve(ctx, l, o.cert, o.key)
}

func (b *uiApp) close() error {
	b.server.Close()
	return errors.Join(b.runs.Close(context.Background()), b.records.Close(), b.closeCluster())
}
