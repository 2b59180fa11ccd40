package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
)

const (
	// grace is how long a call may go on when its context is over, to hand over
	// what it has: longer than a session to another process waits (two and a half
	// seconds), which waits longer than a server of ours takes (two). A session in
	// this process gives up earlier.
	grace      = 3 * time.Second
	localGrace = time.Second
	// lag is how far a session's end and the failure of its calls may lie apart.
	lag = 100 * time.Millisecond
)

// What await says of a function that did not return: what it depends on has ended, or its context has.
var errCutOff, errOverdue = errors.New("cut off"), errors.New("overdue")

// guarded calls fn, and makes an error of its panic, whose stack goes to the log and nowhere else.
func guarded[T any](log *slog.Logger, what string, fn func() (T, error)) (value T, err error) {
	defer panics.Caught(&err, what)
	panicked := true
	defer func() {
		if panicked {
			log.Error(what+" panicked", "stack", string(debug.Stack()))
		}
	}()
	value, err = fn()
	panicked = false
	return value, err
}

// await calls fn and waits for it, but not for ever: past the end of ctx it has
// patience for so long, and past the closing of over, which may be nil, for lag. what it is
// names it where it panics.
// What comes later is lost, and what fn holds is its own to free.
func await[T any](ctx context.Context, log *slog.Logger, over <-chan struct{}, patience time.Duration, what string, fn func() (T, error)) (none T, err error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := guarded(log, what, fn)
		done <- outcome{value, err}
	}()
	late, wait := errCutOff, lag
	select {
	case o := <-done:
		return o.value, o.err
	case <-over:
	case <-ctx.Done():
		late, wait = errOverdue, patience
	}
	select {
	case o := <-done:
		return o.value, o.err
	case <-time.After(wait):
		return none, late
	}
}

// call asks a member's session one thing, and reads from the outcome how the
// member is.
func call[T any](ctx context.Context, m *member, ask func(context.Context, Session) (T, error)) (none T, err error) {
	if ctx.Err() != nil {
		return none, dispatch.NotAsked(m.ended(ctx))
	}
	within := ctx
	if m.Timeout > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, m.Timeout)
		defer cancel()
	}
	l, err := m.acquire(within)
	if err != nil {
		if within.Err() != nil && errors.Is(err, within.Err()) {
			err = m.ended(ctx)
		}
		return none, dispatch.NotAsked(err)
	}
	value, err := await(within, m.log, l.over, l.grace, "the session with researcher "+m.Name, func() (T, error) { return ask(within, l.session) })
	if err != nil {
		return none, m.judged(ctx, within, l, m.discreet(err))
	}
	return value, nil
}

// judged makes of the error of a session what the caller gets.
func (m *member) judged(ctx, within context.Context, l *line, err error) error {
	switch {
	case errors.Is(err, errCutOff):
		return m.gone(l, errEnded)
	case errors.Is(err, errOverdue), within.Err() != nil && (doubtful(err) || errors.Is(err, marchwarden.CodeTimeout)):
		return m.ended(ctx)
	case doubtful(err) && closesWithin(l.over, lag):
		return m.gone(l, err)
	case marchwarden.CodeOf(err) == marchwarden.CodeCanceled:
		// Its own doing: CodeCanceled would be taken for the caller's.
		return marchwarden.Errorf(marchwarden.CodeUnavailable, "researcher %s broke off: %v", m.Name, err)
	}
	return fmt.Errorf("researcher %s: %w", m.Name, err)
}

// discreet is an error as callers may know it: the words of an external researcher go
// into the log.
func (m *member) discreet(err error) error {
	var s *dispatch.Said
	if m.Trust == dispatch.Own || !errors.As(err, &s) {
		return err
	}
	m.log.Warn("it failed", "said", s.Error())
	return s.Plain
}

// doubtful reports whether an error may come from the end of a session. The other
// codes are a researcher's own words.
func doubtful(err error) bool {
	switch marchwarden.CodeOf(err) {
	case marchwarden.CodeUnavailable, marchwarden.CodeTruncated, marchwarden.CodeCanceled, marchwarden.CodeInternal:
		return true
	}
	return false
}

func closesWithin(over <-chan struct{}, d time.Duration) bool {
	select {
	case <-over:
		return true
	case <-time.After(d):
		return false
	}
}

// gone is the error of a call whose session ended under it. The cause is told and
// not wrapped: the codes in it are about something else.
func (m *member) gone(l *line, cause error) error {
	if !m.lost(l, cause) {
		return m.closedError()
	}
	return marchwarden.Errorf(marchwarden.CodeUnavailable, "researcher %s died while it was asked: %v", m.Name, cause)
}

// ended is the error of a call that was not waited for any longer: the caller's
// context is over, or else the seat's time.
func (m *member) ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeCanceled, "researcher %s was not waited for any longer", m.Name)
	}
	return marchwarden.Errorf(marchwarden.CodeTimeout, "researcher %s did not answer within %s", m.Name, m.Timeout)
}

// checked holds a researcher to exactly one of result and error, and to what can
// be said of a result's numbers without knowing its sources. The result is a
// normalised copy.
func checked(res *marchwarden.Result, err error) (*marchwarden.Result, error) {
	malformed := func(what string) error {
		return marchwarden.Errorf(marchwarden.CodeMalformed, "it gave %s", what)
	}
	switch {
	case res == nil && err == nil:
		return nil, malformed("neither a result nor an error")
	case res != nil && err != nil:
		return nil, malformed(fmt.Sprintf("both a result and an error: %v", err))
	case err != nil:
		return nil, err
	}
	if !unit(res.Confidence) || !unit(res.ConfidenceFactors.QuerySpecificityMatch) ||
		slices.ContainsFunc(res.Citations, func(c marchwarden.Citation) bool { return !unit(c.Confidence) }) {
		return nil, malformed("a confidence that is not from 0 to 1")
	}
	normal := *res
	normal.Claims = slices.Clone(res.Claims)
	normal.Normalize()
	return &normal, nil
}

func unit(u marchwarden.Unit) bool { return u >= 0 && u <= 1 }

// silence is how long a member says nothing before its caller hears of that, again and
// again.
const silence = 5 * time.Second

// tap is a sink that can be shut: one call's events, one at a time, and none after the call. It tells
// for how long the member has said nothing, and how much time it has left.
type tap struct {
	m     *member
	end   time.Time // of the call; zero for no limit
	quiet *time.Timer

	mu    sync.Mutex // guards what follows, and is held while sink is called: sinks do not block
	sink  marchwarden.Sink
	stage marchwarden.Stage // of the last event
	heard time.Time         // when that came, or the call began
}

// tap opens the tap of a call.
func (m *member) tap(ctx context.Context, sink marchwarden.Sink) *tap {
	t := &tap{m: m, sink: sink, stage: marchwarden.StagePlan, heard: m.now()}
	t.end, _ = ctx.Deadline()
	if own := t.heard.Add(m.Timeout); m.Timeout > 0 && (t.end.IsZero() || own.Before(t.end)) {
		t.end = own
	}
	t.mu.Lock() // until the timer is there
	defer t.mu.Unlock()
	t.quiet = time.AfterFunc(silence, t.reportSilence)
	return t
}

// hear passes an event on.
func (t *tap) hear(e marchwarden.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sink == nil {
		return
	}
	t.stage, t.heard = e.Stage, t.m.now()
	t.quiet.Reset(silence)
	t.sink(e)
}

func (t *tap) reportSilence() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sink == nil {
		return
	}
	now, left := t.m.now(), "no time limit"
	if !t.end.IsZero() {
		left = max(0, t.end.Sub(now)).Round(time.Second).String() + " left"
	}
	t.quiet.Reset(silence)
	t.sink(marchwarden.Event{Stage: t.stage, Message: fmt.Sprintf("has said nothing for %s; %s", now.Sub(t.heard).Round(time.Second), left)})
}

func (t *tap) shut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quiet.Stop()
	t.sink = nil
}

// InProcess is a session with a researcher in this program, whose calls end with it. close frees what
// the researcher works with; nil is nothing. Without evidence that is CodeUnsupported.
func InProcess(r marchwarden.Researcher, evidence func(ctx context.Context, hash string) ([]byte, error), close func() error) Session {
	over, end := context.WithCancel(context.Background())
	return &local{Researcher: r, evidence: evidence, close: close, over: over, end: end}
}

// local is the session of InProcess.
type local struct {
	marchwarden.Researcher
	evidence func(context.Context, string) ([]byte, error)
	close    func() error
	over     context.Context
	end      context.CancelFunc
}

func (s *local) Done() <-chan struct{} { return s.over.Done() }

func (s *local) Close() error {
	s.end()
	if s.close == nil {
		return nil
	}
	return s.close()
}

func (s *local) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.over, cancel)()
	return s.Researcher.Research(ctx, req, sink)
}

func (s *local) Evidence(ctx context.Context, hash string) ([]byte, error) {
	if s.evidence == nil {
		return nil, marchwarden.Errorf(marchwarden.CodeUnsupported, "it hands over no evidence")
	}
	return s.evidence(ctx, hash)
}
