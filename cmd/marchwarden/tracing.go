package main

import (
	"context"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/telemetry"
)

// tracingEnd is how long a command waits, when it is done, for a collector to take the
// last spans.
const tracingEnd = 2 * time.Second

// startTracing begins to send spans, once, if OTEL_* says where to. The first call is to
// have returned before anybody else calls: later ones only look.
func (a *app) startTracing(c *settings.Settings) (err error) {
	if a.traced {
		return nil
	}
	look := func(name string) string {
		v, _ := a.env(name)
		return v
	}
	a.tracer, err = telemetry.Start(telemetry.Config{Env: look, Service: "marchwarden", Version: programVersion(), Now: a.now, Log: a.logger(c)})
	a.traced = err == nil
	return err
}

// endTracing sends what there is left to send.
func (a *app) endTracing() {
	ctx, cancel := context.WithTimeout(context.Background(), tracingEnd)
	defer cancel()
	_ = a.tracer.Close(ctx) // spans that a collector does not take are lost, and nothing else
}
