package mcpkit

import (
	"context"
	"errors"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

// openRuns is the research of a server, as far as it outlives calls. Where nothing can be
// written, the server works all the same, and the log says what is lost.
func openRuns(cfg Config) (*runs.Desk, error) {
	keep := runs.Config{Researcher: cfg.Researcher, Dir: cfg.RunsDir, Now: cfg.Now, Name: cfg.Name, MaxRunning: cfg.MaxConcurrent, Grace: cfg.Grace, Log: cfg.Log}
	if cfg.Records != nil {
		keep.Recorded = cfg.Records.Result
	}
	desk, err := runs.Open(keep)
	if keep.Dir != "" && errors.Is(err, marchwarden.CodeUnavailable) {
		cfg.Log.Warn("runs cannot be kept: tasks, and calls that are handed over, are lost when this server ends", "error", err)
		keep.Dir = ""
		desk, err = runs.Open(keep)
	}
	return desk, err
}

// Recover resumes the research that an earlier process left behind in RunsDir.
func (s *Server) Recover() { s.runs.Recover() }

// Door is the server behind an HTTP door: what the door must know of the server is filled in.
// sessionTimeout is that of Handler.
func (s *Server) Door(cfg httpdoor.Config, sessionTimeout time.Duration) (*httpdoor.Door, error) {
	cfg.MCP = s.Handler(sessionTimeout)
	cfg.Stop = func(ctx context.Context) { _ = s.runs.Close(ctx) } // what it could not stop is logged
	cfg.Metrics.Watch(httpdoor.Gauges{Research: s.runs.Running, Sessions: s.Sessions, Tasks: s.runs.Tasks})
	return httpdoor.New(cfg)
}
