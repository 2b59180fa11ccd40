package web

import (
	"context"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
)

// shown is what all clients of a run share: they take from it what there is when they can,
// so that showing a picture is the same work for one client as for a thousand.
type shown struct {
	id      marchwarden.TraceID
	clients int // guarded by the hub

	mu      sync.Mutex // guards what follows
	latest  view
	changed chan struct{} // closed when latest is replaced
}

// view is what can be seen of a run. Its bytes never change.
type view struct {
	id      string // of the picture, "" before the first
	picture []byte // as an event
	last    []byte // the event that ends the stream, nil while there may be pictures
}

func newRun(id marchwarden.TraceID) *shown {
	return &shown{id: id, changed: make(chan struct{})}
}

// see gives what there is to see, and what is closed when there is something else.
func (r *shown) see() (view, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest, r.changed
}

// show replaces the picture. The same one again is nothing new.
func (r *shown) show(picture []byte) {
	id := nameOf(picture)
	r.mu.Lock()
	defer r.mu.Unlock()
	if id == r.latest.id || r.latest.last != nil {
		return
	}
	r.latest.id, r.latest.picture = id, event(EventPicture, id, picture)
	r.tell()
}

// settle ends what there is to see, and reports whether it had not ended before.
func (r *shown) settle(last []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latest.last != nil {
		return false
	}
	r.latest.last = last
	r.tell()
	return true
}

func (r *shown) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *shown) settled() bool {
	now, _ := r.see()
	return now.last != nil
}

// watch looks at a run for as long as it has clients. The clients are told how it
// ended before the run is forgotten: one that comes between is told, too.
func (h *Hub) watch(r *shown) {
	defer h.forget(r)
	// In a defer, since a source may end the goroutine itself.
	err := error(marchwarden.Errorf(marchwarden.CodeInternal, "the source of a run ended its goroutine"))
	defer func() {
		if err != nil {
			h.fail(r, err)
		}
	}()
	err = h.follow(r)
}

// fail tells clients that a run cannot be watched, if they do not know yet.
func (h *Hub) fail(r *shown, err error) {
	if h.life.Err() != nil {
		return // it is the hub that ends, and the clients with it
	}
	if r.settle(oops(err)) {
		h.cfg.Log.Warn("a run cannot be watched", "run", r.id, "error", err)
	}
}

// follow shows what a source gives, until it is over, it fails, or no client is there.
func (h *Hub) follow(r *shown) error {
	ctx, stop := context.WithCancel(h.life)
	defer stop()
	var source Source
	err := h.bounded(stop, r, func() (err error) {
		source, err = h.cfg.Open(ctx, r.id)
		return err
	})
	if err != nil {
		return err
	}
	pause := time.NewTimer(h.cfg.Every)
	defer pause.Stop()
	for !r.settled() && !h.deserted(r) {
		var over bool
		err := h.bounded(stop, r, func() error {
			picture, changed, last, err := source.Next(ctx)
			if err == nil && changed {
				r.show(picture)
			}
			over = last
			return err
		})
		if err != nil {
			return err
		}
		if over {
			r.settle(event(EventOver, "", []byte("{}")))
			return nil
		}
		pause.Reset(h.cfg.Every)
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
	}
	return nil
}

// bounded calls a source, which may hang and may panic. When it takes too long, the
// clients are told at once and its context ends; the run stays known until it returns,
// so that a source that hangs whatever it is told is not opened again and again.
func (h *Hub) bounded(stop context.CancelFunc, r *shown, call func() error) (err error) {
	defer panics.Caught(&err, "the source of a run")
	late := time.AfterFunc(h.cfg.Look, func() {
		h.fail(r, marchwarden.Errorf(marchwarden.CodeTimeout, "looking at the run takes too long"))
		stop()
	})
	defer late.Stop()
	return call()
}
