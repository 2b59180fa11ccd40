// Package loop is one research call from request to result, a stage a file:
//
//	plan.go        what to search next, and when to stop
//	gather.go      searches and fetches, in parallel, into evidence
//	synthesize.go  claims from the evidence
//	check.go       the grounding gate, confidence, the result
//
// The loop reaches the world only through a replay.Journal: running it again on
// a record gives the same bytes. It decides by what is recorded (outcomes and
// checkpoints), never by a clock or a context of its own. Failures become gaps;
// only a journal that cannot be written ends a run without a result.
package loop

import (
	"context"
	"errors"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Config is what a loop is made of. Engine and Fetcher may be nil when the loop
// only reruns records.
type Config struct {
	Engine   search.Engine
	Fetcher  fetch.Fetcher
	Reasoner reason.Reasoner
	Blobs    blob.Store
	// Parallel bounds searches and fetches under way at once; zero means 8.
	Parallel int
}

// Loop runs research calls. It is safe for concurrent use if its parts are.
type Loop struct{ cfg Config }

// New makes a loop.
func New(cfg Config) *Loop {
	if cfg.Parallel <= 0 {
		cfg.Parallel = 8
	}
	return &Loop{cfg}
}

// hitsPerSearch is how many documents one search may offer.
const hitsPerSearch = 10

// synthesisShare is the part of the token budget that gathering must leave for
// the writing of the answer.
const synthesisShare = 0.4

// Run answers the request in start, which names everything the result depends
// on besides the journal's outcomes. clock says how long the run has gone on; it
// is not called in a rerun. When ctx ends the run stops gathering and writes
// from what it has. The result is normalised, checked against the stored bytes
// and recorded before it is returned.
func (l *Loop) Run(ctx context.Context, j replay.Journal, start *trace.Start, clock func() time.Duration) (*marchwarden.Result, error) {
	if err := start.Request.Validate(); err != nil {
		return nil, err
	}
	if err := j.Note(start); err != nil {
		return nil, err
	}
	r := l.newRun(j, start, clock)
	if err := r.gatherAll(replay.Shield(ctx)); err != nil {
		return nil, err
	}
	// The caller's patience may be over; what was gathered is still written up.
	ctx = context.WithoutCancel(ctx)
	draft, err := r.synthesize(ctx)
	if err != nil {
		return nil, err
	}
	return r.check(ctx, draft)
}

// run is the state of one call.
type run struct {
	*Loop
	j       replay.Journal
	start   *trace.Start
	clock   func() time.Duration
	engine  search.Engine
	fetcher fetch.Fetcher
	filter  marchwarden.SourceFilter
	meter   *budget.Meter
	state   *reason.State

	gaps        []marchwarden.Gap
	read        map[string]bool // locators that were asked for
	leftover    []string        // what a cap kept the run from doing, for people
	interrupted bool
}

func (l *Loop) newRun(j replay.Journal, start *trace.Start, clock func() time.Duration) *run {
	meter := budget.New(start.Limits, start.Wall)
	meter.Hold(int(float64(start.Limits.TokenBudget) * synthesisShare))
	return &run{
		Loop: l, j: j, start: start, clock: clock,
		engine:  replay.Engine(j, start.Engine, l.cfg.Engine),
		fetcher: replay.Fetcher(j, l.cfg.Fetcher),
		filter:  start.Request.Filter(),
		meter:   meter,
		gaps:    slices.Clone(start.Gaps),
		read:    map[string]bool{},
		state: &reason.State{
			Request: start.Request, Limits: start.Limits, Now: start.StartedAt,
			Evidence: &evidence.Set{}, Failed: map[string]error{}, Meter: meter,
		},
	}
}

// gatherAll plans and gathers until the plan is complete, a cap is reached or
// the caller stops the run.
func (r *run) gatherAll(ctx context.Context) error {
	for {
		stop, err := r.checkpoint(ctx, "gathering")
		if err != nil || stop {
			return err
		}
		plan, err := r.plan(ctx)
		if err != nil || len(plan.Searches) == 0 {
			return err
		}
		if err := r.gather(ctx, plan); err != nil {
			return err
		}
	}
}

// live passes progress on.
func (r *run) live(stage marchwarden.Stage, done, total int, message string) {
	r.j.Live(marchwarden.Event{Stage: stage, Message: message, Iteration: r.state.Iteration, TraceID: r.start.TraceID, Done: done, Total: total})
}

// fatal reports whether err says that the run cannot be recorded or replayed.
func fatal(err error) bool { return errors.Is(err, replay.ErrJournal) }
