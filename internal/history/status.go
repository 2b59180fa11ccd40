package history

import (
	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Statuses are the states of whole runs, in the order in which people are told.
func Statuses() []run.State {
	return []run.State{run.Complete, run.Planned, run.Interrupted, run.Running, run.Damaged}
}

// Standing is where a run stands, and what can be done about it.
type Standing struct {
	Status    run.State // one of Statuses
	Resumable bool      // it can be resumed
	Partial   bool      // there is a partial result
	Imported  bool
	Problem   string // why it is damaged
}

// Look is the entry of one run as its trace tells it by itself: no stored document is
// looked at, and what was spent is not told. It has figures only from its end on. One
// that cannot be read is damaged, and says why.
func Look(d *trace.Dir, id marchwarden.TraceID) Entry {
	// First the lock and then the lines: a run that ends in between is held to be
	// running, not to be cut off.
	writing := busy(d, id)
	log, err := skim(d, id)
	foreign := false
	if err == nil {
		foreign, err = d.Foreign(id)
	}
	s := stateOf(log, err)
	e := Entry{ID: id, Standing: s.standing(foreign, writing), Rihla: s.rihla}
	if !s.begun {
		return e
	}
	start, done := log.Steps[0].(*trace.Start), log.Complete()
	e.Began, e.Researcher, e.Question = start.StartedAt, start.Researcher, start.Request.Question
	if done != nil && e.Status != run.Planned {
		e.Citations, e.Confidence = done.Citations, &done.Confidence
	}
	return e
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
		return Standing{Status: run.Damaged, Imported: foreign, Problem: s.problem}
	}
	at := Standing{Status: run.Interrupted, Imported: foreign}
	switch {
	case s.problem != "":
		at.Status, at.Problem = run.Damaged, s.problem
	case busy:
		at.Status = run.Running
	case s.empty:
		at.Status, at.Problem = run.Damaged, "no run was begun in it"
	case !s.ended:
		at.Resumable = !foreign && !s.rihla
	case s.stopped:
		at.Resumable, at.Partial = !foreign && !s.rihla, true
	case s.planned: // there is no answer that could have citations
		at.Status = run.Planned
	default:
		at.Status = run.Complete
	}
	return at
}
