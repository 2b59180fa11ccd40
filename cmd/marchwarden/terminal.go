package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// listener is who reads stderr.
type listener int

const (
	people       listener = iota
	program               // as --json-events asks for: one JSON object a line
	investigator          // this program as a parent, which keeps the last line of a child that ended
)

// remark is what a program reads beside events. Fields are only ever added.
type remark struct {
	Warning string           `json:"warning,omitempty"`
	Note    string           `json:"note,omitempty"`
	Error   string           `json:"error,omitempty"`
	Code    marchwarden.Code `json:"code,omitempty"`
	Hint    string           `json:"hint,omitempty"`
}

// tell writes one line of JSON to stderr. It is lost if it cannot be written.
func (a *app) tell(v any) {
	w := a.Stderr
	if a.errStyle().Width > 0 {
		w = term.JSON(w)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
}

// complain says why a command failed.
func (a *app) complain(err error) {
	hint := marchwarden.HintOf(err)
	switch a.reader {
	case program:
		a.tell(remark{Error: term.CleanLine(err.Error()), Code: marchwarden.CodeOf(err), Hint: term.CleanLine(hint)})
	case investigator:
		const lastWords = 200 // characters of the last line of a child, as many as its parent keeps
		line := term.CleanLine(err.Error())
		if whole := line + "; " + term.CleanLine(hint); hint != "" && utf8.RuneCountInString(whole) <= lastWords {
			line = whole
		}
		fmt.Fprintln(a.Stderr, plaintext.Brief(line, lastWords))
	default:
		a.errStyle().Error(a.Stderr, err)
	}
}

// warn tells about something that did not stop the work.
func (a *app) warn(message string) {
	if a.reader == program {
		a.tell(remark{Warning: term.CleanLine(message)})
		return
	}
	a.errStyle().Warn(a.Stderr, message)
}

// note writes a line for people to stderr.
func (a *app) note(format string, args ...any) {
	line := term.CleanLine(fmt.Sprintf(format, args...))
	if a.reader == program {
		a.tell(remark{Note: line})
		return
	}
	a.errStyle().Note(a.Stderr, term.Run{Text: line})
}

// inZone shows a time in the zone of the user's clock.
func (a *app) inZone(t time.Time) string {
	return t.In(a.Now().Location()).Format("2006-01-02 15:04")
}

// readStdin is ReadLimited for stdin, which may be a person who never ends it:
// it gives up when ctx ends.
func (a *app) readStdin(ctx context.Context, most int64, what string) ([]byte, error) {
	var data []byte
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		data, err = settings.ReadLimited(a.stdin, most, what)
	}()
	select {
	case <-done:
		return data, err
	case <-ctx.Done():
		return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "read %s", what)
	}
}

// logger writes structured logs to stderr. It is silent below warnings unless
// MARCHWARDEN_DEBUG is on. No setting is ever given to it.
func (a *app) logger(c *settings.Settings) *slog.Logger { return a.logFrom(c, slog.LevelWarn) }

// serverLog is logger for programs that run long, where people want to see that something
// happens: connections come and go, and tasks are taken up again.
func (a *app) serverLog(c *settings.Settings) *slog.Logger { return a.logFrom(c, slog.LevelInfo) }

func (a *app) logFrom(c *settings.Settings, level slog.Level) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if c.On(settings.Debug) {
		opts.Level = slog.LevelDebug
	}
	if c.Text(settings.LogFormat) == "json" || a.reader == program {
		return slog.New(slog.NewJSONHandler(a.Stderr, opts))
	}
	return slog.New(slog.NewTextHandler(a.Stderr, opts))
}

// printJSON writes v indented, with text as it is.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return marchwarden.Wrap(enc.Encode(v), marchwarden.CodeUnavailable, "print JSON")
}

// print writes to stdout for people.
func (a *app) print(format string, args ...any) error {
	_, err := fmt.Fprintf(a.stdout, format, args...)
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the outcome")
}

// show prints rows: as JSON where that is wanted, else as a table, or as a note if there are none.
func (a *app) show(v any, head []string, rows [][]string, none string) error {
	switch {
	case a.json:
		return printJSON(a.forPrograms(), v)
	case len(rows) == 0:
		a.note("%s", none)
		return nil
	}
	return a.outStyle().Table(a.stdout, head, rows)
}

// watch follows a research for the people who wait: progress, and warnings kept
// until the progress is over. Its event method is
// called one event at a time, as a marchwarden.Sink.
type watch struct {
	a        *app
	progress *term.Progress // nil when quiet
	verbose  bool
	log      *slog.Logger
	events   bool // are wanted as JSON
	planOnly bool // only planning is of interest
	closed   bool

	mu       sync.Mutex // guards warnings, which come from any goroutine
	warnings []string
}

func newWatch(a *app, c *settings.Settings, o askOptions) *watch {
	w := &watch{a: a, log: a.logger(c), verbose: o.verbose, events: o.jsonEvents, planOnly: o.desk.PlanOnly}
	if !o.quiet && !o.jsonEvents {
		cfg := a.liveOn(c, a.Stderr)
		cfg.Live = cfg.Live && !o.plain
		w.progress = term.NewProgress(a.Stderr, cfg)
	}
	return w
}

// liveOn is how progress is shown on a stream: live on a terminal that knows escape
// codes, as long as nothing is logged beside it.
func (a *app) liveOn(c *settings.Settings, w io.Writer) term.ProgressConfig {
	st := a.style(w)
	name, _ := a.Env("TERM")
	return term.ProgressConfig{Style: st, Live: st.Width > 0 && name != "dumb" && name != "" && !c.On(settings.Debug), Now: a.Now}
}

func (w *watch) event(e marchwarden.Event) {
	if e.Stage == "" { // of an external server, which tells in words alone and has only begun
		e.Stage = marchwarden.StagePlan
	}
	w.log.Debug("progress", "stage", e.Stage, "iteration", e.Iteration, "message", e.Message, "trace_id", e.TraceID.String())
	if w.planOnly && e.Stage != marchwarden.StagePlan {
		return
	}
	if w.events {
		w.a.tell(e)
	}
	if w.progress != nil {
		w.progress.Event(e)
	}
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
