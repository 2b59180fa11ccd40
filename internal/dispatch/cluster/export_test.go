package cluster

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
)

// What the tests look at and change from outside.
var (
	WorkSubject = workSubject
	LogSubject  = logSubject
)

const StewardKey = stewardKey

func (e *Engine) Conn() *streams.Conn            { return e.conn }
func (e *Engine) JetStream() jetstream.JetStream { return e.conn.JetStream() }
func (e *Engine) Facts() Facts                   { return e.facts }
func (e *Engine) UseBlobs(s blob.Store)          { e.blobs = s }
func (s *Steward) Remember(n int)                { s.remember = n }

func (e *Engine) Requeue(ctx context.Context, t dispatch.Task) error { return e.requeue(ctx, t) }
func (e *Engine) SettleCanceled(ctx context.Context, t dispatch.Task) error {
	last, err := e.tail(ctx, t)
	if err != nil {
		return err
	}
	return e.settle(ctx, t, dispatch.CanceledEnd(""), last.seq)
}
func (e *Engine) Ended(ctx context.Context, id marchwarden.TraceID) (*dispatch.End, error) {
	_, end, err := e.known(ctx, id)
	return end, err
}
