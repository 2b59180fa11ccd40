package pi

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// How the budget is split: some for the writing, most of the rest for the plan's rihlas, some to follow up with.
const (
	writeShare  = 0.3  // of all tokens
	reportShare = 0.4  // the same, for a report or a table that a model writes
	firstShare  = 0.85 // of what gathering has, for the plan's rihlas together
	soleShare   = 0.8  // the same, for a plan of one when there are others to ask
	stepTokens  = 2500 // that a researcher with a model should have for each step
	fed         = 2500 // tokens that a researcher with a model needs to plan, write and judge
	planShare   = 0.2  // of the time to gather, for a model that plans
	gatherShare = 0.75 // of the deadline, for gathering
	rihlaShare  = 0.75 // of the time that is left to gather, for one rihla
	waitForLate = 4 * time.Second
)

// book keeps the journeys of an investigation: what was asked, what waits, what it may spend, what was decided.
type book struct {
	j       replay.Journal
	start   *trace.Start
	inv     *trace.Investigation
	meter   *budget.Meter
	members map[string]dispatch.Member

	waiting                  []*item         // the most urgent first
	asked                    map[string]int  // rihla number by key
	moved                    map[string]bool // questions that were taken elsewhere
	public                   []string        // questions that were made before anything was found
	journeys                 []*journey      // by number, from one
	arrivals                 int
	stopped                  bool // no further rihla is sent
	compared                 bool // across reports, when the first ones were in
	dropped                  []*item
	past                     int     // ends after which the investigation was resumed
	extra                    int     // rihlas that only continue others, and count for none
	firstTokens, firstWeight float64 // what the plan's rihlas share: tokens, and the sum of their weights
	firstSources             int     // documents
	overdrawn                bool    // the plan cost all tokens
	interrupted              bool

	decisions []marchwarden.Decision
	gaps      []marchwarden.Gap
}

// findings are what the journeys brought: citations that stood the check, and their documents.
type findings struct {
	book
	blobs    blob.Store
	world    *Config // nil in a rerun
	set      *evidence.Set
	ranks    map[string]int // of the documents in it, by locator; see rank
	taken    atomic.Int64   // bytes that external researchers have handed over
	cited    []admission
	embedder embed.Embedder // nil for a run without vectors
}

// run is one investigation: its stages, over what they gather. Its fields belong to the goroutine that investigates;
// rihlas under way touch only their own journey.
type run struct {
	findings
	planner Planner
	writer  reason.Reasoner
	plain   reason.Reasoner // writes what a model must not see
	model   *llm.Metered    // nil without one
	clock   func() time.Duration
	caller  context.Context             // shielded; asked for the caller's patience at checkpoints only
	began   map[int]marchwarden.TraceID // the runs of rihlas that were under way when the investigation was cut off
	ended   chan int                    // numbers of journeys that came back

	wrote     bool   // the answer is the writer's, and no rihla's own
	by, fault string // who wrote in place of the model; how the model failed first
	unwritten bool   // the writing was cut short
	starved   bool   // the model had too few tokens left to write: what the researchers' models wrote stands
}

type journey struct {
	item
	number   int
	id       marchwarden.TraceID // that its run is told to have
	grant    int                 // tokens
	money    budget.Money        // that its models may cost; under a cap only
	sources  int                 // documents that it may read
	reserved *budget.Reservation
	retry    bool // was sent again with more

	back chan homecoming
	homecoming

	moreMoney               budget.Money
	moreTokens, moreSources int // what is added to that which the journey it resumes had

	arrived  bool
	replaced bool // another resumed it, and reports for both
	followed bool // another was to resume it
	unasked  bool // was not reached: nothing was spent
	lost     bool // never came back
	led      int  // rihlas that its report led to, waiting ones included
	admitted int  // citations that stood the check
	gaps     []marchwarden.Gap
	took     time.Duration
}

// homecoming is what a journey came back with.
type homecoming struct {
	res *marchwarden.Result
	err error
}

func newRun(minds Minds, blobs blob.Store, j replay.Journal, start *trace.Start) *run {
	r := &run{planner: minds.Planner(start.Model), writer: minds.Writer(start.Model), plain: minds.Writer("")}
	r.book = book{
		j: j, start: start, inv: start.Investigation, meter: budget.New(start.Limits, start.Wall),
		members: map[string]dispatch.Member{}, asked: map[string]int{}, moved: map[string]bool{}, gaps: slices.Clone(start.Gaps),
	}
	if start.Prices != nil {
		r.meter.Priced(0)
	}
	r.blobs, r.set, r.ranks = blobs, &evidence.Set{Earlier: verify.Earlier(start.Gate)}, map[string]int{}
	for _, m := range r.inv.Members {
		r.members[m.Name] = m
	}
	r.ended = make(chan int, 2*r.inv.MaxRihlas*(len(start.Extended)+1)) // more than there can be
	return r
}

func (r *run) investigate(ctx context.Context) (res *marchwarden.Result, err error) {
	defer panics.Caught(&err, "an investigation")
	if err := r.start.Request.Validate(); err != nil {
		return nil, err
	}
	if err := r.j.Note(r.start); err != nil {
		return nil, err
	}
	whole, done := replay.Limited(ctx, replay.Left(r.start, r.start.Deadline))
	defer done()
	gathering, done := replay.Limited(whole, replay.Left(r.start, r.start.Wall))
	defer done()
	r.caller = replay.Shield(ctx)
	r.openModel()
	if err := r.understand(gathering); err != nil {
		return nil, err
	}
	if err := r.plan(gathering); err != nil {
		return nil, err
	}
	if err := r.gather(gathering); err != nil {
		return nil, err
	}
	draft, err := r.synthesize(replay.Shield(whole))
	if err != nil {
		return nil, err
	}
	// The caller's patience may be over; what was written is still checked.
	return r.conclude(context.WithoutCancel(ctx), draft)
}

// openModel puts the model, if there is one, under the meter.
func (r *run) openModel() {
	if r.start.Model == "" {
		return
	}
	var outside llm.Model
	if r.world != nil {
		outside = r.world.Model
	}
	r.model = llm.NewMetered(replay.Model(r.j, r.start.Model, outside), r.meter, r.start, r.j.Note, func(prompt string) {
		stage := marchwarden.StageSynthesize
		if prompt == promptName {
			stage = marchwarden.StagePlan
		}
		r.live(stage, "asking "+r.start.Model+" to "+strings.Replace(prompt, "section", "write a section", 1))
	})
}

// gather gathers, and goes on past every end that the investigation has gone past.
func (r *run) gather(ctx context.Context) error {
	if r.inv.PlanOnly {
		return nil
	}
	for {
		if err := r.gatherToEnd(ctx); err != nil {
			return err
		}
		if more, err := r.extend(); err != nil || !more {
			return err
		}
	}
}

// gatherToEnd sends rihlas and looks at their reports as they come in, until nothing is under way and nothing waits.
func (r *run) gatherToEnd(ctx context.Context) error {
	r.hold()
	for {
		if err := r.sendAll(ctx); err != nil {
			return err
		}
		if r.underWay() == 0 {
			more, err := r.compareReports()
			if err != nil {
				return err
			}
			if !more {
				return nil
			}
			continue
		}
		jr, at, err := r.next(ctx)
		if err != nil {
			return err
		}
		if jr == nil {
			return r.abandon(at)
		}
		if err := r.take(ctx, jr); err != nil {
			return err
		}
	}
}

func (b *book) underWay() int {
	n := 0
	for _, jr := range b.journeys {
		if !jr.arrived {
			n++
		}
	}
	return n
}

// next is the journey whose report is looked at next, or nil. The world decides which, so it is recorded.
func (r *run) next(ctx context.Context) (*journey, time.Duration, error) {
	r.arrivals++
	a, err := replay.Arrival(replay.Shield(ctx), r.j, r.arrivals, r.wait, r.clock)
	if err != nil {
		return nil, 0, err
	}
	if a.Interrupted { // the run ends with what there is
		r.interrupted, r.stopped = true, true
		r.meter.Exhaust("patience of the caller, who stopped the run")
	}
	if r.meter.Elapsed(r.start.Counted(a.Elapsed)) != nil || a.Over {
		r.stopped = true
	}
	if a.Number < 1 || a.Number > len(r.journeys) {
		return nil, a.Elapsed, nil
	}
	jr := r.journeys[a.Number-1]
	home := <-jr.back
	if jr.err, jr.unasked = home.err, home.err != nil && home.res != nil; !jr.unasked {
		jr.res = home.res
	}
	jr.arrived, jr.took = true, a.Elapsed-jr.took
	return jr, a.Elapsed, nil
}

// wait is the number of the next journey that comes back, or 0 when the time is over and none did, though told.
func (r *run) wait(ctx context.Context) int {
	if n := r.back(ctx.Done()); n > 0 {
		return n
	}
	patience := waitForLate
	if spare := r.start.Deadline - r.start.Wall; spare > 0 {
		patience = min(patience, max(time.Second, spare/2))
	}
	late, done := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer done()
	return r.back(late.Done())
}

// back is the number of a journey that has come back and was not looked at, or 0 when enough is closed first.
func (r *run) back(enough <-chan struct{}) int {
	for {
		select {
		case n := <-r.ended:
			if !r.journeys[n-1].arrived {
				return n
			}
		case <-enough:
			return 0
		}
	}
}

// abandon gives up journeys that did not come back when they were told to.
func (b *book) abandon(at time.Duration) error {
	for _, jr := range b.journeys {
		if jr.arrived {
			continue
		}
		jr.arrived, jr.lost, jr.took = true, true, at-jr.took
		b.forsake(jr)
		jr.gaps = []marchwarden.Gap{{Topic: "researcher " + jr.Researcher, Category: marchwarden.AccessDenied, Detail: "it did not come back in time, even after it was told to"}}
	}
	return b.drop("the time was over")
}

// take looks at one report: it settles the budget, checks the evidence, and decides what to do about the rest.
func (r *run) take(ctx context.Context, jr *journey) error {
	if replay.Fatal(jr.err) {
		return jr.err
	}
	if jr.res == nil && !jr.unasked {
		r.forsake(jr)
	} else {
		tokens, money, read := r.spent(jr)
		jr.reserved.SettleCost(tokens, money)
		if jr.unasked || jr.res.CostMetadata.SourcesRead > 0 || len(jr.res.Citations) == 0 { // a stranger may not say
			r.meter.ReturnSources(jr.sources - read)
		}
	}
	r.replace(jr)
	if err := r.admit(ctx, jr); err != nil {
		return err
	}
	r.liveOf(jr, marchwarden.StageDone, outcomeOf(jr))
	if r.stopped {
		return r.follow(r.notices(jr)...)
	}
	for _, s := range r.seconds(jr) {
		d := marchwarden.Decision{About: aboutNextHop, Topic: plaintext.Line(s.Question, maxTopic), From: jr.number}
		if err := r.decide(d, jr, &item{Sending: s, priority: secondPriority}); err != nil {
			return err
		}
	}
	return r.follow(r.notices(jr)...)
}

// live passes progress of the investigator's own work on.
func (b *book) live(stage marchwarden.Stage, message string) {
	b.j.Live(marchwarden.Event{Stage: stage, Message: message, TraceID: b.start.TraceID})
}

func (b *book) liveOf(jr *journey, stage marchwarden.Stage, message string) {
	b.j.Live(marchwarden.Event{Stage: stage, Message: message, TraceID: b.start.TraceID, Rihla: jr.number, Researcher: jr.Researcher})
}
