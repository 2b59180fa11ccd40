package streams

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// lookEvery is how often one of the takers of a queue looks for what is not announced, such as
	// a task whose lease has ended.
	lookEvery = time.Second
	// arriveFor is how long an announced pointer may take to reach the copy of the stream that is
	// asked for it.
	arriveFor = 100 * time.Millisecond
	// pullAgain is when a lane is asked again that could not be asked.
	pullAgain = 100 * time.Millisecond
)

// Queue takes pointers from one queue: the lower band first, and within a band from the
// lanes in turn. One goroutine uses it.
//
// It keeps, for each lane, whether there may be something: that is announced to all takers when a
// pointer is stored. So an idle queue costs nothing, a busy one a request for each pointer. One of
// the takers looks through all lanes every second for what is not announced, and announces what it
// leaves there.
type Queue struct {
	c     *Conn
	name  string
	lease time.Duration
	turn  [Bands]int // the lane that is first next time
	wake  chan struct{}
	hints *nats.Subscription // what is announced
	looks *nats.Subscription // when a taker looks through all lanes

	inbox   string
	answers *nats.Subscription // to what is asked of consumers; nil before anything is
	asked   uint64

	mu       sync.Mutex // guards what follows
	lanes    [Bands][Lanes]lane
	lastLook time.Time // of any taker
}

// lane is what is known of a lane.
type lane struct {
	maybe     bool      // there may be something that is not announced
	announced int       // pointers that were announced and not asked for yet
	last      time.Time // when one was announced
}

// OpenQueue makes the consumers of a queue if they are missing, however long that takes
// until ctx ends, and listens. The caller closes it.
func (c *Conn) OpenQueue(ctx context.Context, name string, lease time.Duration) (*Queue, error) {
	q := &Queue{c: c, name: name, lease: lease, wake: make(chan struct{}, 1), inbox: c.nc.NewInbox()}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for band := range Bands {
		for lane := range Lanes {
			group.Go(func() error { return q.ensure(inner, band, lane) })
		}
	}
	err := group.Wait()
	if err != nil {
		return nil, err
	}
	if q.hints, err = c.nc.Subscribe("mw.wake."+name+".*.*.*", q.announced); err == nil {
		q.looks, err = c.nc.Subscribe("mw.tick."+name, func(*nats.Msg) {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.lastLook = c.now()
		})
	}
	if err != nil {
		q.Close()
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "listen to queue %s", name)
	}
	return q, nil
}

// ensure makes the consumer of a lane if there is none.
func (q *Queue) ensure(ctx context.Context, band, number int) error {
	name := ConsumerName(q.name, band, number)
	return q.c.Insist(ctx, "make consumer "+name, func(ctx context.Context) error {
		_, err := q.c.js.Consumer(ctx, StreamWork, name)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			_, err = q.c.js.CreateOrUpdateConsumer(ctx, StreamWork, ConsumerConfig(q.name, band, number, q.lease))
		}
		return err
	})
}

// announced notes that a pointer was stored.
func (q *Queue) announced(m *nats.Msg) {
	_, band, number, ok := ParseLane(m.Subject)
	if !ok {
		return
	}
	q.mu.Lock()
	q.lanes[band][number].announced++
	q.lanes[band][number].last = q.c.now()
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Next takes a pointer as soon as there is one. It returns the error of ctx when that
// ends, and another if the connection is closed.
func (q *Queue) Next(ctx context.Context) (*Pointer, error) {
	for {
		wait := q.look()
		p, err := q.sweep(ctx)
		switch {
		case p != nil:
			return p, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrBadSubscription):
			return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "the engine is closed")
		case err != nil:
			wait = pullAgain
		}
		timer := time.NewTimer(wait)
		select {
		case <-q.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// look has all lanes asked if no taker has for a while, and tells the others. It returns when it is
// time again.
func (q *Queue) look() (wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.c.now()
	wait = lookEvery - rand.N(lookEvery/4) // so that not all look at once
	if since := now.Sub(q.lastLook); since < lookEvery*3/4 {
		return max(wait-since, time.Millisecond)
	}
	q.lastLook = now
	for band := range q.lanes {
		for number := range q.lanes[band] {
			q.lanes[band][number].maybe = true
		}
	}
	_ = q.c.nc.Publish("mw.tick."+q.name, nil) // without it another looks, too
	return wait
}

// sweep takes a pointer from the first lane that has one; nil if none has.
func (q *Queue) sweep(ctx context.Context) (*Pointer, error) {
	for band := range Bands {
		for i := range Lanes {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			p, err := q.try(ctx, band, (q.turn[band]+i)%Lanes)
			if p != nil || err != nil {
				return p, err
			}
		}
	}
	return nil, nil
}

// try takes a pointer from a lane if there may be one.
func (q *Queue) try(ctx context.Context, band, number int) (*Pointer, error) {
	q.mu.Lock()
	l := &q.lanes[band][number]
	was := *l
	q.mu.Unlock()
	if !was.maybe && was.announced == 0 {
		return nil, nil
	}
	// What was announced a while ago, such as when all slots were busy, is there by now, or another has it.
	p, err := q.pull(band, number, was.announced > 0 && q.c.now().Sub(was.last) < arriveFor)
	if errors.Is(err, nats.ErrNoResponders) { // no consumer, or none that leads
		short, stop := context.WithTimeout(ctx, tryFor)
		defer stop()
		err = q.ensure(short, band, number)
		if err != nil && ctx.Err() == nil {
			q.c.log.Warn("a lane has no consumer", "queue", q.name, "band", band, "lane", number, "error", err)
		}
		return nil, nil // it is asked again with all others
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case p == nil:
		l.maybe, l.announced = false, l.announced-was.announced
		return nil, nil
	}
	q.turn[band] = (number + 1) % Lanes
	l.maybe, l.announced = p.pending > 0 || p.Delivered > 1, max(0, l.announced-1)
	if l.maybe && was.announced == 0 {
		_ = q.c.nc.Publish(p.again, nil) // without it, the next look finds more
	}
	return p, nil
}

// Close listens no more.
func (q *Queue) Close() {
	for _, sub := range []*nats.Subscription{q.hints, q.looks, q.answers} {
		if sub != nil {
			_ = sub.Unsubscribe() // fails if the connection is closed, which ends it too
		}
	}
}
