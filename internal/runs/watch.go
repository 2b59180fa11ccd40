package runs

import (
	"slices"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// watchBacklog is how many events may wait for a slow watcher before further ones are
// dropped.
const watchBacklog = 64

// watcher hands events to one sink, so that a sink that blocks holds up nobody else.
type watcher struct {
	queue chan marchwarden.Event // closed under the run's mu
	done  chan struct{}
	quit  sync.Once
}

// Watch hands the events of the run, from now on and as the researcher tells them, to
// sink, one at a time. A sink that is slow loses events; it never holds up the research.
// After stop has returned sink is not called again; stop first hands over what is
// queued, and must not be called by the sink. It may be called more than once, and need
// not be if the run ends and sink returns.
func (r *Run) Watch(sink func(marchwarden.Event)) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return func() {}
	}
	w := &watcher{queue: make(chan marchwarden.Event, watchBacklog), done: make(chan struct{})}
	r.watchers = append(r.watchers, w)
	go func() {
		defer close(w.done)
		for e := range w.queue {
			sink(e)
		}
	}()
	return func() {
		r.mu.Lock()
		w.close()
		r.watchers = slices.DeleteFunc(r.watchers, func(other *watcher) bool { return other == w })
		r.mu.Unlock()
		<-w.done
	}
}

func (w *watcher) close() { w.quit.Do(func() { close(w.queue) }) }

// Visit is one caller of Begin, who waits for its run or leaves it. It is safe for
// concurrent use.
type Visit struct {
	*Run
	// Attached says that the run was going on when its caller came.
	Attached bool

	sink marchwarden.Sink
}

// visit adds a caller. A run that is being stopped has none to add: that is nil.
func (r *Run) visit(sink marchwarden.Sink, attached bool) *Visit {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancelled || r.shut {
		return nil
	}
	v := &Visit{Run: r, Attached: attached, sink: sink}
	if !r.ended {
		r.visits = append(r.visits, v)
	}
	return v
}

// End ends the visit, and nothing else: the sink of its caller hears no more, but for
// an event that is being told already. It may be called more than once.
func (v *Visit) End() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gone()
}

// gone takes the visit off the run's, and reports whether it was there; mu is held.
func (v *Visit) gone() bool {
	before := len(v.visits)
	v.visits = slices.DeleteFunc(v.visits, func(other *Visit) bool { return other == v })
	return len(v.visits) < before
}

// Leave ends the visit of a caller who goes, and stops the run if it is not kept, goes
// on in this process, and nobody else waits for it. It reports whether the run is being stopped or has ended, so
// that Done is near; otherwise it goes on.
func (v *Visit) Leave() (stopped bool) {
	v.cancelIf(func() bool { return v.gone() && len(v.visits) == 0 && v.ours && !v.rec.Kept })
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.ended || v.cancelled
}

// note is the sink of the research.
func (r *Run) note(e marchwarden.Event) {
	for _, sink := range r.heard(e) {
		sink(e)
	}
}

// heard takes an event in, and gives the sinks that are to hear it.
func (r *Run) heard(e marchwarden.Event) []marchwarden.Sink {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	text := message(e.Message)
	if text == "" {
		text = message(string(e.Stage))
	}
	if text != "" && !r.cancelled {
		r.rec.Message, r.last = text, &e
	}
	r.touch()
	for _, w := range r.watchers {
		select {
		case w.queue <- e:
		default:
		}
	}
	var sinks []marchwarden.Sink
	for _, v := range r.visits {
		if v.sink != nil {
			sinks = append(sinks, v.sink)
		}
	}
	return sinks
}
