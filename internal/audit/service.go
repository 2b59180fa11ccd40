package audit

import (
	"context"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// service answers one question at a time.
type service struct {
	turn  chan struct{} // holds one token while a question is under way
	tired breaker       // guarded by the token
}

func newService() *service { return &service{turn: make(chan struct{}, 1)} }

// do asks when its turn has come, or fails with the reason why it is not asked any
// more. CodeNotFound is an answer, every other error a failure of the service.
func (s *service) do(ctx context.Context, ask func() error) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "the check was stopped")
	}
	defer func() { <-s.turn }()
	if err := s.tired.open(); err != nil {
		return err
	}
	err := ask()
	if ctx.Err() == nil {
		s.tired.note(err)
	}
	return err
}

// breaker spares a service that fails, and the user the wait for it.
type breaker struct {
	failures int // in a row
	last     error
}

// mostFailures is how often in a row a service may fail before it is left alone.
const mostFailures = 2

// open is why the service is left alone; nil if it is not.
func (b *breaker) open() error {
	if b.failures < mostFailures {
		return nil
	}
	return marchwarden.Errorf(marchwarden.CodeOf(b.last), "left alone after %d failures: %s", b.failures, line(b.last))
}

// note counts the outcome of a question.
func (b *breaker) note(err error) {
	if err == nil || marchwarden.CodeOf(err) == marchwarden.CodeNotFound {
		b.failures, b.last = 0, nil
		return
	}
	b.failures, b.last = b.failures+1, err
}
