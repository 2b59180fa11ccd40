package streams

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

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
	Queued    time.Time // when it was submitted, by the hub's clock
	Delivered int       // how often it was taken, this time included
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
//
// A pointer comes under its own subject, so which request it answers cannot be told. So what comes
// late, for a request that was given up, is given back.
func (q *Queue) pull(band, number int, announced bool) (p *Pointer, err error) {
	if q.answers == nil {
		if q.answers, err = q.c.nc.SubscribeSync(q.inbox + ".*"); err != nil {
			return nil, err
		}
	}
	taken := q.c.now()
	p, err = q.ask(band, number, announced, taken)
	if err != nil && !errors.Is(err, nats.ErrNoResponders) {
		go q.giveBack(q.answers, taken)
		q.inbox, q.answers = q.c.nc.NewInbox(), nil
	}
	return p, err
}

// giveBack returns the pointer that comes for a request that was given up, unless its lease may
// have ended: by then another taker may have it.
func (q *Queue) giveBack(answers *nats.Subscription, taken time.Time) {
	if m, err := answers.NextMsg(q.lease); err == nil && m.Header.Get("Status") == "" {
		if p, err := q.pointer(m, taken); err == nil {
			_ = p.Return(0) // its lease ends by itself
		}
	}
	_ = answers.Unsubscribe() // fails if the connection is closed, which ends it too
}

// ask asks for a pointer, and waits for the answer.
func (q *Queue) ask(band, number int, announced bool, taken time.Time) (*Pointer, error) {
	ctx, stop := q.c.try(context.Background(), tryFor)
	defer stop()
	q.asked++
	reply := q.inbox + "." + strconv.FormatUint(q.asked, 10)
	subject := "$JS.API.CONSUMER.MSG.NEXT." + StreamWork + "." + ConsumerName(q.name, band, number)
	want := `{"batch":1,"no_wait":true}`
	if announced {
		want = fmt.Sprintf(`{"batch":1,"expires":%d}`, arriveFor.Nanoseconds())
	}
	if err := q.c.nc.PublishRequest(subject, reply, []byte(want)); err != nil {
		return nil, err
	}
	for {
		m, err := q.answers.NextMsgWithContext(ctx)
		if err != nil {
			return nil, err
		}
		status := m.Header.Get("Status")
		switch {
		case status == "":
			return q.pointer(m, taken)
		case m.Subject != reply: // of a request that has its answer
		case status == "503":
			return nil, nats.ErrNoResponders
		default:
			return nil, nil
		}
	}
}

func (q *Queue) pointer(m *nats.Msg, taken time.Time) (*Pointer, error) {
	meta, err := m.Metadata()
	if err != nil {
		return nil, fmt.Errorf("read what was taken from the queue: %w", err)
	}
	p := &Pointer{c: q.c, reply: m.Reply, lease: q.lease, Subject: m.Subject, Queued: meta.Timestamp, Delivered: int(min(meta.NumDelivered, 1<<30)), pending: meta.NumPending}
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
	for Pause(ctx, min(p.lease/4, p.left())) == nil {
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
