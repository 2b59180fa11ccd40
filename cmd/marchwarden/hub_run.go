package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// running is a hub that runs.
type running struct {
	a    *app
	c    *settings.Settings
	hub  *hub.Hub
	plan hubPlan
	log  *slog.Logger
}

func runHub(ctx context.Context, a *app, c *settings.Settings, o hubOptions) error {
	p, err := o.plan(a, c)
	if err != nil {
		return err
	}
	if o.probe != "" {
		if _, err := listenAt("--probe", o.probe); err != nil {
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
	r := &running{a: a, c: c, hub: h, plan: p, log: log}
	err = r.serve(ctx, o)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil || errors.Is(err, errInterrupted) {
		err = nil // told to end, which is how a server ends
	}
	err = errors.Join(err, h.Close())
	a.note("hub has ended; everything is kept")
	return err
}

func (r *running) serve(ctx context.Context, o hubOptions) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if r.plan.hub.ClusterListen != "" {
		r.a.note("hub %s waits for the other hubs", r.hub.Name())
	}
	if err := r.hub.Ready(ctx); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	cfg := cluster.Config{InProcess: r.hub, Seed: r.hub.Seed, Name: r.hub.Name(), Now: r.a.Now, Log: r.log}
	if err := cluster.Prepare(ctx, cfg, r.plan.facts); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	engine, err := cluster.Open(ctx, cfg)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer engine.Close()
	var tending sync.WaitGroup
	tending.Go(func() { cluster.NewSteward(engine, r.hub.Name()).Run(ctx) })
	defer tending.Wait()
	defer stop(nil)
	if o.probe != "" {
		if err := serveProbe(ctx, r.a, o.probe, r.ready); err != nil {
			return err
		}
	}
	firstScreen(r.a, r.hub, r.plan)
	if o.serve.http == "" {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return r.front(ctx, o, engine)
}

// front serves MCP by the workers.
func (r *running) front(ctx context.Context, o hubOptions, engine *cluster.Engine) error {
	s := &mcpServer{log: r.log}
	d := r.a.OpenCluster(r.c, network.Options{Warn: func(message string) { r.log.Warn(message) }}, engine, r.plan.timeout)
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
