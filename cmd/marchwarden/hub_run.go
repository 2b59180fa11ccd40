package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/meter"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// running is a hub that runs, with the engine and the steward of each of its accounts.
type running struct {
	a    *app
	c    *settings.Settings
	hub  *hub.Hub
	plan hubPlan
	log  *slog.Logger

	group sync.WaitGroup // stewards, and the watcher for new accounts

	engine  *cluster.Engine  // of the default account
	steward *cluster.Steward // of the default account

	// engines are those of all accounts. They are made by one goroutine at a time: serve, then
	// newcomers until the group has ended.
	engines map[string]*cluster.Engine
}

func runHub(ctx context.Context, a *app, c *settings.Settings, o hubOptions) error {
	p, err := o.plan(a, c)
	if err != nil {
		return err
	}
	if o.metrics != "" {
		if _, err := listenAt("--metrics", o.metrics); err != nil {
			return err
		}
	}
	log := a.serverLog(c)
	if o.serve.http != "" { // refused before anything is opened, and read again when it is
		if _, err := doorkeeper(a, c, &o.serve, "http://"+o.serve.as.listen+httpdoor.Path, log); err != nil {
			return err
		}
	}
	p.hub.Log = a.logger(c)
	h, err := hub.Start(p.hub)
	if err != nil {
		return p.blame(err)
	}
	r := &running{a: a, c: c, hub: h, plan: p, log: log, engines: map[string]*cluster.Engine{}}
	err = r.serve(ctx, o)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil || errors.Is(err, errInterrupted) {
		err = nil // told to end, which is how a server ends
	}
	return errors.Join(err, r.close())
}

func (r *running) serve(ctx context.Context, o hubOptions) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer r.group.Wait()
	defer stop(nil)
	if r.plan.hub.ClusterListen != "" {
		r.a.note("hub %s waits for the other hubs", r.hub.Name())
	}
	if err := r.hub.Ready(ctx); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	for _, account := range r.hub.Accounts() {
		if err := r.tend(ctx, account); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
	}
	r.group.Go(func() { r.newcomers(ctx) })
	m := meter.New(meter.Config{Now: r.a.Now, Status: r.engine.Status, Steward: r.steward.Stats})
	if o.metrics != "" {
		if err := serveProbe(ctx, r.a, o.metrics, m, r.ready); err != nil {
			return err
		}
	}
	firstScreen(r.a, r.hub, r.plan)
	if o.serve.http == "" {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return r.front(ctx, o, m)
}

// front serves MCP by the workers of the default account.
func (r *running) front(ctx context.Context, o hubOptions, m *meter.Meter) error {
	s := &mcpServer{log: r.log, metrics: httpdoor.NewMetrics(programVersion())}
	if err := s.metrics.Add(m); err != nil {
		return err
	}
	d := r.a.OpenCluster(r.c, network.Options{Warn: func(message string) { r.log.Warn(message) }, Told: s.count}, r.engine, r.plan.timeout)
	if err := s.open(r.a, r.c, d, &o.serve); err != nil {
		return errors.Join(err, d.Close())
	}
	err := serveHTTP(ctx, r.a, r.c, &o.serve, s)
	return errors.Join(err, s.server.Close(), d.Close())
}

// tend prepares an account for a cluster and begins to keep it in order.
func (r *running) tend(ctx context.Context, account string) error {
	access, err := r.hub.Account(account)
	if err != nil {
		return err
	}
	cfg := cluster.Config{InProcess: access, Seed: access.Seed, Name: r.hub.Name(), Now: r.a.Now, Log: r.log,
		AccessKey: r.c.Text(settings.S3Key), SecretKey: r.c.Text(settings.S3Secret)}
	if err := cluster.Prepare(ctx, cfg, r.plan.facts); err != nil {
		return fmt.Errorf("prepare the account %s: %w", account, err)
	}
	e, err := cluster.Open(ctx, cfg)
	if err != nil {
		return fmt.Errorf("open the account %s: %w", account, err)
	}
	s := cluster.NewSteward(e, r.hub.Name())
	if account == hub.DefaultAccount {
		r.engine, r.steward = e, s
	}
	r.engines[account] = e
	r.group.Go(func() { s.Run(ctx) })
	return nil
}

// newcomers prepares accounts whose first key is added while the hub runs.
func (r *running) newcomers(ctx context.Context) {
	const every = 2 * time.Second
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		for _, account := range r.hub.Accounts() {
			if r.engines[account] != nil {
				continue
			}
			if err := r.tend(ctx, account); err != nil && ctx.Err() == nil {
				r.log.Error("an account cannot be used yet", "account", account, "error", err)
			}
		}
	}
}

// ready says what keeps the hub from being of use.
func (r *running) ready() error {
	ctx, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	return r.hub.Ready(ctx)
}

// close ends the hub, and all that uses it first.
func (r *running) close() error {
	var errs []error
	for _, e := range r.engines {
		errs = append(errs, e.Close())
	}
	errs = append(errs, r.hub.Close())
	r.a.note("hub has ended; everything is kept")
	return errors.Join(errs...)
}
