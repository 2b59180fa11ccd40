package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool/register"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// poll is how often files are looked at, at least, for what other processes have
// written.
const poll = 100 * time.Millisecond

// EngineConfig is what an engine of files needs.
type EngineConfig struct {
	Dir   string     // made when missing; several processes may share it
	Blobs blob.Store // the caller's to close
	Now   func() time.Time
	Name  string // of this process, in the records of what it works on
	// Limit finds what is shared of a provider; nil limits nothing.
	Limit func(key string) dispatch.Limiter
	// Log is told what went wrong with a task that could not be told otherwise; nil: no log.
	Log *slog.Logger
}

// Engine is a dispatch.Engine of files and goroutines, for the processes of one machine.
//
// Below its folder:
//
//	log/ab/ID.jsonl   all that happened in an investigation (package register)
//	part/ab/ID        the investigation of a task that is part of one
//	queue.jsonl       the tasks that have not ended
//	live/ab/ID        progress, which is not kept
//	lease/ab/ID       locked by the worker on the record of that id
//
// A lock ends with its process, so what a killed one held is free at once, and others try
// what they found held every poll. What was acknowledged survives kill -9 and a power loss.
type Engine struct {
	cfg    EngineConfig
	queues *register.Queues
	over   context.Context // ends when the engine is closed
	close  context.CancelFunc

	mu     sync.Mutex // guards what follows
	folios map[marchwarden.TraceID]*shared
	held   map[*hold]bool
	dead   bool // as if its process had been killed
}

// shared is a folio that is in use.
type shared struct {
	*register.Folio
	users int
}

var _ dispatch.Engine = (*Engine)(nil)

// OpenEngine opens the engine in a folder. The caller closes it.
func OpenEngine(cfg EngineConfig) (*Engine, error) {
	if cfg.Dir == "" || cfg.Blobs == nil || cfg.Now == nil {
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "an engine needs a folder, a blob store and a clock")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := durable.MakeDir(cfg.Dir); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "open the engine")
	}
	e := &Engine{cfg: cfg, queues: register.OpenQueues(filepath.Join(cfg.Dir, "queue.jsonl")), folios: map[marchwarden.TraceID]*shared{}, held: map[*hold]bool{}}
	if err := errors.Join(e.queues.Refresh(), e.queues.Compact()); err != nil {
		return nil, fmt.Errorf("open the engine: %w", err)
	}
	e.over, e.close = context.WithCancel(context.Background())
	return e, nil
}

// Blobs is the store that the engine was opened with.
func (e *Engine) Blobs() blob.Store { return e.cfg.Blobs }

// Limit is what is shared of a provider.
func (e *Engine) Limit(key string) dispatch.Limiter {
	if e.cfg.Limit != nil {
		return e.cfg.Limit(key)
	}
	return free{}
}

// free never waits.
type free struct{}

func (free) Take(ctx context.Context, _ int) (func(used int), error) { return func(int) {}, ctx.Err() }
func (free) Limited() bool                                           { return false }
func (free) Slow(time.Time)                                          {}

// Close ends all work and hands back what is under way.
func (e *Engine) Close() error {
	e.close()
	e.giveUpAll()
	return nil
}

// usable says why the engine cannot be used.
func (e *Engine) usable(ctx context.Context) error {
	if e.over.Err() != nil {
		return marchwarden.Errorf(marchwarden.CodeUnavailable, "the engine is closed")
	}
	return ctx.Err()
}

// path is where something about an id is kept.
func (e *Engine) path(kind string, id marchwarden.TraceID, suffix string) string {
	return filepath.Join(e.cfg.Dir, kind, id.String()[34:], id.String()+suffix)
}

// folio is the log of an investigation as it is now, until done is called.
func (e *Engine) folio(id marchwarden.TraceID) (f *register.Folio, done func(), err error) {
	if !id.Valid() {
		return nil, nil, marchwarden.Errorf(marchwarden.CodeNotFound, "there is nothing without an id")
	}
	e.mu.Lock()
	s := e.folios[id]
	if s == nil {
		s = &shared{Folio: register.OpenFolio(e.path("log", id, ".jsonl"))}
		e.folios[id] = s
	}
	s.users++
	e.mu.Unlock()
	done = sync.OnceFunc(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if s.users--; s.users == 0 {
			delete(e.folios, id)
		}
	})
	if err := s.Refresh(); err != nil {
		done()
		return nil, nil, err
	}
	return s.Folio, done, nil
}

// find is the log of the investigation that a task is part of, until done is called, and
// what it says of the task.
func (e *Engine) find(id marchwarden.TraceID) (f *register.Folio, a register.Account, done func(), err error) {
	if !id.Valid() {
		return nil, a, nil, marchwarden.Errorf(marchwarden.CodeNotFound, "there is no task without an id")
	}
	whole, err := register.WholeOf(e.path("part", id, ""), id)
	if err != nil {
		return nil, a, nil, err
	}
	if f, done, err = e.folio(whole); err != nil {
		return nil, a, nil, err
	}
	a, known := f.Account(id)
	if !known {
		done()
		return nil, a, nil, marchwarden.Errorf(marchwarden.CodeNotFound, "there is no task %s", id)
	}
	return f, a, done, nil
}

// Submit submits a task, as dispatch.Client promises. A task that resumes the record of another is
// part of the same investigation; otherwise it is CodeInvalid.
func (e *Engine) Submit(ctx context.Context, t dispatch.Task) error {
	if err := e.usable(ctx); err != nil {
		return err
	}
	t = t.Completed()
	if err := e.check(t); err != nil {
		return err
	}
	f, done, err := e.folio(t.Investigation)
	if err != nil {
		return err
	}
	defer done()
	err = f.Write(func() (*register.Entry, error) {
		if _, known := f.Account(t.ID); known {
			return nil, register.ErrKnown
		}
		return &register.Entry{Kind: register.HandedIn, Task: t.ID, Spec: &t}, nil
	})
	if err != nil {
		return fmt.Errorf("submit task %s: %w", t.ID, err)
	}
	if t.ID != t.Investigation {
		if err := register.NotePart(e.path("part", t.ID, ""), t.Investigation); err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "submit task %s", t.ID)
		}
	}
	a, _ := f.Account(t.ID)
	if a.End != nil {
		return nil
	}
	t = a.Task // as it was submitted first
	return e.queues.Add(&register.Pointer{Task: t.ID, Investigation: t.Investigation, Record: t.Record, Queue: t.Queue, Priority: t.Priority, Owner: t.Owner})
}

// check refuses a task that cannot be kept.
func (e *Engine) check(t dispatch.Task) error {
	if err := t.Check(); err != nil || t.Record == t.ID {
		return err
	}
	whole, err := register.WholeOf(e.path("part", t.Record, ""), t.Record)
	if err == nil && whole != t.Investigation {
		err = marchwarden.Errorf(marchwarden.CodeInvalid, "task %s resumes run %s, which is part of another investigation", t.ID, t.Record)
	}
	return err
}

// Look says how a task is.
func (e *Engine) Look(ctx context.Context, id marchwarden.TraceID) (dispatch.State, error) {
	if err := e.usable(ctx); err != nil {
		return dispatch.State{}, err
	}
	_, a, done, err := e.find(id)
	if err != nil {
		return dispatch.State{}, err
	}
	defer done()
	if a.Status == dispatch.Working && !register.IsTaken(e.path("lease", a.Task.Record, "")) {
		a.Status = dispatch.Waiting // its worker is gone
	}
	return a.State, nil
}

// Cancel tells the workers on a task, or on the parts of an investigation, to end with what there
// is, and ends what no worker has.
func (e *Engine) Cancel(ctx context.Context, id marchwarden.TraceID, reason string) error {
	if err := e.usable(ctx); err != nil {
		return err
	}
	f, done, err := e.watched(dispatch.Watching{Investigation: id})
	c := &register.Entry{Kind: register.Canceled, Reason: dispatch.Words(reason)}
	if errors.Is(err, marchwarden.CodeNotFound) {
		c.Task = id
		f, done, err = e.watched(dispatch.Watching{Task: id})
	}
	if err != nil {
		return err
	}
	defer done()
	err = f.Write(func() (*register.Entry, error) {
		a, _ := f.Account(id)
		if c.Task.Valid() && (a.End != nil || a.Cancel != nil) || len(f.Open()) == 0 {
			return nil, register.ErrKnown
		}
		return c, nil
	})
	if err != nil {
		return fmt.Errorf("cancel %s: %w", id, err)
	}
	for _, open := range f.Open() {
		if a, _ := f.Account(open); a.Cancel != nil {
			e.settle(a.Task)
		}
	}
	return nil
}

// Watch gives the events of an investigation.
func (e *Engine) Watch(ctx context.Context, w dispatch.Watching) iter.Seq2[dispatch.Event, error] {
	return func(yield func(dispatch.Event, error) bool) {
		if err := e.watch(ctx, w, yield); err != nil && ctx.Err() == nil {
			yield(dispatch.Event{}, err)
		}
	}
}

// watch yields events until one of them, ctx or yield is the end of it.
func (e *Engine) watch(ctx context.Context, w dispatch.Watching, yield func(dispatch.Event, error) bool) error {
	if err := e.usable(ctx); err != nil {
		return err
	}
	f, done, err := e.watched(w)
	if err != nil {
		return err
	}
	defer done()
	until := cmp.Or(w.Task, w.Investigation) // whose end is the end of it
	var ear *register.Ear                    // for what goes on
	if a, known := f.Account(until); !known || a.End == nil {
		ear = e.live(cmp.Or(a.Task.Investigation, w.Investigation)).Listen()
		defer ear.Close()
	}
	pace := register.Pace{Most: poll}
	defer pace.Stop()
	for {
		news := f.News()
		seen := w.After
		more, err := e.tell(ctx, f, &w, ear, yield)
		if err != nil || !more {
			return err
		}
		if a, ok := f.Account(until); ok && a.End != nil && a.EndSeq <= w.After {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-e.over.Done():
			return e.usable(ctx)
		case <-news:
		case <-pace.Next(w.After > seen):
			if err := f.Refresh(); err != nil {
				return err
			}
		}
	}
}

// tell yields what is new to a watcher, and reports whether there may be more.
func (e *Engine) tell(ctx context.Context, f *register.Folio, w *dispatch.Watching, ear *register.Ear, yield func(dispatch.Event, error) bool) (more bool, err error) {
	until := cmp.Or(w.Task, w.Investigation)
	of := func(ev dispatch.Event) bool { return !w.Task.Valid() || ev.Task == w.Task }
	progress := func() bool {
		for _, p := range ear.Hear() {
			if of(p) && !yield(p, nil) {
				return false
			}
		}
		return true
	}
	more = true
	err = f.Events(w.After, func(ev dispatch.Event) bool {
		w.After = ev.Seq
		if !of(ev) {
			return true
		}
		last := ev.Kind == dispatch.Ended && ev.Task == until
		// What was said before the end comes before it.
		more = (!last || progress()) && ctx.Err() == nil && yield(ev, nil) && !last
		return more
	})
	return err == nil && more && progress(), err
}

// live is where the progress of an investigation is told.
func (e *Engine) live(id marchwarden.TraceID) register.Live {
	return register.OpenLive(e.path("live", id, ""))
}

// watched is the log of what is watched, as it is now, until done is called.
func (e *Engine) watched(w dispatch.Watching) (f *register.Folio, done func(), err error) {
	if w.Task.Valid() {
		f, _, done, err = e.find(w.Task)
		return f, done, err
	}
	if f, done, err = e.folio(w.Investigation); err != nil {
		return nil, nil, err
	}
	if f.Empty() {
		done()
		return nil, nil, marchwarden.Errorf(marchwarden.CodeNotFound, "there is no investigation %s", w.Investigation)
	}
	return f, done, nil
}
