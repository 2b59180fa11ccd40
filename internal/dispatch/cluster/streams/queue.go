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

// How often the takers of a queue look for what is not announced, such as a task whose lease has
// ended: together, and each for itself.
const (
	tickEvery = time.Second
	lookEvery = 15 * time.Second
)

// An announced pointer may not have reached the copy of the stream that is asked: it is
// asked for again after announcedWait, twice that and so on, announcedTries times.
const (
	announcedWait  = 2 * time.Millisecond
	announcedTries = 7
)

// Queue takes pointers from one queue: the lower band first, and within a band from the
// lanes in turn. One goroutine uses it.
//
// It keeps, for each lane, whether there may be something: that is announced when a
// pointer is stored. So an idle queue costs nothing, a busy one a request for each pointer. The
// takers look through all lanes once a second between them, for what is not announced.
type Queue struct {
	c     *Conn
	name  string
	lease time.Duration
	wake  chan struct{}
	hints *nats.Subscription // what is announced, to all
	ticks *nats.Subscription // when a taker looks through all lanes
	group *nats.Subscription // what is announced, to one of those who wait; nil while this does not

	inbox   string
	answers *nats.Subscription // to what is asked of consumers; nil before anything is
	asked   uint64

	mu       sync.Mutex // guards what follows
	lanes    [Bands][Lanes]lane
	turn     [Bands]int // the lane that is first next time
	grouped  bool
	lastTick time.Time // when a taker last looked through all lanes
	lastLook time.Time // when this did
}

// lane is what is known of a lane.
type lane struct {
	maybe bool   // there may be something: it is asked the next time that all are
	more  bool   // there was more than was taken
	owed  bool   // it was announced to this one alone
	news  uint64 // counts what was announced
	// tries is how often it is still to be asked for what was announced to this one alone,
	// and after when.
	tries int
	after time.Time
}

// OpenQueue makes the consumers of a queue if they are missing, however long that takes
// until ctx ends, and listens. The caller closes it.
func (c *Conn) OpenQueue(ctx context.Context, name string, lease time.Duration) (*Queue, error) {
	q := &Queue{c: c, name: name, lease: lease, wake: make(chan struct{}, 1)}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for band := range Bands {
		for lane := range Lanes {
			q.lanes[band][lane].maybe = true
			group.Go(func() error { return q.ensure(inner, band, lane) })
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var err error
	q.inbox = c.nc.NewInbox()
	if q.hints, err = c.nc.Subscribe("mw.wake."+name+".*.*.*", func(m *nats.Msg) { q.announced(m, false) }); err == nil {
		q.ticks, err = c.nc.Subscribe("mw.tick."+name, func(*nats.Msg) {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.lastTick = c.now()
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
func (q *Queue) announced(m *nats.Msg, alone bool) {
	_, band, number, ok := ParseLane(m.Subject)
	if !ok {
		return
	}
	q.mu.Lock()
	l := &q.lanes[band][number]
	l.maybe, l.after = true, time.Time{}
	l.news++
	if alone {
		l.owed, l.tries = true, announcedTries
	}
	signal := alone || !q.grouped
	q.mu.Unlock()
	if signal {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
}

// Next takes a pointer as soon as there is one. It returns the error of ctx when that
// ends, and another if the connection is closed.
func (q *Queue) Next(ctx context.Context) (*Pointer, error) {
	q.tick()
	for look := true; ; {
		if look {
			p, err := q.sweep(ctx)
			if p != nil || err != nil {
				return p, err
			}
		}
		if err := q.listen(); err != nil {
			return nil, err
		}
		wait, again := q.idle()
		timer := time.NewTimer(wait)
		select {
		case <-q.wake:
			look = true
		case <-timer.C:
			look = again
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		timer.Stop()
		look = q.tick() || look
	}
}

// listen joins those to one of whom each pointer is announced.
func (q *Queue) listen() error {
	if q.group != nil {
		return nil
	}
	sub, err := q.c.nc.QueueSubscribe("mw.wake."+q.name+".*.*.*", "mw", func(m *nats.Msg) { q.announced(m, true) })
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "listen to queue %s", q.name)
	}
	q.group = sub
	if q.c.nc.FlushTimeout(tryFor) == nil { // until then, what is announced to all wakes this one
		q.mu.Lock()
		q.grouped = true
		q.mu.Unlock()
	}
	return nil
}

// Rest says that nothing is taken for a while: what was announced to this one, and the
// best of what it knows of and leaves, is announced to the others.
func (q *Queue) Rest() {
	if q.group == nil {
		return
	}
	_ = q.group.Unsubscribe() // fails if the connection is closed, which ends it too
	q.group = nil
	q.mu.Lock()
	q.grouped = false
	var tell []string
	first := true
	for band := range q.lanes {
		for number := range q.lanes[band] {
			l := &q.lanes[band][number]
			if l.owed || l.more && first {
				tell = append(tell, WakeSubject(q.name, band, number))
				first = false
			}
			l.owed = false
		}
	}
	q.mu.Unlock()
	for _, subject := range tell {
		_ = q.c.nc.Publish(subject, nil) // the next look through all lanes makes up for it
	}
}

// idle is how long there is nothing to do unless something is announced; again says that
// a lane is to be asked again then.
func (q *Queue) idle() (wait time.Duration, again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.c.now()
	wait = tickEvery - now.Sub(q.lastTick)
	wait -= rand.N(tickEvery / 4) // so that not all look at once
	for band := range q.lanes {
		for number := range q.lanes[band] {
			if l := &q.lanes[band][number]; l.tries > 0 && l.after.Sub(now) < wait {
				wait, again = l.after.Sub(now), true
			}
		}
	}
	return max(wait, time.Millisecond), again
}

// tick asks all lanes if no taker has for a while, and tells the others.
func (q *Queue) tick() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.c.now()
	due := now.Sub(q.lastTick) >= tickEvery*3/4
	if !due && now.Sub(q.lastLook) < lookEvery {
		return false
	}
	q.lastLook = now
	for band := range q.lanes {
		for number := range q.lanes[band] {
			q.lanes[band][number].maybe = true
		}
	}
	if due {
		q.lastTick = now
		_ = q.c.nc.Publish("mw.tick."+q.name, nil) // then another looks, too
	}
	return true
}

// sweep takes a pointer from the first lane that has one; nil if none has.
func (q *Queue) sweep(ctx context.Context) (*Pointer, error) {
	for band := range Bands {
		q.mu.Lock()
		turn := q.turn[band]
		q.mu.Unlock()
		for i := range Lanes {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			number := (turn + i) % Lanes
			p, ok, err := q.try(ctx, band, number)
			if p != nil || err != nil {
				return p, err
			}
			if !ok {
				return nil, nil
			}
		}
	}
	return nil, nil
}

// try takes a pointer from a lane if there may be one. ok says that the next lane is worth
// asking.
func (q *Queue) try(ctx context.Context, band, number int) (p *Pointer, ok bool, err error) {
	q.mu.Lock()
	l := &q.lanes[band][number]
	ask, news := l.maybe && !l.after.After(q.c.now()), l.news
	q.mu.Unlock()
	if !ask {
		return nil, true, nil
	}
	p, err = q.pull(band, number)
	gone := errors.Is(err, nats.ErrNoResponders) // no consumer, or none that leads
	if gone {
		short, stop := context.WithTimeout(ctx, tryFor)
		if err := q.ensure(short, band, number); err != nil && ctx.Err() == nil {
			q.c.log.Warn("a lane has no consumer", "queue", q.name, "band", band, "lane", number, "error", err)
		}
		stop()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrBadSubscription):
		return nil, false, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "the engine is closed")
	case err != nil:
		l.tries, l.after = max(l.tries, 1), q.c.now().Add(100*time.Millisecond)
		return nil, gone, ctx.Err()
	case p != nil:
		q.turn[band] = (number + 1) % Lanes
		l.more = p.pending > 0 || p.Delivered > 1
		l.maybe = l.more || l.news != news
		if l.news == news {
			l.owed, l.tries = false, 0
		}
		return p, true, nil
	}
	l.more = false
	switch {
	case l.news != news: // announced while it was asked
	case l.tries > 1:
		l.tries--
		l.after = q.c.now().Add(announcedWait << (announcedTries - l.tries - 1))
	default:
		l.maybe, l.owed, l.tries = false, false, 0
	}
	return nil, true, nil
}

// Close listens no more.
func (q *Queue) Close() {
	q.Rest()
	for _, sub := range []*nats.Subscription{q.hints, q.ticks, q.answers} {
		if sub != nil {
			_ = sub.Unsubscribe() // fails if the connection is closed, which ends it too
		}
	}
}
