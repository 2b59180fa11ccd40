package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/relay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// workplace is where the researchers of a worker record and keep what they find: the
// journals of the tasks that it holds, and the evidence of its engine.
type workplace struct {
	engine dispatch.Engine
	held   *trace.Held
	hide   *secret.Redactor
}

func (a *app) newWorkplace(e dispatch.Engine) *workplace {
	held := trace.NewHeld(a.now)
	held.Clean = a.hide.Bytes
	return &workplace{engine: e, held: held, hide: a.hide}
}

// records are those of the workplace as a desk has them.
func (w *workplace) records(c *settings.Settings) *records {
	away := marchwarden.Errorf(marchwarden.CodeUnavailable, "a worker keeps its records with its engine")
	return &records{traces: trace.Nowhere(c.Text(settings.TraceDir), away), blobs: &discreet{nil, w.hide, w.engine.Blobs()}, held: w.held}
}

// recordsFor opens the records of a desk.
func (a *app) recordsFor(c *settings.Settings, o deskOptions) (*records, error) {
	if o.shared != nil {
		return o.shared.records(c), nil
	}
	return a.openWorking(c)
}

// staff are the researchers and the investigator of one process, at work for an engine.
// Close it when done.
type staff struct {
	a        *app
	c        *settings.Settings
	o        deskOptions
	place    *workplace
	log      *slog.Logger
	seats    []pool.Seat
	sessions *pool.Pool // with those that are somebody else's
	// network are all who may be asked in an investigation, on whatever host.
	network func() []dispatch.Member
	// forOthers says that it works for a cluster: investigations have a time even if
	// nothing leaves the machine, since whom they ask may not come back; and whoever asks
	// can wish for less than this worker allows, never for more.
	forOthers bool
	// measured is put around every handler; nil is nothing.
	measured func(dispatch.Handler) dispatch.Handler
	vectors  *vectors
	table    json.RawMessage

	mu    sync.Mutex // guards what follows
	desks map[post]*desk
	minds map[chosenFor]llm.Model
	again func(context.Context, string) (pi.Document, error) // gets documents again
	files []func() error
}

// post is a researcher of the staff; its runs are part of investigations or not.
type post struct {
	name   string
	partOf bool
}

// chosenFor is a model, and whether the fallback may stand behind it.
type chosenFor struct {
	chosenModel
	public bool
}

// openStaff finds who works for an engine in this process, as the options say. Nobody
// is started before there is a task. An engine that is still to be found is nil until
// employ.
func (a *app) openStaff(c *settings.Settings, o deskOptions, e dispatch.Engine, log *slog.Logger) (*staff, error) {
	o.isolate, o.log, o.shared, o.flags = false, log, a.newWorkplace(e), []string{}
	if o.told == nil {
		o.told = func(finished) {}
	}
	if err := o.check(a, c, settings.PI); err != nil {
		return nil, err
	}
	if err := a.startTracing(c); err != nil {
		return nil, err
	}
	if err := a.checkBeforehand(c, o); err != nil {
		return nil, err
	}
	if err := a.checkForAll(c, o); err != nil {
		return nil, err
	}
	s := &staff{a: a, c: c, o: o, place: o.shared, log: log, desks: map[post]*desk{}, minds: map[chosenFor]llm.Model{}}
	var err error
	if s.seats, err = a.seats(c, o); err != nil {
		return nil, err
	}
	s.network = s.members
	var strangers []pool.Seat
	for _, seat := range s.seats {
		if !settings.IsBuiltin(seat.Name) {
			strangers = append(strangers, seat)
		}
	}
	if s.sessions, err = pool.New(pool.Config{Seats: strangers, Pins: pool.FilePins(c.PinsPath()), Now: a.now, Log: log}); err != nil {
		return nil, err
	}
	if s.table, err = calibrationOf(c); err != nil {
		return nil, errors.Join(err, s.sessions.Close())
	}
	if e == nil { // it may limit who makes the vectors
		err = a.checkVectors(c)
	} else {
		s.vectors, err = a.openVectors(c)
	}
	if err != nil {
		return nil, errors.Join(err, s.sessions.Close())
	}
	return s, nil
}

// checkForAll finds what would make every task fail, before one is taken: a task that
// failed is not tried again.
func (a *app) checkForAll(c *settings.Settings, o deskOptions) error {
	public := offline(a, c, o) == ""
	if _, err := c.Deadline(o.timeout, public); err != nil {
		return err
	}
	_, err := a.openModel(c, chooseModel(c, o.model, public), public)
	return err
}

// members are the researchers of this process.
func (s *staff) members() []dispatch.Member {
	var all []dispatch.Member
	for _, seat := range s.seats {
		all = append(all, seat.Member)
	}
	return all
}

// handler is who works on the tasks of a queue, and of no other: what a worker serves is
// its owner's to say, whatever an engine hands it.
func (s *staff) handler(queue string) dispatch.Handler {
	work := s.stranger
	switch {
	case queue == settings.PI:
		work = s.investigate
	case settings.IsBuiltin(queue):
		work = s.research
	}
	serve := relay.Serve(s.place.held, func(ctx context.Context, t dispatch.Task, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
		ctx, told := s.a.tracer.Work(ctx, t.Queue, t.Span)
		res, err := work(ctx, t, req, sink)
		told(err)
		return res, err
	})
	return func(ctx context.Context, t dispatch.Task, lines dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		if t.Queue != queue {
			return nil, &marchwarden.Error{Code: marchwarden.CodeDenied, Field: "queue", Message: fmt.Sprintf("%.60q is not served here: this is the worker of %s", t.Queue, queue)}
		}
		return serve(ctx, t, lines, sink)
	}
}

// research has a researcher of this program work on a task.
func (s *staff) research(ctx context.Context, t dispatch.Task, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	d, err := s.desk(post{t.Queue, t.Investigation != t.Record})
	if err != nil {
		return nil, err
	}
	return d.Research(ctx, req, sink)
}

// desk opens a researcher when it is first asked.
func (s *staff) desk(p post) (*desk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.desks[p]; d != nil {
		return d, nil
	}
	o := s.o.partFor(p.name)
	o.partOf, o.shared, o.flags, o.told = p.partOf, s.place, s.o.flags, s.o.told
	d, err := s.a.openDesk(s.c, o)
	if err != nil {
		return nil, err
	}
	s.desks[p] = d
	return d, nil
}

// stranger has somebody else's researcher work on a task, and stores what it cites where
// everybody can look.
func (s *staff) stranger(ctx context.Context, t dispatch.Task, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	ctx = marchwarden.WithTraceID(ctx, marchwarden.TraceID{}) // it keeps records of its own
	res, err := s.sessions.Dispatch(ctx, t.Queue, req, sink)
	if err != nil {
		return nil, err
	}
	late, done := context.WithTimeout(context.WithoutCancel(ctx), evidenceTime)
	defer done()
	return res, relay.Bring(late, s.place.engine.Blobs(), s.sessions, t.Queue, res)
}

// evidenceTime is how long a stranger may take to hand over what it cites.
const evidenceTime = 30 * time.Second

// Close closes everybody, and not the engine.
func (s *staff) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := []error{s.sessions.Close()}
	for _, name := range settings.Builtin {
		for _, partOf := range []bool{true, false} {
			if d := s.desks[post{name, partOf}]; d != nil {
				errs = append(errs, d.Close())
			}
		}
	}
	for _, f := range s.files {
		errs = append(errs, f())
	}
	if s.vectors != nil {
		errs = append(errs, s.vectors.Close())
	}
	return errors.Join(errs...)
}

// work takes tasks from the queues of the staff until ctx ends, and then for as long as
// drain lets those go on that are under way.
func (s *staff) work(ctx context.Context, jobs []dispatch.Job) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(jobs))
	var all sync.WaitGroup
	for i, job := range jobs {
		all.Go(func() {
			h := s.handler(job.Queue)
			if s.measured != nil {
				h = s.measured(h)
			}
			if errs[i] = s.place.engine.Work(ctx, job, h); errs[i] != nil {
				errs[i] = fmt.Errorf("work on the queue %s: %w", job.Queue, errs[i])
				stop() // a worker that does half of its work is worse than none
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// jobs are the queues of the staff: each researcher's, and the investigator's unless it has no
// slots. Investigations have slots of their own: those that wait for their rihlas keep
// none of these waiting.
func (s *staff) jobs(slots, piSlots int, drain time.Duration) []dispatch.Job {
	var all []dispatch.Job
	for _, seat := range s.seats {
		all = append(all, dispatch.Job{Queue: seat.Name, Slots: slots, Drain: drain})
	}
	if piSlots > 0 {
		all = append(all, dispatch.Job{Queue: settings.PI, Slots: piSlots, Drain: drain})
	}
	return all
}

// only are the members that a task may have asked.
func only(all []dispatch.Member, names []string) []dispatch.Member {
	if len(names) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(m dispatch.Member) bool { return !slices.Contains(names, m.Name) })
}
