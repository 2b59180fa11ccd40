package main

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/telemetry"
)

// mcpServer is a researcher that is being served.
type mcpServer struct {
	name    string
	log     *slog.Logger
	server  *mcpkit.Server
	metrics *httpdoor.Metrics // nil on stdio
}

// open puts the server around a researcher.
func (s *mcpServer) open(a *app, c *settings.Settings, d *network.Runner, how *serveOptions, wall time.Duration) (err error) {
	s.name = d.Name
	cfg := mcpkit.Config{
		Name: d.Name, Version: programVersion(), Scope: d.Scope, OpenWorld: d.OpenWorld, Private: d.Private, Researcher: s.metrics.Failures(d, a.Now), Evidence: d.Evidence,
		Now: a.Now, RunsDir: c.RunsPath(), MaxConcurrent: how.maxCalls, Records: d.Shown, MaxWall: wall, Log: s.log,
		App: &mcpkit.App{Page: report.AppPage(), Body: report.AppBody},
	}
	if d.Shown == nil {
		cfg.Records = d.Records
	}
	if d.PartOf { // its investigation keeps it, and says how much goes on at once
		cfg.RunsDir, cfg.MaxConcurrent = "", maxCalls
	}
	cfg.Observe = func(ctx context.Context, op mcpkit.Operation, meta map[string]any) (context.Context, func(error)) {
		end := func(error) {}
		if a.Tracer != nil {
			ctx, end = a.Tracer.Serve(ctx, telemetry.Op(op), meta)
		}
		began := a.Now()
		return ctx, func(err error) {
			end(err)
			s.metrics.ObserveOperation(op.Method, cmp.Or(string(marchwarden.CodeOf(err)), "ok"), a.Now().Sub(began))
		}
	}
	s.server, err = mcpkit.NewServer(cfg)
	return err
}

// count tells the metrics of a finished research.
func (s *mcpServer) count(f network.Finished) {
	how := "answered"
	if f.Result.CostMetadata.BudgetExhausted {
		how = "budget_exhausted"
	}
	cost := f.Result.CostMetadata
	s.metrics.ObserveResearch(how, time.Duration((cost.WallTimeSec-f.Before.WallTimeSec)*float64(time.Second)), cost.TokensUsed-f.Before.TokensUsed)
}
