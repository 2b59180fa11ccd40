// Package runs keeps research that outlives the call that asked for it. A run has
// the id of its trace, one owner, and, where its folder is given, a small record on the
// disk: who began it, what was asked, and what became of it. So a call can be handed
// over when its caller cannot wait, a task continues after a restart of the process, and a caller
// sees only the runs that it began.
//
// What is found out is not kept here: that is in the trace and the stored documents,
// and a run continues when its researcher is asked to resume it. How a client is told about runs is
// not known here either.
//
// Several processes may share a folder. A run has a lock file, <id>.lock. The process that executes
// the run holds it, and only that process writes its record. The others follow the record, resume
// the run when the lock is free and it had not ended, and leave <id>.stop to have it stopped.
package runs

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// Config says what a desk works with. Researcher and Now are needed.
type Config struct {
	// Researcher does the work. Research with Resume set resumes an earlier run, or returns what it
	// had.
	Researcher marchwarden.Researcher
	// Dir is the folder of the records; it is made when it is missing. "" keeps nothing
	// beyond the process.
	Dir string
	Now func() time.Time
	// NewID makes ids that cannot be guessed; nil makes random UUIDs.
	NewID func() marchwarden.TraceID
	// Name is the researcher's. Records of other researchers in the same folder are left
	// alone.
	Name string
	// Retention is how long the record of an ended run is kept; 0 is seven days.
	Retention time.Duration
	// MaxRunning is how many calls research at once; 0 is 8. Further ones wait in turn.
	MaxRunning int
	// Grace is how long runs may take to say what they have when the desk is closed; 0 is 2 s.
	Grace time.Duration
	Log   *slog.Logger // nil logs nothing
	// Recorded gives the stored result of an ended run. Without it only results of this
	// process are known, and for no longer than an hour.
	Recorded func(ctx context.Context, id marchwarden.TraceID) (*marchwarden.Result, error)
}

const (
	defaultRetention  = 7 * 24 * time.Hour
	defaultMaxRunning = 8
	defaultGrace      = 2 * time.Second

	// An ended run stays in memory for those who wait for it, and for those who ask
	// again soon.
	linger         = 5 * time.Minute
	lingerUnstored = time.Hour
	maxEnded       = 128

	pruneEvery = time.Hour
)

// ErrShutdown is why a closed desk begins nothing, and the cause with which the contexts
// of its runs end.
var ErrShutdown error = &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "the server is shutting down", Hint: "call again when it is back"}

// Desk begins runs and finds them again. It is safe for concurrent use.
type Desk struct {
	cfg     Config
	records *shelf
	group   sync.WaitGroup // everything that goes on in the background

	mu         sync.Mutex
	closed     bool
	recovering bool
	runs       map[marchwarden.TraceID]*Run // that have not ended, and those in ended
	running    int                          // slots in use: calls of Research that have not returned
	waiting    []*turn                      // for a slot, the first in front
	ended      []*Run                       // from the first that ended to the last
	pruned     time.Time
}

// Open reads the records of the folder and removes those whose time is over. It starts
// nothing: Recover does. A record that is damaged is set aside under another name and has no owner.
// The caller closes the desk.
func Open(cfg Config) (*Desk, error) {
	if cfg.NewID == nil {
		cfg.NewID = func() marchwarden.TraceID {
			id, _ := marchwarden.ParseTraceID(uuid.NewString())
			return id
		}
	}
	cfg.Retention = cmp.Or(cfg.Retention, defaultRetention)
	cfg.MaxRunning = cmp.Or(cfg.MaxRunning, defaultMaxRunning)
	cfg.Grace = cmp.Or(cfg.Grace, defaultGrace)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	records, err := openShelf(cfg.Dir, cfg.Log)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "open the folder of the runs")
	}
	d := &Desk{cfg: cfg, records: records, runs: map[marchwarden.TraceID]*Run{}}
	d.prune()
	if cfg.Dir != "" {
		records.tidy(cfg.Now())
	}
	return d, nil
}

// Asked is what a run is begun with.
type Asked struct {
	Request marchwarden.Request
	// Choice says who may be asked, with what, if the researcher lets a caller choose: it is
	// ChoiceOf the context of the research, after a restart too.
	Choice *marchwarden.Choice
	// Keep has the run continue when its last caller leaves, and after a restart. Any other run is
	// stopped when its last caller leaves.
	Keep bool
	// Sink hears every event from the beginning or, of a run that goes on already, from
	// now on; the last one before Done. It is called by the research itself and, as any
	// sink, must not block. It may be nil.
	Sink marchwarden.Sink
}

// Begin starts a run in the name of the principal of ctx and returns while it goes on, or
// waits for its turn: then its events say its place in the queue, and its time has not begun.
// Of ctx the run keeps the values and the deadline, at which it is to say what it has,
// but not the cancellation: Leave, Cancel or Close stops it. Before Begin returns, the record
// of a kept run, and of a run of any caller but the local user, is durable; if it cannot be written,
// a kept run is CodeUnavailable, and any other goes on without one. The caller ends the visit, or leaves.
//
// With Resume set it is that run that goes on. If it has not ended, the caller attaches
// to the same *Run, unless there are constraints to add (CodeUnavailable). A run to resume
// or to follow that the principal may not see is CodeNotFound, as is one that there never was.
//
// Further errors: CodeDenied for a caller without a principal, CodeInvalid for a request that
// breaks the contract, CodeUnavailable when as many runs wait as may, or the desk is closed.
func (d *Desk) Begin(ctx context.Context, asked Asked) (*Visit, error) {
	who := access.From(ctx)
	if who.ID == "" {
		return nil, marchwarden.Errorf(marchwarden.CodeDenied, "the caller is unknown: a run needs an owner")
	}
	ask := asked.Request
	id, err := marchwarden.ParseTraceID(ask.Resume)
	if ask.Resume != "" && (err != nil || !d.Owns(ctx, id)) {
		return nil, unknown(ask.Resume)
	}
	if err := ask.Validate(); err != nil {
		return nil, err
	}
	if followed, err := marchwarden.ParseTraceID(ask.Follow); ask.Follow != "" && (err != nil || !d.Owns(ctx, followed)) {
		return nil, &marchwarden.Error{Code: marchwarden.CodeNotFound, Field: "follow", Message: "no run " + plaintext.Line(ask.Follow, 40)}
	}
	d.prune()
	var old *Run
	if ask.Resume != "" {
		if old, err = d.find(id); err != nil {
			return nil, err
		}
		if old != nil && !old.over() {
			return old.attach(asked)
		}
	}
	if err := d.room(); err != nil {
		return nil, err
	}
	r := d.newRun(ctx, d.begun(ctx, old, id, asked))
	r.recorded = asked.Keep || r.rec.Owner != access.Local().ID
	if old != nil {
		old.mu.Lock()
		r.recorded = r.recorded || old.recorded
		old.mu.Unlock()
	}
	return d.enter(r, old, asked)
}

// begun is the record of a run that begins, or is resumed. What it was at first stays: whose it is,
// what was asked, and what its earlier result had cited.
func (d *Desk) begun(ctx context.Context, old *Run, id marchwarden.TraceID, asked Asked) record {
	now, who := d.cfg.Now(), access.From(ctx)
	rec := record{Format: recordFormat, ID: id, Owner: who.ID, Scopes: who.Scopes, MaxCostDay: who.MaxCostDay, Researcher: d.cfg.Name, Request: asked.Request, Created: now, Message: "research goes on"}
	switch {
	case asked.Request.Resume == "":
		rec.ID, rec.Choice, rec.Message = d.chooseID(ctx, who), asked.Choice, "research started"
	case old != nil:
		rec = old.snapshot()
		rec.Message, rec.Ended, rec.Failure = "research goes on", time.Time{}, nil
	}
	rec.Kept, rec.Status, rec.Updated = asked.Keep, Working, now
	return rec
}

// enter makes a run known, in the place of one that has ended, and begins it.
// If another run has its id by now, a caller that resumes attaches to that one.
func (d *Desk) enter(r, before *Run, asked Asked) (*Visit, error) {
	first := r.visit(asked.Sink, false) // before another caller can attach, and leave again
	d.mu.Lock()
	other, closed := d.runs[r.id], d.closed
	taken := other != nil && other != before && !other.over()
	if !closed && !taken {
		d.runs[r.id] = r
		d.group.Add(1) // launch ends it
	}
	d.mu.Unlock()
	if !closed && !taken {
		return d.launch(first, asked.Request)
	}
	r.halt(nil)
	switch {
	case closed:
		return nil, ErrShutdown
	case asked.Request.Resume == "":
		return nil, goingOn(r.id)
	}
	return other.attach(asked)
}

// launch writes the record of a run that is known, and begins its work when its turn comes.
func (d *Desk) launch(first *Visit, ask marchwarden.Request) (*Visit, error) {
	r := first.Run
	if err := r.inscribe(); err != nil && (r.Kept() || err != errUnrecorded) {
		d.mu.Lock()
		delete(d.runs, r.id) // its id is taken by no other meanwhile
		d.mu.Unlock()
		r.settle(outcome{err: err})
		d.group.Done()
		return nil, err
	}
	turn := d.join(r)
	go func() {
		defer d.group.Done()
		if !d.await(turn) {
			return
		}
		r.note(marchwarden.Event{Stage: marchwarden.StagePlan, Message: "research started"})
		out := d.research(r, ask)
		d.release() // before the outcome: a caller with the answer finds the slot free
		r.settle(out)
	}()
	return first, nil
}

// errUnrecorded is all that a caller is told of a disk that fails: where the records are
// is not theirs to know.
var errUnrecorded error = &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "the run cannot be recorded, so it cannot be a task",
	Hint: "call without tasks, or again later; the log of the server has more"}

// unrecorded logs why a run has no record, and gives what its caller is told.
func (d *Desk) unrecorded(id marchwarden.TraceID, err error) error {
	d.cfg.Log.Error("a run cannot be recorded, so it is not found after a restart", "run", id.String(), "error", err)
	return errUnrecorded
}

// chooseID makes the id of a new run. One that the local user's program has chosen, to
// find the run again whatever happens, is taken unless there is such a run; any other caller
// could choose an id to find out whether there is.
func (d *Desk) chooseID(ctx context.Context, who access.Principal) marchwarden.TraceID {
	id, ok := marchwarden.ChosenTraceID(ctx)
	if !ok || !who.SeesAll() {
		return d.cfg.NewID()
	}
	if there, err := d.find(id); err != nil || there != nil {
		return d.cfg.NewID()
	}
	return id
}

// unknown is what is said of a run that is not there, and of one that is not the
// caller's: the two cannot be told apart.
func unknown(id string) error {
	return marchwarden.Errorf(marchwarden.CodeNotFound, "no run %s", plaintext.Line(id, 40))
}
