package submit

import (
	"bytes"
	"context"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Recorder is an engine whose records can be read while they are written.
type Recorder interface {
	dispatch.Engine
	Record(ctx context.Context, t dispatch.Task) ([]byte, error)
}

// Cluster is a cluster as one researcher: each question becomes a task for the investigators
// there.
type Cluster struct {
	Engine  Recorder
	NewID   func() marchwarden.TraceID
	Now     func() time.Time
	Timeout time.Duration // 0 leaves it to the workers
	// Home is where the record of a task comes when it has ended; nil leaves it in the cluster.
	Home *Home
}

// Research has the cluster answer, in the name of the principal of ctx and by the choice of its run. A caller that goes
// cancels its task; a server that ends does not.
func (c *Cluster) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	id, chosen := marchwarden.ChosenTraceID(ctx)
	if !chosen {
		id = c.NewID()
	}
	run := id
	if req.Resume != "" {
		var err error
		if run, err = marchwarden.ParseTraceID(req.Resume); err != nil {
			return nil, err
		}
	}
	by := &Dispatcher{
		Engine: c.Engine, Blobs: c.Engine.Blobs(), Investigation: run, Owner: access.From(ctx).ID, Priority: dispatch.Normal, Now: c.Now,
		Network: func() []dispatch.Member { return []dispatch.Member{{Name: settings.PI}} },
	}
	if choice := runs.ChoiceOf(ctx); choice != nil {
		by.Wishes = dispatch.Wishes{Only: choice.Researchers, AllowEgress: choice.AllowEgress}
	}
	if c.Home != nil {
		by.Ended = func(ctx context.Context, end *dispatch.End) error {
			if !end.Trace.Valid() {
				return nil
			}
			_, err := c.Home.Bring(ctx, run, end)
			return err
		}
		if release, err := c.Home.Traces.Hold(run); err == nil { // a run that is here goes on
			defer release()
		}
	}
	ctx = marchwarden.WithTraceID(ctx, id)
	if c.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, c.Timeout)
		defer stop()
	}
	return by.Dispatch(ctx, settings.PI, req, sink)
}

// Trace gives the lines of a task's record.
func (c *Cluster) Trace(ctx context.Context, id marchwarden.TraceID) ([]byte, error) {
	lines, _, err := c.record(ctx, id)
	return lines, err
}

// Size is how long the record is, and whether the task has ended.
func (c *Cluster) Size(ctx context.Context, id marchwarden.TraceID) (int64, bool, error) {
	lines, ended, err := c.record(ctx, id)
	return int64(len(lines)), ended, err
}

// Result gives the result of a task that has ended.
func (c *Cluster) Result(ctx context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
	state, err := c.Engine.Look(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case state.End == nil || !state.End.Result.Valid():
		return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "run %s has no result", id)
	}
	return ResultOf(ctx, c.Engine.Blobs(), id.String(), state.End)
}

// SoFar gives what a task that has not ended has found, or nil.
func (c *Cluster) SoFar(ctx context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
	lines, _, err := c.record(ctx, id)
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	log, err := trace.Read(bytes.NewReader(lines))
	if err != nil {
		return nil, err
	}
	return run.SoFar(ctx, c.Engine.Blobs(), log)
}

// record gives the lines that are written of a task.
func (c *Cluster) record(ctx context.Context, id marchwarden.TraceID) (lines []byte, ended bool, err error) {
	state, err := c.Engine.Look(ctx, id)
	if err != nil {
		return nil, false, err
	}
	if state.End != nil {
		if !state.End.Trace.Valid() {
			return nil, true, nil
		}
		lines, err = c.Engine.Blobs().Get(ctx, state.End.Trace)
		return lines, true, err
	}
	lines, err = c.Engine.Record(ctx, state.Task)
	return lines, false, err
}
