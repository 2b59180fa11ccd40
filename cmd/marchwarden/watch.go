package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// watch follows a research for the people who wait: progress, warnings kept
// until the progress is over, and how long each stage took. Its event method is
// called one event at a time, as a marchwarden.Sink.
type watch struct {
	a        *app
	progress *term.Progress                          // nil when quiet
	read     func(marchwarden.TraceID) (stop func()) // has the progress follow the record; nil where it has none
	stop     func()                                  // ends that; nil until it began
	verbose  bool
	debug    func(marchwarden.Event)
	tell     func(marchwarden.Event) // nil unless events are wanted as JSON
	planOnly bool                    // only planning is of interest
	closed   bool

	mu       sync.Mutex // guards warnings, which come from any goroutine
	warnings []string

	began   time.Time
	stage   marchwarden.Stage
	timings []report.Timing
}

func newWatch(a *app, c *settings.Settings, o askOptions) *watch {
	w := &watch{a: a, verbose: o.verbose, planOnly: o.desk.PlanOnly, began: a.Now()}
	if o.jsonEvents {
		w.tell = func(e marchwarden.Event) { a.tell(e) }
	}
	if !o.quiet && !o.jsonEvents {
		cfg := a.liveOn(c, a.Stderr)
		cfg.Live = cfg.Live && !o.plain
		w.progress = term.NewProgress(a.Stderr, cfg)
		if cfg.Live && !o.away && !w.planOnly {
			w.read = func(id marchwarden.TraceID) func() { return readAlong(a, c, id, w.progress) }
		}
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
	return term.ProgressConfig{Style: st, Live: st.Width > 0 && name != "dumb" && name != "" && !c.On(settings.Debug), Size: term.SizeOf(file), ASCII: term.ASCIIOnly(name, a.Env), Now: a.Now}
}

// followEvery is how often a record is looked at.
const followEvery = 250 * time.Millisecond

// readAlong shows what the record of a run of this process tells beyond its events, such
// as tokens, until stop is called. Where it cannot be read, events have to do.
func readAlong(a *app, c *settings.Settings, id marchwarden.TraceID, to *term.Progress) (stop func()) {
	rec, err := a.OpenKept(c)
	if err != nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run := run.Follow(rec.Traces, rec.Blobs, id)
		_ = poll(ctx, func() (bool, error) {
			board, changed, over, err := run.Read(ctx)
			if err == nil && ctx.Err() == nil && changed && !over { // one that is cut off says so elsewhere
				to.Board(board)
			}
			return false, err
		})
	}()
	return func() {
		cancel()
		<-done
		_ = rec.Close() // it was only read
	}
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
	w.enter(e.Stage)
	if w.progress == nil {
		return
	}
	w.progress.Event(e)
	if w.read != nil && w.stop == nil && e.Rihla == 0 && e.TraceID.Valid() {
		w.stop = w.read(e.TraceID)
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

// enter charges the time since the last event to the stage that it began.
func (w *watch) enter(stage marchwarden.Stage) {
	now := w.a.Now()
	took := now.Sub(w.began)
	w.began = now
	name := string(w.stage)
	if name == "" {
		name = "open"
	}
	i := slices.IndexFunc(w.timings, func(t report.Timing) bool { return t.Stage == name })
	if i < 0 {
		i = len(w.timings)
		w.timings = append(w.timings, report.Timing{Stage: name})
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
	if w.stop != nil {
		w.stop()
	}
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
