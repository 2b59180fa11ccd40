package submit

import (
	"bytes"
	"context"
	"encoding/json"
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
	// Home is where records come, line by line while a task goes on; nil leaves them in the
	// cluster.
	Home *Home
}

// homeGrace is how long a stopped run stays open here, so that what it found comes home: its page
// learns of nothing that comes later.
const homeGrace = 30 * time.Second

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
	copied := &copying{ctx: context.WithoutCancel(ctx), home: c.Home, run: run}
	defer copied.close()
	if c.Home != nil {
		by.Hear, by.Grace = copied.hear, homeGrace
		copied.open()
	}
	ctx = marchwarden.WithTraceID(ctx, id)
	if c.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, c.Timeout)
		defer stop()
	}
	res, err := by.Dispatch(ctx, settings.PI, req, sink)
	if err == nil && copied.err != nil { // an answer without its evidence is none
		return nil, copied.err
	}
	return res, err
}

// copying is a record on its way home: its lines as they are written, and at the end of a task
// the rest, with the documents. The line that completes the run is of the rest, since a run that
// is complete has its documents.
type copying struct {
	ctx      context.Context
	home     *Home
	run      marchwarden.TraceID
	mirror   *trace.Mirror // nil before the first line of a new run
	complete bool          // the rest comes at the end
	err      error         // of the last end
}

// open locks a trace that is here: its run goes on.
func (c *copying) open() {
	c.mirror, c.complete = nil, false
	if _, err := c.home.Traces.Stat(c.run); err == nil {
		c.mirror, _ = c.home.Traces.Mirror(c.run) // the first line tries again
	}
}

// hear takes in what happens to a task of the run.
func (c *copying) hear(t dispatch.Task, e dispatch.Event) {
	switch e.Kind {
	case dispatch.Written:
		c.add(t, e.Line)
	case dispatch.Ended:
		c.err = nil
		if e.End.Trace.Valid() {
			_, c.err = c.home.Bring(c.ctx, c.run, e.End)
		}
		c.close() // and not before: until then the run goes on, and it may go on after that
		c.open()
	}
}

func (c *copying) add(t dispatch.Task, line []byte) {
	var step struct {
		Action trace.Action `json:"action"`
	}
	if c.complete = c.complete || json.Unmarshal(line, &step) != nil || step.Action == trace.ActionComplete; c.complete {
		return
	}
	var err error
	if c.mirror == nil {
		c.mirror, err = c.home.Traces.Mirror(c.run)
	}
	if err == nil {
		if t.ID != t.Record {
			c.mirror.Onward()
		}
		err = c.mirror.Add(line)
	}
	c.complete = err != nil
}

// close ends the copying of lines. What is missing comes at the end, or when the run resumes.
func (c *copying) close() {
	if c.mirror != nil {
		_ = c.mirror.Close()
	}
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
