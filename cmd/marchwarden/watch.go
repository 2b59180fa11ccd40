package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// watch follows a research for the people who wait: progress, warnings kept
// until the progress is over, and how long each stage took. Its event method is
// called one event at a time, as a marchwarden.Sink.
type watch struct {
	a        *app
	progress *term.Progress // nil when quiet
	verbose  bool
	debug    func(marchwarden.Event)
	tell     func(marchwarden.Event) // nil unless events are wanted as JSON
	planOnly bool                    // only planning is of interest
	closed   bool

	mu       sync.Mutex // guards warnings, which come from any goroutine
	warnings []string

	began   time.Time
	stage   marchwarden.Stage
	timings []term.Timing
}

func (a *app) newWatch(c *config, o askOptions) *watch {
	w := &watch{a: a, verbose: o.verbose, planOnly: o.desk.planOnly, began: a.now()}
	st := a.errStyle()
	if o.jsonEvents {
		w.tell = func(e marchwarden.Event) { a.tell(e) }
	}
	if !o.quiet && !o.jsonEvents {
		name, _ := a.env("TERM")
		live := st.Width > 0 && name != "dumb" && name != "" && !c.on(setDebug)
		w.progress = term.NewProgress(a.stderr, st, live, a.now)
	}
	log := a.logger(c)
	w.debug = func(e marchwarden.Event) {
		log.Debug("progress", "stage", e.Stage, "iteration", e.Iteration, "message", e.Message, "trace_id", e.TraceID.String())
	}
	return w
}

func (w *watch) event(e marchwarden.Event) {
	if e.Stage == "" { // of somebody else's server, which tells in words alone and has only begun
		e.Stage = marchwarden.StagePlan
	}
	w.debug(e)
	if w.planOnly && e.Stage != marchwarden.StagePlan {
		return
	}
	if w.tell != nil {
		w.tell(e)
	}
	w.enter(e.Stage)
	if w.progress != nil {
		w.progress.Event(e)
	}
}

// enter charges the time since the last event to the stage that it began.
func (w *watch) enter(stage marchwarden.Stage) {
	now := w.a.now()
	took := now.Sub(w.began)
	w.began = now
	name := string(w.stage)
	if name == "" {
		name = "open"
	}
	i := slices.IndexFunc(w.timings, func(t term.Timing) bool { return t.Stage == name })
	if i < 0 {
		i = len(w.timings)
		w.timings = append(w.timings, term.Timing{Stage: name})
	}
	w.timings[i].Duration += took
	w.stage = stage
}

func (w *watch) warn(message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings = append(w.warnings, message)
}

// close ends the progress and shows the warnings. Closing twice is harmless.
func (w *watch) close() {
	if w.closed {
		return
	}
	w.closed = true
	w.enter("")
	if w.progress != nil {
		w.progress.Close()
	}
	const most = 5
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, message := range w.warnings {
		if i == most && !w.verbose {
			w.a.warn(fmt.Sprintf("and %d more; --verbose shows all", len(w.warnings)-most))
			return
		}
		w.a.warn(message)
	}
}
