package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
)

const (
	// returnAfter is when a task may be taken again that could not be begun here.
	returnAfter = 2 * time.Second
	// handBackFor is how long a worker that stops tries to say so.
	handBackFor = 2 * time.Second
	// leaveFor is how long a worker waits for a handler whose task is not its own any more.
	leaveFor = 2 * time.Second
)

// Work takes tasks from a queue.
func (e *Engine) Work(ctx context.Context, job dispatch.Job, handle dispatch.Handler) error {
	if err := job.Check(); err != nil {
		return err
	}
	queue, err := e.conn.OpenQueue(ctx, job.Queue, e.facts.Lease)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer queue.Close()
	stops, err := e.heedStops(ctx)
	if err != nil {
		return err
	}
	defer stops()
	w := &crew{e: e, handle: handle, slots: make(chan struct{}, job.Slots)}
	err = w.take(ctx, queue)
	queue.Close()
	w.drain(job.Drain)
	return err
}

// crew is what one call of Work has under way.
type crew struct {
	e      *Engine
	handle dispatch.Handler
	slots  chan struct{} // holds one for each that is taken
	group  sync.WaitGroup
	// stopping says that what is claimed is handed back.
	stopping atomic.Bool
}

// take begins tasks as long as there is room, until ctx ends.
func (w *crew) take(ctx context.Context, queue *streams.Queue) error {
	for {
		select {
		case w.slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		p, err := queue.Next(ctx)
		if ctx.Err() != nil {
			if p != nil {
				_ = p.Return(0) // its lease ends by itself
			}
			<-w.slots
			return nil
		}
		if err != nil {
			<-w.slots
			return err
		}
		w.group.Go(func() {
			defer func() { <-w.slots }()
			w.work(context.WithoutCancel(ctx), p)
		})
	}
}

// work claims a task, has it worked on, and ends it. Its lease is renewed all the while.
func (w *crew) work(ctx context.Context, p *streams.Pointer) {
	life, die := context.WithCancelCause(ctx)
	defer die(nil)
	go p.Keep(life, func() { die(released(p.Task, errors.New("its lease could not be renewed"))) })
	h, err := w.claim(life, p)
	if err == nil && h != nil {
		h.life, h.die = life, die
		h.work, h.cancel = context.WithCancelCause(life)
		err = w.e.keep(h)
	}
	if err != nil {
		die(nil)
		w.e.log.Warn("could not begin a task", "task", p.Task, "error", err)
		_ = p.Return(returnAfter) // its lease ends by itself
		return
	}
	if h == nil {
		return
	}
	defer h.release()
	if w.stopping.Load() {
		h.handBack()
		return
	}
	go h.heedAgain()
	result, err := h.run(w.handle)
	h.conclude(result, err)
}

// drain waits for what is under way, and hands back what takes too long.
func (w *crew) drain(patience time.Duration) {
	done := make(chan struct{})
	go func() {
		w.group.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-time.After(patience):
	}
	w.stopping.Store(true) // what is claimed from here on is handed back by its taker
	var handing sync.WaitGroup
	for _, h := range w.e.held(func(h *hold) bool { return h.crew == w }) {
		handing.Go(h.handBack)
	}
	handing.Wait()
	select {
	case <-done:
	case <-time.After(leaveFor):
		w.e.log.Warn("a handler goes on though its task was handed back")
	}
}

// claim makes the task of a pointer this process's own, by an entry in its record that fences all
// earlier workers. It returns nil if there is nothing to do.
func (w *crew) claim(ctx context.Context, p *streams.Pointer) (*hold, error) {
	e := w.e
	if !p.Task.Valid() {
		return nil, p.Drop(ctx)
	}
	end, err := e.ended(ctx, p.Task)
	if err != nil {
		return nil, err // also of an end that is damaged, which says nothing of the task
	}
	t, err := e.spec(ctx, p.Task)
	if end != nil || e.pointless(p, t, err) {
		return nil, p.Drop(ctx)
	}
	if err != nil {
		return nil, err
	}
	wish, err := e.canceled(ctx, t)
	if err != nil {
		return nil, err
	}
	for {
		h, err := w.seize(ctx, p, t, wish)
		if !errors.Is(err, dispatch.ErrReleased) {
			return h, err
		}
		// Its earlier worker wrote once more; so this is not the last entry either.
	}
}

// pointless says that a pointer leads to no work for its taker; err is what kept the
// specification of its task from being read.
func (e *Engine) pointless(p *streams.Pointer, t dispatch.Task, err error) bool {
	switch {
	case err == nil:
		// A worker serves its own queue only, whatever a pointer says. The steward queues a
		// misplaced task where it belongs.
		if p.Subject == workSubject(t) {
			return false
		}
		e.log.Warn("dropped a pointer that is not where its task belongs", "pointer", p.Subject, "task", t.ID, "queue", t.Queue)
		return true
	case errors.Is(err, marchwarden.CodeNotFound): // so old that it is not kept; any other the steward queues again
		return true
	case errors.Is(err, marchwarden.CodeCorrupt): // no worker can do that, now or later
		e.log.Warn("dropped a pointer to what is no task", "pointer", p.Subject, "error", err)
		return true
	}
	return false
}

// seize reads the record and writes the claim after its last entry.
func (w *crew) seize(ctx context.Context, p *streams.Pointer, t dispatch.Task, canceled *wish) (*hold, error) {
	e := w.e
	r, err := e.read(ctx, t)
	if err != nil {
		return nil, err
	}
	var end dispatch.End
	switch {
	case r.end != nil: // which settle keeps
		end = *r.end
	case r.other.Valid():
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "task %s is not done with record %s", r.other, t.Record)
	case p.Over():
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "the lease of task %s has ended", t.ID)
	case canceled != nil:
		end = dispatch.CanceledEnd(canceled.Reason)
	case r.deaths >= dispatch.MaxAttempts:
		end = dispatch.GivenUp(r.deaths)
	}
	if r.end != nil || end.Status != "" {
		end.Worker = e.cfg.Name
		if err := e.settle(ctx, t, end, r.last); err != nil {
			return nil, err
		}
		return nil, p.Drop(ctx)
	}
	h := &hold{e: e, crew: w, task: t, pointer: p, record: r,
		head: head{task: t.ID, worker: e.cfg.Name, attempt: r.attempt + 1, deaths: r.deaths}}
	claim := h.head
	claim.kind = kindClaim
	if claim.blob, err = e.before(ctx, t, r); err != nil {
		return nil, err
	}
	if r.last, err = e.write(ctx, t, claim, nil, r.last, rand.Text()); err != nil {
		return nil, err
	}
	return h, nil
}

// before names what a task resumes that is not in its own part of the log: the sealed record of an
// earlier task. It is added to the lines of r.
func (e *Engine) before(ctx context.Context, t dispatch.Task, r *record) (string, error) {
	if t.ID == t.Record || r.last != 0 {
		return "", nil
	}
	earlier, err := e.ended(ctx, t.Record)
	if err != nil || earlier == nil || !earlier.End.Trace.Valid() {
		return "", err
	}
	content, err := e.blobs.Get(ctx, earlier.End.Trace)
	if err != nil {
		return "", fmt.Errorf("read the record that task %s resumes: %w", t.ID, err)
	}
	r.lines.Write(content)
	return earlier.End.Trace.String(), nil
}

// keep notes a hold, so that it hears of a wish to cancel.
func (e *Engine) keep(h *hold) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return marchwarden.Errorf(marchwarden.CodeUnavailable, "the engine is closed")
	}
	e.holds[h.task.ID] = h
	return nil
}

// heedStops cancels, on request, the tasks under way here.
func (e *Engine) heedStops(ctx context.Context) (stop func(), err error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	sub, err := e.conn.NATS().Subscribe(streams.AnyStop, func(m *nats.Msg) {
		id, _ := marchwarden.ParseTraceID(m.Subject[len("mw.stop."):])
		for _, h := range e.held(func(h *hold) bool { return h.task.ID == id || h.task.Investigation == id }) {
			h.heed(own)
		}
	})
	if err != nil {
		cancel()
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "listen to what is canceled")
	}
	return func() {
		cancel()
		_ = sub.Unsubscribe() // fails if the connection is closed, which ends it too
	}, nil
}

// held are the tasks under way here of which something holds.
func (e *Engine) held(holds func(*hold) bool) []*hold {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Values(e.holds)), func(h *hold) bool { return !holds(h) })
}
