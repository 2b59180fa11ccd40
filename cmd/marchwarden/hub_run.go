package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/meter"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// running is a hub that runs, with its accounts.
type running struct {
	a        *app
	c        *settings.Settings
	hub      *hub.Hub
	plan     hubPlan
	log      *slog.Logger
	accounts cluster.Accounts
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
	r := &running{a: a, c: c, hub: h, plan: p, log: log, accounts: cluster.Accounts{Hub: h.Name(), Names: h.Accounts, Facts: p.facts, Log: log, Config: func(account string) (cluster.Config, error) {
		own, err := h.Account(account)
		if err != nil {
			return cluster.Config{}, err
		}
		return cluster.Config{InProcess: own, Seed: own.Seed, Name: h.Name(), Now: a.Now, Log: log, AccessKey: c.Text(settings.S3Key), SecretKey: c.Text(settings.S3Secret)}, nil
	}}}
	err = r.serve(ctx, o)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil || errors.Is(err, errInterrupted) {
		err = nil // told to end, which is how a server ends
	}
	return errors.Join(err, r.close())
}

func (r *running) serve(ctx context.Context, o hubOptions) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer r.accounts.Wait()
	defer stop(nil)
	if r.plan.hub.ClusterListen != "" {
		r.a.note("hub %s waits for the other hubs", r.hub.Name())
	}
	if err := r.hub.Ready(ctx); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	engine, steward, err := r.accounts.Tend(ctx, hub.DefaultAccount)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	m := meter.New(meter.Config{Now: r.a.Now, Status: engine.Status, Steward: steward.Stats})
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
	return r.front(ctx, o, m, engine)
}

// front serves MCP by the workers of the default account.
func (r *running) front(ctx context.Context, o hubOptions, m *meter.Meter, engine *cluster.Engine) error {
	s := &mcpServer{log: r.log, metrics: httpdoor.NewMetrics(programVersion())}
	if err := s.metrics.Add(m); err != nil {
		return err
	}
	d := r.a.OpenCluster(r.c, network.Options{Warn: func(message string) { r.log.Warn(message) }, Told: s.count}, engine, r.plan.timeout)
	if err := s.open(r.a, r.c, d, &o.serve); err != nil {
		return errors.Join(err, d.Close())
	}
	err := serveHTTP(ctx, r.a, r.c, &o.serve, s)
	return errors.Join(err, s.server.Close(), d.Close())
}

// ready says what keeps the hub from being of use.
func (r *running) ready() error {
	ctx, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	return r.hub.Ready(ctx)
}

// close ends the hub, and all that uses it first.
func (r *running) close() error {
	err := errors.Join(r.accounts.Close(), r.hub.Close())
	r.a.note("hub has ended; everything is kept")
	return err
}
