package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/pdf"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
	living "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web"
)

type uiOptions struct {
	listen  string
	noOpen  bool
	team    bool
	door    doorOptions
	maxRuns int
	desk    network.Options // what questions are asked with
}

// uiPort is the page's port unless the user names another.
const uiPort = "127.0.0.1:8643"

func newUI(a *app) *cobra.Command {
	var o uiOptions
	cmd := a.verb("ui", "ask, watch, read and check in your browser", noArgs, func(ctx context.Context, c *settings.Settings, _ []string) error {
		listen, local, err := o.check()
		if err != nil {
			return err
		}
		at := c.Text(settings.Engine)
		if at != "" {
			err = workElsewhere(c, o.desk, "on the page")
		} else if err = o.desk.Check(c, settings.PI); err == nil {
			_, err = c.Deadline(o.desk.Timeout, true)
		}
		if err != nil {
			return err
		}
		auth, err := uiDoorkeeper(a, c, o, listen, local)
		if err != nil {
			return err
		}
		l, err := listenOn(listen, "'marchwarden ui' may run already; or choose another one with --listen")
		if err != nil {
			return err
		}
		b := &uiApp{a: a, log: a.logger(c), answers: network.PerQuestion{Host: &a.Host, Settings: c, Base: o.desk}}
		if at != "" {
			err = b.openCluster(ctx)
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
	})
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", uiPort, "serve at this `ADDRESS`")
	f.BoolVar(&o.noOpen, "no-open", false, "print the link and open no browser")
	f.BoolVar(&o.team, "team", false, "let each user sign in with a token, on loopback too")
	o.door.flags(f)
	countFlag(f, &o.maxRuns, "max-runs", 4, 1, network.MaxParallel, "`N` questions at once; more wait for their turn")
	optionFlags(cmd, &o.desk, append(workOptions, "allow-egress", "timeout", "isolate")...)
	engineFlag(f)
	return cmd
}

// secure reports whether browsers come by TLS: to this program, or to a proxy.
func (o *uiOptions) secure() bool {
	return o.door.cert != "" || strings.HasPrefix(strings.ToLower(o.door.publicURL), "https:")
}

// check refuses options that are wrong or do not go together, before anything is made.
func (o *uiOptions) check() (listen string, local bool, err error) {
	listen, public, err := o.door.check("--listen", o.listen)
	if public != nil && strings.Trim(public.Path, "/") != "" {
		err = invalid("--public-url", "", "must be an http or https URL without a path, such as https://research.example.com")
	}
	return listen, httpdoor.Loopback(listen), err
}

// uiDoorkeeper decides who gets in: nil is the local user alone.
func uiDoorkeeper(a *app, c *settings.Settings, o uiOptions, listen string, local bool) (access.Authenticator, error) {
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

type uiApp struct {
	answers network.PerQuestion
	a       *app
	log     *slog.Logger
	history *run.History
	runs    *runs.Desk
	server  *web.Server
	unkept  error           // why nothing can be asked, if so
	engine  *cluster.Engine // the connection to the cluster, if that answers
	pdfs    *pdf.Reader     // draws pages of cited documents
}

func (b *uiApp) open(o uiOptions, auth access.Authenticator) error {
	a, c, log := b.a, b.answers.Settings, b.log
	rec, err := a.OpenRecords(c)
	if err != nil {
		return err
	}
	b.answers.Records = rec
	b.answers.Base.Warn, b.answers.Base.Told, b.answers.Base.Log = network.Once(func(m string) { log.Warn(m) }), func(network.Finished) {}, log
	keep := runs.Config{Researcher: &b.answers, Dir: c.RunsPath(), Now: a.Now, Name: "ui", MaxRunning: o.maxRuns, Log: log, Recorded: rec.Result}
	keep.Retention = 100 * 366 * 24 * time.Hour // as long as a trace may be there: its owner could not see it otherwise
	if b.answers.Cluster != nil {               // they are kept apart: they go on there, and not on a page without the cluster
		b.answers.Cluster.Home = &submit.Home{Engine: b.engine, Traces: rec.Traces, Blobs: rec.Blobs.Folder}
		keep.Name, keep.Grace = "ui-cluster", 5*time.Second // a task that was stopped hands over what it has
	}
	if b.runs, err = runs.Open(keep); err != nil && network.Unwritable(err) {
		a.warn("nothing can be asked on the page, since nothing can be kept: " + err.Error())
		b.unkept, keep.Dir = err, ""
		b.runs, err = runs.Open(keep)
	}
	if err != nil {
		return errors.Join(err, rec.Close())
	}
	b.pdfs = pdf.New(pdf.Config{CacheDir: c.CachePath(), Timeout: 20 * time.Second, Workers: 1})
	store := rec.Store()
	b.history = run.OpenHistory(store)
	cfg := web.Config{
		Gate: httpdoor.SignInConfig{Now: a.Now, Auth: auth, Hosts: o.door.hosts, Secure: o.secure(), Log: log, Kept: filepath.Join(c.Home(), "ui-sessions.json")},
		Runs: b.runs, Store: store, History: b.history, App: b, Mind: "the workers of the cluster", Now: a.Now, Zone: time.Local, Log: log,
		Draw: func(ctx context.Context, raw []byte, at web.Passage) ([]byte, error) {
			return b.pdfs.Picture(ctx, raw, pdf.Passage(at))
		},
	}
	if b.keeps() {
		cfg.Library, cfg.Watched = uiLibrary{b}, living.In(c.Home())
	}
	if b.answers.Cluster == nil {
		cfg.Mind = network.ChooseModel(c, b.answers.Base.Model, true).Name
	}
	if b.server, err = web.New(cfg); err != nil {
		return errors.Join(err, b.runs.Close(context.Background()), rec.Close())
	}
	return nil
}

func (b *uiApp) serve(ctx context.Context, l net.Listener, o uiOptions, team bool) error {
	b.runs.Recover()
	go func() { _, _, _ = b.history.Find(ctx, run.Query{Limit: 1}, nil) }() // what was read once is remembered: the first page does not wait for it
	base := strings.TrimSuffix(cmp.Or(o.door.publicURL, httpdoor.Address(l.Addr(), o.door.cert != "")), "/")
	if team {
		b.a.note("the page is at %s; each user signs in with a token", base)
	} else {
		b.invite(base, o.noOpen)
	}
	asks, stop := context.WithCancel(ctx)
	var asking sync.WaitGroup
	if b.keeps() {
		asking.Go(func() { b.askWatched(asks) })
	}
	defer asking.Wait()
	defer stop()
	return b.server.Serve(ctx, l, o.door.cert, o.door.key)
}

func (b *uiApp) close() error {
	b.server.Close()
	return errors.Join(b.runs.Close(context.Background()), b.pdfs.Close(), b.answers.Records.Close(), b.closeCluster())
}

// invite prints a link that lets the local user's browser in and opens it, if there is a screen.
func (b *uiApp) invite(base string, noOpen bool) {
	b.a.note("the page is at %s; this link lets your browser in, once:", base)
	link := b.server.Link(base)
	fmt.Fprintln(b.a.stdout, link)
	if b.a.errStyle().Width <= 0 {
		return
	}
	if !noOpen {
		b.a.openBrowser(link)
	}
	b.a.note("Ctrl-C ends it; started again, it prints another link")
}

// openBrowser asks the system to open an address. Where it cannot, the link that was
// printed is there to be copied. What it starts outlives this program.
func (a *app) openBrowser(address string) {
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	default:
		// Without a screen xdg-open looks for a browser that works in a terminal, which would use up
		// the link unseen.
		x, _ := a.Env("DISPLAY")
		wayland, _ := a.Env("WAYLAND_DISPLAY")
		if x == "" && wayland == "" {
			return
		}
	}
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = onItsOwn()
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }() // how it ends is the browser's business
	}
}
