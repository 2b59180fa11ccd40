// Package loop is one research call from request to result, a stage a file:
//
//	plan.go        what to search next, when to stop, and past an end
//	gather.go      searches and fetches, in parallel, into evidence
//	check.go       claims from the evidence, the grounding gate, confidence, the result
//
// The loop reaches the world only through a replay.Journal: running it again on
// a record gives the same bytes. It decides by what is recorded (outcomes and
// checkpoints), never by a clock or a context of its own. Failures become gaps;
// only a journal that cannot be written ends a run without a result.
package loop

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Config is what a loop is made of. Engine, Fetcher and Model may be nil when it only reruns records.
type Config struct {
	Engine   search.Engine
	Fetcher  fetch.Fetcher
	Kept     search.Engine // finds what the conversation has stored, which Fetcher has; nil for none
	Reasoner reason.Reasoner
	Model    llm.Model // answers the reasoner's calls when the run's start names a model
	// Vectors makes the sentence vectors of runs whose start names it. A run of another must not get here.
	Vectors embed.Embedder
	Blobs   blob.Store
}

// Loop runs research calls. It is safe for concurrent use if its parts are.
type Loop struct{ cfg Config }

// New makes a loop.
func New(cfg Config) *Loop { return &Loop{cfg} }

const (
	hitsPerSearch = 10 // documents that one search may offer
	parallel      = 8  // searches and fetches under way at once
)

// The part of the tokens that gathering leaves for the writing, by the mind without a model and by one with it.
const (
	synthesisShare      = 0.4
	modelSynthesisShare = 0.5
)

// Run answers the request in start, which names everything the result depends
// on besides the journal's outcomes. clock says how long the run has gone on; it
// is not called in a rerun. When ctx ends, or the time to gather is over, the run
// stops gathering and writes from what it has. The result is normalised, checked
// against the stored bytes and recorded before it is returned. A panic is an error
// with CodeInternal.
func (l *Loop) Run(ctx context.Context, j replay.Journal, start *trace.Start, clock func() time.Duration) (res *marchwarden.Result, err error) {
	defer panics.Caught(&err, "a run")
	if err := start.Request.Validate(); err != nil {
		return nil, err
	}
	if err := j.Note(start); err != nil {
		return nil, err
	}
	whole, done := replay.Limited(fetch.Within(ctx, start.Request.Filter()), replay.Left(start, start.Deadline))
	defer done()
	gathering, done := replay.Limited(whole, replay.Left(start, start.Wall))
	defer done()

	reads, err := reader.Of(start)
	if err != nil {
		return nil, err
	}
	r := l.newRun(j, start, clock)
	r.state.Reader = reads
	r.caller = replay.Shield(ctx)
	if err := r.recall(gathering); err != nil {
		return nil, err
	}
	for more := true; more; more = r.extend() { // past every end that the run has gone past
		if err := r.gatherToEnd(gathering); err != nil {
			return nil, err
		}
	}
	draft, err := r.synthesize(replay.Shield(whole))
	if err != nil {
		return nil, err
	}
	// The caller's patience may be over; what was written is still checked.
	return r.check(context.WithoutCancel(ctx), draft)
}

type run struct {
	*Loop
	j       replay.Journal
	start   *trace.Start
	clock   func() time.Duration
	engine  search.Engine
	fetcher fetch.Fetcher
	filter  marchwarden.SourceFilter
	meter   *budget.Meter
	model   *llm.Metered // nil for a mind without one
	state   *reason.State
	caller  context.Context // shielded; asked for the caller's patience at checkpoints only
	texts   sync.Map        // documents that were fetched and not taken in yet, by the hash of their text

	course
	shortfall
}

// course is how far the gathering has come.
type course struct {
	attempts int          // fetches begun
	pending  *reason.Plan // a plan for which no iteration was left
	undone   reason.Plan  // what was cut short, or chosen when no document was left to read
	past     int          // ends that the run has gone past
	planned  bool         // there is nothing left to look for
	gave     bool         // what the caller named was put into a plan
}

// shortfall is what a run did not do, for people.
type shortfall struct {
	gaps     []missed
	leftover []string // what a cap kept the run from doing
	refused  int      // reads of what nothing had offered
	outdated int      // documents that were published outside the dates of the request
	fault    string   // how the model failed first
	givenUp  int      // searches, reads and calls that are not tried any more
}

// missed is a gap; one that is cut short may be done when the run goes on.
type missed struct {
	marchwarden.Gap
	cut bool
}

func (l *Loop) newRun(j replay.Journal, start *trace.Start, clock func() time.Duration) *run {
	meter := budget.New(start.Limits, start.Wall)
	if start.Prices != nil {
		meter.Priced(0)
	}
	r := &run{
		Loop: l, j: j, start: start, clock: clock,
		engine: replay.Engine(j, start.Engine, l.cfg.Engine),
		filter: start.Request.Filter(),
		meter:  meter,
		state: &reason.State{
			Request: start.Request, Limits: start.Limits, Now: start.StartedAt, Given: start.Given, Guide: start.Guide,
			Evidence: &evidence.Set{Earlier: verify.Earlier(start.Gate)}, Asked: map[string]bool{}, Failed: map[string]error{}, Meter: meter, Nonce: llm.Nonce(start.TraceID),
		},
	}
	if start.Vectors != "" {
		r.state.Vectors = l.cfg.Vectors
	}
	for _, g := range start.Gaps {
		r.gaps = append(r.gaps, missed{Gap: g})
	}
	if r.fetcher = replay.Fetcher(j, nil); l.cfg.Fetcher != nil {
		r.fetcher = replay.Fetcher(j, reads{l.cfg.Fetcher, r})
	}
	if start.Model != "" {
		r.model = llm.NewMetered(replay.Model(j, start.Model, l.cfg.Model), meter, start, r.j.Note, r.asking)
		r.state.Model, r.state.Scale, r.state.Paid = r.model, r.model.Scale, r.model.Paid
		r.state.Drafted = func(claims []reason.Claim) { j.Live(reason.Drafting(start.TraceID, claims)) }
	}
	meter.Hold(r.writing(start.Limits.TokenBudget))
	return r
}

// writing is the part of so many tokens that is kept for the writing. A model that failed and cost nothing needs none.
func (r *run) writing(tokens int) int {
	if r.model != nil && (r.fault == "" || r.model.Paid()) {
		return int(float64(tokens) * modelSynthesisShare)
	}
	return int(float64(tokens) * synthesisShare)
}

// gatherToEnd plans and gathers until the plan is complete, a cap is reached or the caller stops the run.
func (r *run) gatherToEnd(ctx context.Context) error {
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	for !r.planned {
		stop, err := r.checkpoint("gathering")
		if err != nil || stop {
			return err
		}
		plan, err := r.plan(ctx)
		if err != nil {
			return err
		}
		if len(plan.Searches)+len(plan.Reads) == 0 {
			r.planned = len(r.meter.Usage().Exhausted) == 0 && !r.state.Interrupted
			return nil
		}
		if err := r.gather(replay.Shield(ctx), plan); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) live(stage marchwarden.Stage, done, total int, message string) {
	iteration := r.state.Iteration
	switch stage {
	case marchwarden.StageSynthesize, marchwarden.StageCheck, marchwarden.StageDone:
		iteration = r.meter.Usage().Iterations // the last plan may have been to stop
	}
	r.j.Live(marchwarden.Event{Stage: stage, Message: message, Iteration: iteration, TraceID: r.start.TraceID, Done: done, Total: total})
}

// asking says that a model is asked, which may take long.
func (r *run) asking(prompt string) {
	stage := marchwarden.StageSynthesize
	if prompt == "step" {
		stage = marchwarden.StagePlan
	}
	what := cmp.Or(map[string]string{
		"step": "what to look for", "outline": "to outline a report", "section": "to write a section", "judge": "whether the passages support the answer",
	}[prompt], "to write the answer")
	r.live(stage, 0, 0, "asking "+r.start.Model+" "+what)
}

// failed is the gap of a failure that is not a document's. A call that was cut short is worded by what cut it.
func (r *run) failed(topic string, err error) {
	gap := marchwarden.GapFor(topic, err)
	if marchwarden.CodeOf(err) == marchwarden.CodeCanceled {
		who := cmp.Or(r.start.Model, "it")
		gap.Detail = who + " took longer than the time it had"
		if r.state.Interrupted {
			gap.Detail = who + " was at work when the caller stopped the run"
		}
	}
	if r.start.Model != "" && r.fault == "" && !r.state.Interrupted && marchwarden.CodeOf(err) != marchwarden.CodeExhausted {
		r.fault = gap.Detail
	}
	r.addGap(gap, err)
}

func (s *shortfall) addGap(gap marchwarden.Gap, err error) {
	s.gaps = append(s.gaps, missed{gap, marchwarden.CodeOf(err) == marchwarden.CodeCanceled})
	s.countGivenUp(err)
}

func (s *shortfall) countGivenUp(err error) {
	if errors.Is(err, replay.ErrGivenUp) {
		s.givenUp++
	}
}
