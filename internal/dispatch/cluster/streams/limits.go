package streams

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
)

// limitTry is how long one exchange with the bucket may take.
const limitTry = 2 * time.Second

// Limits are the limits that all workers of a cluster share, as one process sees them: one
// key of a bucket for each, swapped by its revision, on the clock of the hub that leads the
// bucket. They are safe for concurrent use.
type Limits struct {
	c     *Conn
	set   *limit.Set
	clock *clock

	mu sync.Mutex // guards kv
	kv jetstream.KeyValue
}

// Limits makes the limits of a cluster that is prepared. Nothing is asked before one is used.
func (c *Conn) Limits(rules limit.Rules) *Limits {
	l := &Limits{c: c, clock: newClock(c.now)}
	l.set = &limit.Set{Rules: rules, Store: l.store, Now: c.now}
	return l
}

// Limit is what all share of a key such as "anthropic/requests" or
// "host:example.org/requests". One that no rule limits waits only after Slow.
func (l *Limits) Limit(key string) dispatch.Limiter { return l.set.Limit(key) }

// open is the bucket, and sees to it that the clock is right.
func (l *Limits) open(ctx context.Context) (jetstream.KeyValue, error) {
	if l.c.nc.IsClosed() {
		return nil, limit.ErrClosed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kv == nil {
		kv, err := l.c.js.KeyValue(ctx, BucketLimit)
		if err != nil {
			return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "open the bucket of limits")
		}
		l.kv = kv
	}
	return l.kv, l.clock.set(ctx, func(ctx context.Context) (time.Time, error) { return serverTime(ctx, l.kv) })
}

// serverTime asks the hub that leads the bucket what time it is.
func serverTime(ctx context.Context, kv jetstream.KeyValue) (time.Time, error) {
	status, err := kv.Status(ctx)
	if err != nil {
		return time.Time{}, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "ask a hub for the time")
	}
	with, ok := status.(interface{ StreamInfo() *jetstream.StreamInfo })
	if !ok || with.StreamInfo().TimeStamp.IsZero() {
		return time.Time{}, marchwarden.Errorf(marchwarden.CodeUnsupported, "the hub does not say what time it is")
	}
	return with.StreamInfo().TimeStamp, nil
}

// store is the store of a key.
func (l *Limits) store(key string) limit.Store { return limitStore{l, limit.Name(key)} }

type limitStore struct {
	*Limits
	name string
}

func (s limitStore) Load(ctx context.Context) ([]byte, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, limitTry)
	defer cancel()
	kv, err := s.open(ctx)
	if err != nil {
		return nil, 0, err
	}
	entry, err := kv.Get(ctx, s.name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read a limit")
	}
	return entry.Value(), entry.Revision(), nil
}

func (s limitStore) Swap(ctx context.Context, state []byte, rev uint64) error {
	ctx, cancel := context.WithTimeout(ctx, limitTry)
	defer cancel()
	kv, err := s.open(ctx)
	if err != nil {
		return err
	}
	if rev == 0 {
		_, err = kv.Create(ctx, s.name, state)
	} else {
		_, err = kv.Update(ctx, s.name, state, rev)
	}
	if conflict(err) {
		return limit.ErrConflict
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write a limit")
}

func (s limitStore) Now() time.Time { return s.clock.Now() }

// conflict reports that the key is at another revision. Streams with replicas say so in
// another way than those without.
func conflict(err error) bool {
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) || errors.Is(err, jetstream.ErrKeyExists) {
		return true
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == errWrongLastConst)
}

const (
	// setEvery is how often the clock is compared with the hub's while limits are in use.
	setEvery = 10 * time.Second
	// rightFor is how long the clock is trusted when no hub can be asked.
	rightFor = 5 * time.Minute
)

// clock is the hub's clock as well as it is known here: this process's, which does not
// jump, and how much that is behind.
type clock struct {
	now    func() time.Time
	start  time.Time
	behind atomic.Int64 // in nanoseconds

	mu    sync.Mutex    // guards what follows, and is held by the one who asks the hub
	since time.Duration // when it was set, since start
	right bool          // it was compared at least once
}

func newClock(now func() time.Time) *clock { return &clock{now: now, start: now()} }

// passed is how long the clock has run.
func (c *clock) passed() time.Duration { return c.now().Sub(c.start) }

// Now is the time at the hub.
func (c *clock) Now() time.Time {
	return c.start.Round(0).Add(c.passed() + time.Duration(c.behind.Load()))
}

// set compares the clock with the hub's, if that was not done for a while. It fails if it
// was never done, or not for long, and cannot be done now.
func (c *clock) set(ctx context.Context, ask func(context.Context) (time.Time, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.passed()
	if c.right && asked-c.since < setEvery {
		return nil
	}
	at, err := ask(ctx)
	if err != nil {
		if c.right && asked-c.since < rightFor {
			return nil
		}
		return err
	}
	c.since, c.right = c.passed(), true
	half := (c.since - asked) / 2
	behind := at.Sub(c.start.Round(0)) - asked - half
	// What may be right already stays: hosts whose clocks agree are not driven apart.
	if (behind - time.Duration(c.behind.Load())).Abs() > half {
		c.behind.Store(int64(behind))
	}
	return nil
}
