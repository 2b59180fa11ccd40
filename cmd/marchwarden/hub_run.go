package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

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
	p.hub.Log = a.logger(c)
	h, err := hub.Start(p.hub)
	if err != nil {
		return p.blame(err)
	}
	err = serveHub(ctx, a, h, p, o.probe, a.serverLog(c))
	if errors.Is(err, context.Canceled) && ctx.Err() != nil || errors.Is(err, errInterrupted) {
		err = nil // told to end, which is how a server ends
	}
	err = errors.Join(err, h.Close())
	a.note("hub has ended; everything is kept")
	return err
}

// serveHub keeps a cluster in order at a hub until ctx ends.
func serveHub(ctx context.Context, a *app, h *hub.Hub, p hubPlan, probe string, log *slog.Logger) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if p.hub.ClusterListen != "" {
		a.note("hub %s waits for the other hubs", h.Name())
	}
	if err := h.Ready(ctx); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	cfg := cluster.Config{InProcess: h, Seed: h.Seed, Name: h.Name(), Now: a.Now, Log: log}
	if err := cluster.Prepare(ctx, cfg, p.facts); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	engine, err := cluster.Open(ctx, cfg)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer engine.Close()
	var tending sync.WaitGroup
	tending.Go(func() { cluster.NewSteward(engine, h.Name()).Run(ctx) })
	defer tending.Wait()
	defer stop(nil)
	if probe != "" {
		err := serveProbe(ctx, a, probe, func() error {
			ctx, done := context.WithTimeout(context.Background(), time.Second)
			defer done()
			return h.Ready(ctx)
		})
		if err != nil {
			return err
		}
	}
	firstScreen(a, h, p)
	<-ctx.Done()
	return context.Cause(ctx)
}
