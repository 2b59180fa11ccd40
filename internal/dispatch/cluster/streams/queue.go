package streams

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
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
	q := &Queue{c: c, name: name, lease: lease, wake: make(chan struct{}, 1)}
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
		select {
		case <-q.wake:
		case <-time.After(wait):
		case <-ctx.Done():
		}
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
	for _, sub := range []*nats.Subscription{q.hints, q.looks} {
		if sub != nil {
			_ = sub.Unsubscribe() // fails if the connection is closed, which ends it too
		}
	}
}

// Pointer is a task that was taken from the queue, for as long as it is renewed. When its lease has
// ended another taker may have it, and the hub cannot tell the two apart: so nothing is said about
// it any more, except that it is done.
type Pointer struct {
	c     *Conn
	reply string
	lease time.Duration

	// Subject is where it waited. The submitting client chose it: it is the task's place only if
	// the task itself says so.
	Subject   string
	Task      marchwarden.TraceID
	Delivered int // how often it was taken, this time included
	pending   uint64
	again     string // tells others of it
	held      atomic.Pointer[time.Time]
}

// left is how long the lease lasts, which began or was last renewed not earlier than held.
func (p *Pointer) left() time.Duration { return p.held.Load().Add(p.lease).Sub(p.c.now()) }

// Over says that the lease has ended.
func (p *Pointer) Over() bool { return p.left() <= 0 }

// errOver is the error of what is said about a pointer too late.
var errOver = marchwarden.Errorf(marchwarden.CodeUnavailable, "the lease of the task has ended")

// pull takes the next pointer of a lane; nil if there is none, or, when one was just announced, none
// comes for a while. The end of a context does not stop it: what is on its way would wait for the end of
// its lease.
func (q *Queue) pull(band, number int, announced bool) (*Pointer, error) {
	inbox := q.c.nc.NewInbox()
	answers, err := q.c.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	taken := q.c.now()
	want := `{"batch":1,"no_wait":true}`
	if announced {
		want = fmt.Sprintf(`{"batch":1,"expires":%d}`, arriveFor.Nanoseconds())
	}
	subject := "$JS.API.CONSUMER.MSG.NEXT." + StreamWork + "." + ConsumerName(q.name, band, number)
	ctx, stop := q.c.try(context.Background(), tryFor)
	defer stop()
	var m *nats.Msg
	if err = q.c.nc.PublishRequest(subject, inbox, []byte(want)); err == nil {
		m, err = answers.NextMsgWithContext(ctx)
	}
	if err != nil && !errors.Is(err, nats.ErrNoResponders) {
		go q.giveBack(answers, taken)
		return nil, err
	}
	_ = answers.Unsubscribe() // fails if the connection is closed, which ends it too
	switch {
	case err != nil || m.Header.Get("Status") == "503":
		return nil, nats.ErrNoResponders
	case m.Header.Get("Status") != "":
		return nil, nil
	}
	return q.pointer(m, taken)
}

// giveBack returns the pointer that comes for a request that was given up, unless its lease may
// have ended: by then another taker may have it.
func (q *Queue) giveBack(answers *nats.Subscription, taken time.Time) {
	if m, err := answers.NextMsg(q.lease); err == nil && m.Header.Get("Status") == "" {
		if p, err := q.pointer(m, taken); err == nil {
			_ = p.Return(0) // its lease ends by itself
		}
	}
	_ = answers.Unsubscribe()
}

func (q *Queue) pointer(m *nats.Msg, taken time.Time) (*Pointer, error) {
	meta, err := m.Metadata()
	if err != nil {
		return nil, fmt.Errorf("read what was taken from the queue: %w", err)
	}
	p := &Pointer{c: q.c, reply: m.Reply, lease: q.lease, Subject: m.Subject, Delivered: int(min(meta.NumDelivered, 1<<30)), pending: meta.NumPending}
	p.held.Store(&taken)
	queue, band, lane, _ := ParseLane(m.Subject) // it is of a lane, as all that comes from one
	p.again = WakeSubject(queue, band, lane)
	// A worker that finds no task for a pointer removes the pointer.
	p.Task, _ = marchwarden.ParseTraceID(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	return p, nil
}

// Renew keeps the pointer for another lease from now, if its lease has not ended.
func (p *Pointer) Renew(ctx context.Context) error {
	if p.Over() {
		return errOver
	}
	ctx, stop := p.c.try(ctx, tryFor)
	defer stop()
	asked := p.c.now()
	_, err := p.c.nc.RequestWithContext(ctx, p.reply, []byte("+WPI"))
	if err == nil {
		p.held.Store(&asked)
	}
	return err
}

// Keep renews the pointer until ctx ends. If that fails for as long as a lease lasts, another taker
// may have it, even if it was this process that stood still: then lost is told.
func (p *Pointer) Keep(ctx context.Context, lost func()) {
	for httpapi.Sleep(ctx, min(p.lease/4, p.left())) == nil {
		left := p.left()
		if left <= 0 {
			lost()
			return
		}
		one, cancel := context.WithTimeout(ctx, min(left, p.lease/4))
		_ = p.Renew(one) // what counts is when it last worked
		cancel()
	}
}

// Drop takes the pointer from the queue for good. It is gone when Drop returns.
func (p *Pointer) Drop(ctx context.Context) error {
	return p.c.retry(ctx, "drop a pointer", func(ctx context.Context) error {
		_, err := p.c.nc.RequestWithContext(ctx, p.reply, []byte("+ACK"))
		return err
	})
}

// Return gives the pointer back, so that another taker can have it after a while, if its lease has
// not ended.
func (p *Pointer) Return(after time.Duration) error {
	if p.Over() {
		return errOver
	}
	word := "-NAK"
	if after > 0 {
		word = fmt.Sprintf(`-NAK {"delay": %d}`, after.Nanoseconds())
	}
	err := p.c.nc.Publish(p.reply, []byte(word))
	if err == nil && after <= 0 {
		err = p.c.nc.Publish(p.again, nil)
	}
	return err
}
