package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
)

// quietFor is after how long a watcher that hears nothing asks, since what it was told of may have
// been lost with a connection.
const quietFor = 5 * time.Second

// errEnough says that the watcher wants no more, or has seen the end.
var errEnough = errors.New("enough")

// Watch gives the events of a task.
func (e *Engine) Watch(ctx context.Context, w dispatch.Watching) iter.Seq2[dispatch.Event, error] {
	return func(yield func(dispatch.Event, error) bool) {
		v := &watcher{e: e, yield: yield, id: w.Task, last: w.After}
		err := v.watch(ctx)
		if err != nil && !errors.Is(err, errEnough) && ctx.Err() == nil {
			yield(dispatch.Event{}, err)
		}
	}
}

// watcher is one call of Watch.
type watcher struct {
	e       *Engine
	yield   func(dispatch.Event, error) bool
	id      marchwarden.TraceID
	subject string // of the entries of its record
	last    uint64 // the last sequence that was read
}

func (v *watcher) watch(ctx context.Context) error {
	t, _, err := v.e.known(ctx, v.id)
	if err != nil {
		return err
	}
	v.subject = logSubject(t)
	// What happens from here on is heard; what happened before is read.
	news := make(chan *nats.Msg, 1024)
	for _, subject := range []string{streams.SeenSubject(t.Investigation, t.Record), streams.LiveSubject(t.Investigation, t.ID)} {
		sub, err := v.e.conn.NATS().ChanSubscribe(subject, news)
		if err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "watch task %s", v.id)
		}
		defer func() { _ = sub.Unsubscribe() }() // fails if the connection is closed, which ends it too
	}
	_ = v.e.conn.NATS().FlushTimeout(time.Second) // without a connection there is none to wait for
	if err := v.ask(ctx); err != nil {
		return err
	}
	quiet := time.NewTimer(quietFor)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m := <-news:
			err = v.heard(ctx, m)
		case <-quiet.C:
			err = v.ask(ctx)
		}
		if err != nil {
			return err
		}
		quiet.Reset(quietFor)
	}
}

// ask reads what is new, and looks whether the end is kept where the record is not.
func (v *watcher) ask(ctx context.Context) error {
	if err := v.catchUp(ctx, 0); err != nil {
		return err
	}
	d, err := v.e.ended(ctx, v.id)
	if d == nil || err != nil {
		return err
	}
	if err := v.catchUp(ctx, 0); err != nil { // the end is written to the record first
		return err
	}
	v.yield(dispatch.Event{Task: v.id, Kind: dispatch.Ended, End: &d.End}, nil)
	return errEnough
}

// catchUp reads entries until there are no more, or until a sequence.
func (v *watcher) catchUp(ctx context.Context, until uint64) error {
	for until == 0 || v.last < until {
		entry, found, err := v.e.conn.Next(ctx, v.subject, v.last+1)
		if err != nil {
			return fmt.Errorf("watch task %s: %w", v.id, err)
		}
		if !found {
			return nil
		}
		if err := v.entry(ctx, entry); err != nil {
			return err
		}
	}
	return nil
}

// heard takes what came by subscription.
func (v *watcher) heard(ctx context.Context, m *nats.Msg) error {
	if strings.HasPrefix(m.Subject, "mw.live.") {
		event := dispatch.Event{Task: v.id, Kind: dispatch.Progress}
		if json.Unmarshal(m.Data, &event.Progress) != nil {
			return nil
		}
		return v.give(event)
	}
	seq, err1 := strconv.ParseUint(m.Header.Get(nats.JSSequence), 10, 64)
	before, err2 := strconv.ParseUint(m.Header.Get(nats.JSLastSequence), 10, 64)
	if err1 != nil || err2 != nil || seq <= v.last {
		return nil // not from the stream, or known
	}
	// What is repeated by the stream names its predecessor in the record: a gap shows.
	if before == v.last {
		return v.entry(ctx, streams.Entry{Subject: v.subject, Seq: seq, Header: m.Header, Data: m.Data})
	}
	return v.catchUp(ctx, seq)
}

// entry gives an entry of a record to the watcher.
func (v *watcher) entry(ctx context.Context, entry streams.Entry) error {
	v.last = entry.Seq
	h, ok := headOf(entry)
	if !ok || h.task != v.id {
		return nil
	}
	event := dispatch.Event{Seq: entry.Seq, Task: h.task}
	var err error
	switch h.kind {
	case kindClaim:
		event.Kind, event.Worker, event.Attempt = dispatch.Taken, h.worker, h.attempt
	case kindLine:
		event.Kind = dispatch.Written
		if event.Line, err = v.e.body(ctx, h, entry.Data); err != nil {
			return err
		}
	case kindEnd:
		event.Kind = dispatch.Ended
		if event.End, err = decoded[dispatch.End](entry, "the end"); err != nil {
			return err
		}
	default:
		return nil
	}
	if err := v.give(event); err != nil {
		return err
	}
	if h.kind == kindEnd {
		return errEnough
	}
	return nil
}

func (v *watcher) give(event dispatch.Event) error {
	if !v.yield(event, nil) {
		return errEnough
	}
	return nil
}
