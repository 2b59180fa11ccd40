package pool

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool/register"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
)

// Work takes tasks from a queue, as dispatch.Engine promises.
func (e *Engine) Work(ctx context.Context, job dispatch.Job, h dispatch.Handler) error {
	if err := e.usable(context.Background()); err != nil {
		return err
	}
	if err := job.Check(); err != nil {
		return err
	}
	s := &shift{e: e, handler: h, ended: make(chan struct{}, job.Slots), running: map[*hold]bool{}}
	pace := register.Pace{Most: poll}
	defer pace.Stop()
	again := time.NewTicker(poll) // of its own: the pace begins anew with every task, and a backlog would put it off
	defer again.Stop()
	busy, some := 0, false
	for ctx.Err() == nil && e.over.Err() == nil {
		news := e.queues.News()
		some = false
		for busy < job.Slots {
			p := e.queues.Next(job.Queue)
			if p == nil {
				break
			}
			busy, some = busy+1, true
			go s.take(p)
		}
		select {
		case <-ctx.Done():
		case <-e.over.Done():
		case <-s.ended:
			busy--
		case <-news:
		case <-pace.Next(some):
			if err := e.queues.Refresh(); err != nil {
				e.cfg.Log.Warn("the queue cannot be read", "error", err)
			}
		case <-again.C:
			e.queues.Again()
		}
	}
	s.drain(busy, job.Drain)
	return nil
}

// shift is what one call of Work is at.
type shift struct {
	e       *Engine
	handler dispatch.Handler
	ended   chan struct{} // one for each that ended

	mu      sync.Mutex // guards what follows
	running map[*hold]bool
	closed  bool // no more is begun
}

// drain waits for those under way, and hands back what is left.
func (s *shift) drain(busy int, patience time.Duration) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if s.e.over.Err() != nil {
		patience = 0
	}
	busy = s.wait(busy, patience)
	s.mu.Lock()
	left := slices.Collect(maps.Keys(s.running))
	s.mu.Unlock()
	for _, h := range left {
		s.e.giveUp(h)
	}
	s.wait(busy, parting)
}

// wait waits until all of so many have ended, or for so long.
func (s *shift) wait(busy int, patience time.Duration) int {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for busy > 0 {
		select {
		case <-s.ended:
			busy--
		case <-limit.C:
			return busy
		}
	}
	return 0
}

// take takes a task up and works on it.
func (s *shift) take(p *register.Pointer) {
	defer func() { s.ended <- struct{}{} }()
	h, err := s.e.claim(p)
	if err != nil {
		s.e.cfg.Log.Warn("a task could not be taken up", "task", p.Task.String(), "error", err)
		time.Sleep(poll) // or it would be tried again at once
	}
	if h == nil {
		return
	}
	s.mu.Lock()
	late := s.closed
	if !late {
		s.running[h] = true
	}
	s.mu.Unlock()
	if late {
		s.e.giveUp(h)
		return
	}
	s.work(h)
	s.mu.Lock()
	delete(s.running, h)
	s.mu.Unlock()
}

// work has the handler work on a task, and writes its end.
func (s *shift) work(h *hold) {
	defer h.cancel(nil)
	stop := h.follow()
	res, err := s.answer(h)
	stop()
	if h.over.Load() {
		return
	}
	if err = h.finish(res, err); err == nil {
		h.free(true)
		return
	}
	if !errors.Is(err, dispatch.ErrReleased) {
		s.e.cfg.Log.Warn("the end of a task could not be written: it is taken up again", "task", h.task.ID.String(), "error", err)
		time.Sleep(poll)
	}
	h.release()
}

// answer is what the handler gives; a panic is an error.
func (s *shift) answer(h *hold) (res *marchwarden.Result, err error) {
	defer panics.Caught(&err, "a task")
	live := h.e.live(h.task.Investigation)
	t := tap{sink: func(ev marchwarden.Event) {
		live.Tell(dispatch.Event{Task: h.task.ID, Kind: dispatch.Progress, Progress: ev})
		h.folio.Nudge()
	}}
	defer t.shut()
	return s.handler(h.ctx, h.task, h, t.events())
}
