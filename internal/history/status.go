package history

import (
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Status is where a run stands.
type Status string

// The states of a run.
const (
	Complete    Status = "complete"    // it has its answer
	Planned     Status = "planned"     // only a plan was asked for: there is no answer to have
	Interrupted Status = "interrupted" // its caller stopped it, or a crash cut it off
	Running     Status = "running"     // a process is at work on it
	Damaged     Status = "damaged"     // its trace cannot be read, or no run was begun in it
)

// Statuses are all of them, in the order in which people are told.
func Statuses() []Status { return []Status{Complete, Planned, Interrupted, Running, Damaged} }

// Glance is what the trace of one run says about it by itself: no stored document is
// looked at.
type Glance struct {
	ID         marchwarden.TraceID
	Began      *time.Time // nil if no run was begun in it
	Researcher string
	Question   string
	Citations  *int // nil before the end, and of a plan
	Confidence *marchwarden.Unit
	Standing
	Rihla bool // part of an investigation, which has a trace of its own
}

// Standing is where a run stands, and what can be done about it.
type Standing struct {
	Status    Status
	Resumable bool // it can be gone on with
	Partial   bool // there is a partial result
	Imported  bool
	Problem   string // why it is damaged
}

// Look reads the trace of one run. One that cannot be read is Damaged, and says why.
func Look(d *trace.Dir, id marchwarden.TraceID) Glance {
	// First the lock and then the lines: a run that ends in between is held to be
	// running, not to be cut off.
	writing := busy(d, id)
	log, err := skim(d, id)
	foreign := false
	if err == nil {
		foreign, err = d.Foreign(id)
	}
	s := stateOf(log, err)
	g := Glance{ID: id, Standing: s.standing(foreign, writing), Rihla: s.rihla}
	if !s.begun {
		return g
	}
	start, done := log.Steps[0].(*trace.Start), log.Complete()
	g.Began, g.Researcher, g.Question = &start.StartedAt, start.Researcher, start.Request.Question
	if done != nil && g.Status != Planned {
		g.Citations, g.Confidence = &done.Citations, &done.Confidence
	}
	return g
}

// skim reads of a trace what is told of it here: the states of all runs are told from the
// same steps, and the others need not be understood to be whole.
func skim(d *trace.Dir, id marchwarden.TraceID) (*trace.Log, error) {
	return d.Skim(id, trace.ActionStart, trace.ActionResume, trace.ActionComplete, trace.ActionModelComplete, trace.ActionEmbedComplete,
		trace.ActionRihla, trace.ActionRihlaUnderWay, trace.ActionRihlaComplete)
}

// busy reports whether a process writes a trace. One that cannot be told is at rest.
func busy(d *trace.Dir, id marchwarden.TraceID) bool {
	busy, err := d.Busy(id)
	return err == nil && busy
}

// state is what the lines of a trace say about where its run stands.
type state struct {
	problem string // why it cannot be read, or begins with something else than a run
	unread  bool
	empty   bool // not a line is in it
	begun   bool // a run was begun in it
	ended   bool // and has not gone on after that
	stopped bool // its caller ended it
	planned bool // a plan is all it was to make
	rihla   bool
}

// stateOf reads a log, or the failure to read it.
func stateOf(log *trace.Log, err error) state {
	if err != nil {
		return state{problem: err.Error(), unread: true}
	}
	start, err := log.Start()
	switch {
	case err != nil && len(log.Steps) == 0:
		return state{empty: true}
	case err != nil:
		return state{problem: err.Error()}
	}
	s := state{begun: true, rihla: start.PartOf, planned: start.Investigation != nil && start.Investigation.PlanOnly}
	if done := log.Complete(); done != nil {
		s.ended, s.stopped = true, done.Interrupted
	}
	return s
}

// standing is where the run stands, given where its trace is from and whether somebody
// writes it.
func (s state) standing(foreign, busy bool) Standing {
	if s.unread {
		return Standing{Status: Damaged, Imported: foreign, Problem: s.problem}
	}
	at := Standing{Status: Interrupted, Imported: foreign}
	switch {
	case s.problem != "":
		at.Status, at.Problem = Damaged, s.problem
	case busy:
		at.Status = Running
	case s.empty:
		at.Status, at.Problem = Damaged, "no run was begun in it"
	case !s.ended:
		at.Resumable = !foreign && !s.rihla
	case s.stopped:
		at.Resumable, at.Partial = !foreign && !s.rihla, true
	case s.planned: // there is no answer that could have citations
		at.Status = Planned
	default:
		at.Status = Complete
	}
	return at
}
