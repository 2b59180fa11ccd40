package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// WorkerRecords is where the researchers of a worker record and keep what they find: the
// journals of the tasks that it holds, and the evidence of its engine.
type WorkerRecords struct {
	engine dispatch.Engine
	held   *trace.Held
	hide   *secret.Redactor
}

func (h *Host) NewWorkerRecords(e dispatch.Engine) *WorkerRecords {
	held := trace.NewHeld(h.Now)
	held.Clean = h.Hide.Bytes
	return &WorkerRecords{engine: e, held: held, hide: h.Hide}
}

// Records are those of the worker, as a Runner has them.
func (w *WorkerRecords) Records(c *settings.Settings) *Records {
	away := marchwarden.Errorf(marchwarden.CodeUnavailable, "a worker keeps its records with its engine")
	return &Records{Traces: trace.Nowhere(c.Text(settings.TraceDir), away), Blobs: &Evidence{w.engine.Blobs(), nil, w.hide}, held: w.held}
}

// OpenCluster opens a cluster as one researcher, for a server. A question may take that long; 0
// leaves it to the workers. The caller closes the engine after it.
func (h *Host) OpenCluster(c *settings.Settings, o Options, e submit.Recorder, limit time.Duration) *Runner {
	r := &submit.Cluster{Engine: e, NewID: h.NewID, Now: h.Now, Timeout: limit}
	return &Runner{Name: settings.PI, Scope: pi.Scope, OpenWorld: true, Silent: true, Researcher: r, Host: h, Settings: c,
		Records: h.NewWorkerRecords(e).Records(c), Shown: r, Warn: o.Warn, Told: o.Told}
}

// Worker are the researchers and the investigator of one process, at work for a cluster.
// Close it when done.
type Worker struct {
	Host     *Host
	Settings *settings.Settings
	Options  Options
	Place    *WorkerRecords
	Seats    []pool.Seat
	sessions *pool.Pool // with the external ones
	// network are all who may be asked in an investigation, on whatever host.
	network func() []dispatch.Member
	Vectors *Vectors

	mu      sync.Mutex     // guards what follows
	busy    map[string]int // how many tasks are worked on now, by queue
	Runners map[Post]*Runner
	minds   map[chosenModel]llm.Model
	again   func(context.Context, string) (fetch.Page, error) // gets documents again
	files   []func() error
}

// Post is a researcher of a worker; its runs are part of investigations or not.
type Post struct {
	name   string
	partOf bool
}

// OpenWorker finds who works for a cluster in this process, as the options say; Employ names the
// cluster. No researcher is started before there is a task.
func (h *Host) OpenWorker(c *settings.Settings, o Options, log *slog.Logger) (*Worker, error) {
	o.Isolate, o.Log, o.shared = false, log, h.NewWorkerRecords(nil)
	if err := o.Check(c, settings.PI); err != nil {
		return nil, err
	}
	if err := h.checkBeforehand(c, o); err != nil {
		return nil, err
	}
	if _, err := h.labFor(c, o, offline(c, o) == ""); err != nil { // it would make every task fail, and one that failed is not tried again
		return nil, err
	}
	s := &Worker{Host: h, Settings: c, Options: o, Place: o.shared, busy: map[string]int{}, Runners: map[Post]*Runner{}, minds: map[chosenModel]llm.Model{}}
	var err error
	if s.Seats, err = h.Seats(c, o); err != nil {
		return nil, err
	}
	s.network = s.Members
	var strangers []pool.Seat
	for _, seat := range s.Seats {
		if !settings.IsBuiltin(seat.Name) {
			strangers = append(strangers, seat)
		}
	}
	if s.sessions, err = pool.New(pool.Config{Seats: strangers, Pins: pool.FilePins(c.PinsPath()), Now: h.Now, Log: log}); err != nil {
		return nil, err
	}
	s.Vectors = h.OpenVectors(c)
	return s, nil
}

// Members are the researchers of this process.
func (s *Worker) Members() (all []dispatch.Member) {
	for _, seat := range s.Seats {
		all = append(all, seat.Member)
	}
	return all
}

// Handler is who works on the tasks of a queue, and of no other: what a worker serves is
// its owner's to say, whatever an engine hands it.
func (s *Worker) Handler(queue string) dispatch.Handler {
	work := s.stranger
	switch {
	case queue == settings.PI:
		work = s.investigate
	case settings.IsBuiltin(queue):
		work = s.research
	}
	serve := submit.Serve(s.Place.held, work)
	return func(ctx context.Context, t dispatch.Task, lines dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		if t.Queue != queue {
			return nil, &marchwarden.Error{Code: marchwarden.CodeDenied, Field: "queue", Message: fmt.Sprintf("%.60q is not served here: this is the worker of %s", t.Queue, queue)}
		}
		s.shift(queue, 1)
		defer s.shift(queue, -1)
		return serve(ctx, t, lines, sink)
	}
}

func (s *Worker) shift(queue string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy[queue] += by
}

// Busy is how many tasks of a queue are worked on now.
func (s *Worker) Busy(queue string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy[queue]
}

// research has a researcher of this program work on a task. It is opened when it is first asked.
func (s *Worker) research(ctx context.Context, t dispatch.Task, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	d, err := once(&s.mu, s.Runners, Post{t.Queue, t.Investigation != t.Record}, func(p Post) (*Runner, error) {
		o := s.Options.PartFor(p.name)
		o.PartOf, o.shared, o.Told = p.partOf, s.Place, s.Options.Told
		return s.Host.Open(s.Settings, o)
	})
	if err != nil {
		return nil, err
	}
	return d.Research(ctx, req, sink)
}

// once gives what is open by a key, and opens it when it is first wanted.
func once[K comparable, V any](mu *sync.Mutex, kept map[K]V, key K, open func(K) (V, error)) (V, error) {
	mu.Lock()
	defer mu.Unlock()
	if v, there := kept[key]; there {
		return v, nil
	}
	v, err := open(key)
	if err == nil {
		kept[key] = v
	}
	return v, err
}

// stranger has an external researcher work on a task, and stores what it cites where every process
// can look.
func (s *Worker) stranger(ctx context.Context, t dispatch.Task, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	ctx = marchwarden.WithTraceID(ctx, marchwarden.TraceID{}) // it keeps records of its own
	res, err := s.sessions.Dispatch(ctx, t.Queue, req, sink)
	if err != nil {
		return nil, err
	}
	late, done := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second) // to hand over what it cites
	defer done()
	return res, submit.Bring(late, s.Place.engine.Blobs(), s.sessions, t.Queue, res)
}

// Close closes all researchers, and not the engine.
func (s *Worker) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := []error{s.sessions.Close()}
	for _, d := range s.Runners {
		errs = append(errs, d.Close())
	}
	for _, f := range s.files {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// Work takes tasks from the queues of the worker until ctx ends, and then for as long as
// drain lets those go on that are under way.
func (s *Worker) Work(ctx context.Context, jobs []dispatch.Job) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(jobs))
	var all sync.WaitGroup
	for i, job := range jobs {
		all.Go(func() {
			if errs[i] = s.Place.engine.Work(ctx, job, s.Handler(job.Queue)); errs[i] != nil {
				errs[i] = fmt.Errorf("work on the queue %s: %w", job.Queue, errs[i])
				stop() // a worker that does half of its work is worse than none
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Jobs are the queues of the worker: each researcher's, and the investigator's unless it has no
// slots. Investigations have slots of their own: those that wait for their rihlas keep
// none of these waiting.
func (s *Worker) Jobs(slots, piSlots int, drain time.Duration) (all []dispatch.Job) {
	for _, seat := range s.Seats {
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

// employer is a cluster, for those who work for it.
type employer interface {
	dispatch.Engine
	Members(ctx context.Context) ([]dispatch.Member, error)
}

// Employ has the worker work for a cluster, within its limits.
func (s *Worker) Employ(e employer) {
	s.Place.engine, s.Host.Limits = e, e.Limit
	s.network = func() []dispatch.Member {
		ctx, done := context.WithTimeout(context.Background(), scopeTime)
		defer done()
		members, err := e.Members(ctx)
		if err != nil { // it may come back; those here are there
			return s.Members()
		}
		return members
	}
}
