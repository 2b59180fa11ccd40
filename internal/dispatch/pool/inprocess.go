package pool

import (
	"context"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// InProcess is a session with a researcher in this program. A panic on the
// goroutine of a call is caught and becomes an error with CodeInternal; one on a
// goroutine that the researcher started cannot be. When the context of a call
// ends, the researcher has a second to hand over what it has; after that the call
// is an error with CodeCanceled, and the researcher runs on unheard. Close ends the
// contexts of all calls. evidence may be nil: there is none then
// (CodeUnsupported).
func InProcess(r marchwarden.Researcher, evidence func(ctx context.Context, hash string) ([]byte, error)) Session {
	over, end := context.WithCancel(context.Background())
	return &local{r: r, evidence: evidence, over: over, end: end}
}

// local is the session of InProcess.
type local struct {
	r        marchwarden.Researcher
	evidence func(context.Context, string) ([]byte, error)
	over     context.Context
	end      context.CancelFunc
}

func (s *local) Done() <-chan struct{} { return s.over.Done() }

func (s *local) Close() error {
	s.end()
	return nil
}

func (s *local) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	t := tap{sink: sink}
	defer t.shut()
	return inProcess(ctx, s, func(ctx context.Context) (*marchwarden.Result, error) {
		return s.r.Research(ctx, req, t.events())
	})
}

func (s *local) Evidence(ctx context.Context, hash string) ([]byte, error) {
	if s.evidence == nil {
		return nil, marchwarden.Errorf(marchwarden.CodeUnsupported, "it hands over no evidence")
	}
	return inProcess(ctx, s, func(ctx context.Context) ([]byte, error) { return s.evidence(ctx, hash) })
}

// inProcess makes a call that ends with the session.
func inProcess[T any](ctx context.Context, s *local, fn func(context.Context) (T, error)) (none T, err error) {
	if s.over.Err() != nil {
		return none, marchwarden.Errorf(marchwarden.CodeUnavailable, "its session is closed")
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.over, cancel)()
	o := await(within, nil, localGrace, func() (T, error) { return fn(within) })
	switch o.fate {
	case panicked:
		return none, marchwarden.Wrap(o.err, marchwarden.CodeInternal, "it failed")
	case returned:
		return o.value, o.err
	}
	if ctx.Err() == nil {
		return none, marchwarden.Errorf(marchwarden.CodeUnavailable, "its session was closed")
	}
	return none, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "it went on for %s after its context had ended", localGrace)
}
