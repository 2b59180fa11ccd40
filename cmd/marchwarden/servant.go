package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/door"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/telemetry"
)

// servant is a researcher that is being served.
type servant struct {
	name    string
	log     *slog.Logger
	runs    *runs.Desk
	server  *mcpkit.Server
	metrics *door.Metrics // nil on stdio
}

// employ puts the server around a desk.
func (s *servant) employ(a *app, c *settings.Settings, d *network.Runner, how *serveOptions, wall time.Duration) error {
	s.name = d.Name
	shown := d.Shown
	if shown == nil {
		shown = shownRecords{d.Records}
	}
	work := counted{d, s.metrics}
	keep := runs.Config{Researcher: work, Dir: c.RunsPath(), Now: a.Now, Name: d.Name, MaxRunning: how.maxCalls, Log: s.log, Recorded: shown.Result}
	if d.PartOf { // its investigation keeps it, and says how much goes on at once
		keep.Dir, keep.MaxRunning = "", maxCalls
	}
	var err error
	if s.runs, err = runs.Open(keep); err != nil && keep.Dir != "" && errors.Is(err, marchwarden.CodeUnavailable) {
		s.log.Warn("runs cannot be kept: tasks, and calls that are handed over, are lost when this server ends", "error", err)
		keep.Dir = ""
		s.runs, err = runs.Open(keep)
	}
	if err != nil {
		return err
	}
	cfg := mcpkit.Config{
		Name: d.Name, Version: programVersion(), Scope: d.Scope, OpenWorld: d.OpenWorld, Private: d.Private, Researcher: work, Evidence: d.Evidence,
		Now: a.Now, Runs: s.runs, Records: shown, MaxWall: wall, Log: s.log,
		App: &mcpkit.App{Page: report.AppPage(), Body: report.AppBody},
	}
	if s.metrics != nil {
		cfg.Watch = func(op mcpkit.Operation) { s.metrics.ObserveOperation(op.Method, cmp.Or(op.Failed, "ok"), op.Took) }
	}
	if a.Tracer != nil {
		cfg.Span = func(ctx context.Context, op mcpkit.Operation, meta map[string]any) (context.Context, func(error)) {
			return a.Tracer.Serve(ctx, spanOf(op), meta)
		}
	}
	if s.server, err = mcpkit.NewServer(cfg); err != nil {
		return err
	}
	s.metrics.Watch(door.Gauges{Research: s.runs.Running, Sessions: s.server.Sessions, Tasks: s.runs.Tasks})
	return nil
}

// counted is a researcher of whose failures the metrics hear; of answers they hear with
// what was spent on them.
type counted struct {
	*network.Runner
	metrics *door.Metrics
}

// Research asks the desk.
func (c counted) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	began := c.Host.Now()
	res, err := c.Runner.Research(ctx, req, sink)
	if err != nil {
		c.metrics.ObserveResearch(string(marchwarden.CodeOf(err)), c.Host.Now().Sub(began), 0)
	}
	return res, err
}

// count tells the metrics of a finished research.
func (s *servant) count(f network.Finished) {
	how := "answered"
	if f.Result.CostMetadata.BudgetExhausted {
		how = "budget_exhausted"
	}
	cost := f.Result.CostMetadata
	s.metrics.ObserveResearch(how, time.Duration((cost.WallTimeSec-f.Before.WallTimeSec)*float64(time.Second)), cost.TokensUsed-f.Before.TokensUsed)
}

// spanOf is an operation as tracing names its parts.
func spanOf(op mcpkit.Operation) telemetry.Op {
	out := telemetry.Op{Method: op.Method, Session: op.Session, Protocol: op.Protocol, Transport: op.Transport}
	switch op.Method {
	case "tools/call":
		out.Tool = op.Target
	case "resources/read":
		out.Resource = op.Target
	case "prompts/get":
		out.Prompt = op.Target
	}
	return out
}

// shownRecords are the records of a desk as a server shows them.
type shownRecords struct{ *network.Records }

// Trace gives the whole lines of a trace.
func (s shownRecords) Trace(_ context.Context, id marchwarden.TraceID) ([]byte, error) {
	f, err := s.Traces.Raw(id)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := io.ReadAll(f)
	return lines, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read trace %s", id)
}

// Size says how long a trace is, and whether it is complete.
func (s shownRecords) Size(ctx context.Context, id marchwarden.TraceID) (int64, bool, error) {
	return s.Traces.Size(ctx, id)
}

// Result gives the result of a run that has ended.
func (s shownRecords) Result(ctx context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
	log, err := s.Traces.Load(id)
	if err != nil {
		return nil, err
	}
	return run.Recorded(ctx, s.Blobs, log)
}

// SoFar gives what a run that goes on has found.
func (s shownRecords) SoFar(ctx context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
	log, err := s.Traces.Load(id)
	if err != nil {
		return nil, err
	}
	return run.SoFar(ctx, s.Blobs, log)
}
