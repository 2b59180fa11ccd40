package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
)

// tenure is the leader's entry. The bucket forgets it when it is not renewed for a lease, and each
// renewal names the revision before: so no steward's clock counts, and of two that think they lead,
// one cannot renew.
type tenure struct {
	Holder string `json:"holder"` // one process, whatever it is called
	Stewardship
}

// errDeposed says that another steward leads, or may by now.
var errDeposed = errors.New("the steward's lease is lost")

// errBehind says that what was read of the lease is not the last of it: a replica may be
// behind.
var errBehind = errors.New("the steward's lease was read from a replica that is behind")

// lease is the right to lead.
type lease struct {
	kv       jetstream.KeyValue
	ttl      time.Duration
	holder   string
	now      func() time.Time
	revision uint64
	renewed  time.Time // when the last renewal that succeeded was begun
}

// acquire waits until the right is had. What it cannot ask for now it asks for again.
func (l *lease) acquire(ctx context.Context, report func() Stewardship) error {
	for {
		begun := l.now()
		revision, err := l.create(ctx, report())
		if err == nil {
			l.revision, l.renewed = revision, begun
			return nil
		}
		if err := streams.Pause(ctx, l.ttl/4); err != nil {
			return err
		}
	}
}

func (l *lease) create(ctx context.Context, s Stewardship) (uint64, error) {
	value, err := l.encode(s)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.ttl)
	defer cancel()
	return l.kv.Create(ctx, stewardKey, value)
}

func (l *lease) encode(s Stewardship) ([]byte, error) {
	value, err := json.Marshal(tenure{Holder: l.holder, Stewardship: s})
	if err != nil {
		return nil, fmt.Errorf("encode the steward's entry: %w", err)
	}
	return value, nil
}

// keep renews until ctx ends, or until the right is lost: then errDeposed. One that
// cannot be renewed for a whole lease is lost, whatever became of the entry.
func (l *lease) keep(ctx context.Context, report func() Stewardship) error {
	for {
		if err := streams.Pause(ctx, l.ttl/4); err != nil {
			return err
		}
		left := l.ttl - l.now().Sub(l.renewed)
		if left <= 0 {
			return errDeposed
		}
		begun := l.now()
		trying, cancel := context.WithTimeout(ctx, min(left, l.ttl/2))
		err := l.renew(trying, report())
		cancel()
		switch {
		case err == nil:
			l.renewed = begun
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errDeposed):
			return err
		}
	}
}

// renew writes the entry once more. A renewal that was written although its answer was
// lost changes the revision: the entry is still this holder's then, and is written again.
func (l *lease) renew(ctx context.Context, s Stewardship) error {
	value, err := l.encode(s)
	if err != nil {
		return err
	}
	for range 2 {
		revision, err := l.kv.Update(ctx, stewardKey, value, l.revision)
		if err == nil {
			l.revision = revision
			return nil
		}
		if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return fmt.Errorf("renew the steward's lease: %w", err)
		}
		if revision, err = l.own(ctx); err != nil {
			return err
		}
		l.revision = revision
	}
	return errBehind
}

// own is the revision of the entry, or errDeposed if it is not this holder's.
func (l *lease) own(ctx context.Context) (uint64, error) {
	entry, err := l.kv.Get(ctx, stewardKey)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return 0, errDeposed
	case err != nil:
		return 0, fmt.Errorf("look who is steward: %w", err)
	}
	var who tenure
	if json.Unmarshal(entry.Value(), &who) != nil || who.Holder != l.holder {
		return 0, errDeposed
	}
	return entry.Revision(), nil
}

// release gives the right up, so that another need not wait for its end.
func (l *lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(l.ttl, 2*time.Second))
	defer cancel()
	_ = l.kv.Delete(ctx, stewardKey, jetstream.LastRevision(l.revision)) // else it ends by itself
}
