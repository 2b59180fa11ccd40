package main

import (
	"fmt"
	"io"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// watch follows a research for the people who wait: progress, and warnings kept
// until the progress is over. Its event method is
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
}

func newWatch(a *app, c *settings.Settings, o askOptions) *watch {
	w := &watch{a: a, verbose: o.verbose, planOnly: o.desk.PlanOnly}
	if o.jsonEvents {
		w.tell = func(e marchwarden.Event) { a.tell(e) }
	}
	if !o.quiet && !o.jsonEvents {
		cfg := a.liveOn(c, a.Stderr)
		cfg.Live = cfg.Live && !o.plain
		w.progress = term.NewProgress(a.Stderr, cfg)
	}
	log := a.logger(c)
	w.debug = func(e marchwarden.Event) {
		log.Debug("progress", "stage", e.Stage, "iteration", e.Iteration, "message", e.Message, "trace_id", e.TraceID.String())
	}
	return w
}

// liveOn is how progress is shown on a stream: live on a terminal that knows escape
// codes, as long as nothing is logged beside it.
func (a *app) liveOn(c *settings.Settings, w io.Writer) term.ProgressConfig {
	st, file := a.style(w), fileOf(w)
	name, _ := a.Env("TERM")
	return term.ProgressConfig{Style: st, Live: st.Width > 0 && name != "dumb" && name != "" && !c.On(settings.Debug), Size: term.SizeOf(file), Now: a.Now}
}

func (w *watch) event(e marchwarden.Event) {
	if e.Stage == "" { // of an external server, which tells in words alone and has only begun
		e.Stage = marchwarden.StagePlan
	}
	w.debug(e)
	if w.planOnly && e.Stage != marchwarden.StagePlan {
		return
	}
	if w.tell != nil {
		w.tell(e)
	}
	if w.progress != nil {
		w.progress.Event(e)
	}
}

// ask has the person answer what a model asks, in place of the progress. Who ends the typing stops the run.
func (w *watch) ask(model string, questions []string, typed func() (string, error), stop func()) []string {
	if w.progress != nil {
		defer w.progress.Aside()()
	}
	w.a.note("%s asks, before it plans; an empty line passes over a question", model)
	answers := make([]string, len(questions))
	for i, q := range questions {
		fmt.Fprintf(w.a.Stderr, "%d. %s\n", i+1, term.CleanLine(q))
		var err error
		if answers[i], err = typed(); err != nil {
			stop()
			break
		}
	}
	return answers
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
