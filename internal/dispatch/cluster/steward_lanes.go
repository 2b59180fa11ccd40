package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
)

// lane is one of a queue, with its consumer as that is now.
type lane struct {
	*jetstream.ConsumerInfo
	queue        string
	band, number int
}

// watched is a lane as it was when it last moved.
type watched struct {
	delivered, acked uint64
	since            time.Time // it moved, or was not to move
	remade           time.Time // its consumer was made anew; zero if it was not since then
}

// watch looks at every lane of the work, says which are stuck, and makes the consumers of
// those anew: they deliver nothing although something waits and a worker is free to take it.
func (t *term) watch(ctx context.Context) error {
	work, lanes, err := t.e.listLanes(ctx)
	if err != nil {
		t.lanes = nil // what moves meanwhile is unknown
		return err
	}
	wanted := t.wanted(lanes)
	now, seen := t.e.cfg.Now(), map[string]*watched{}
	var stuck []Stuck
	var errs []error
	for _, l := range lanes {
		w := t.moved(l, wanted(l))
		seen[l.Name] = w
		if silent := now.Sub(w.since); silent >= 2*t.lease {
			stuck = append(stuck, Stuck{Queue: l.queue, Lane: fmt.Sprintf("p%d.%d", l.band, l.number), Waiting: int(l.NumPending), For: silent})
		}
		patience := 2 * t.lease
		if l.NumAckPending > 0 {
			patience *= 2 // those who work on these would lose them
		}
		if now.Sub(w.since) < patience || now.Sub(w.remade) < patience {
			continue
		}
		if err := t.remake(ctx, work, l); err != nil {
			errs = append(errs, err)
			continue
		}
		w.delivered, w.acked, w.remade = 0, 0, now
		t.count(func(s *Stewardship) { s.Remade++ })
		t.e.log.Warn("steward made a stuck consumer anew", "consumer", l.Name, "pending", l.NumPending, "in_flight", l.NumAckPending)
	}
	slices.SortFunc(stuck, func(a, b Stuck) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Lane, b.Lane))
	})
	t.count(func(s *Stewardship) { s.Stuck = stuck })
	t.lanes = seen
	return errors.Join(errs...)
}

// listLanes are all lanes that have a consumer, and the stream that they are of.
func (e *Engine) listLanes(ctx context.Context) (work jetstream.Stream, lanes []lane, err error) {
	if work, err = e.conn.JetStream().Stream(ctx, streams.StreamWork); err != nil {
		return nil, nil, err
	}
	list := work.ListConsumers(ctx)
	for info := range list.Info() {
		if queue, band, number, ok := streams.ParseLane(info.Config.FilterSubject); ok {
			lanes = append(lanes, lane{info, queue, band, number})
		}
	}
	return work, lanes, wrap("list consumers", list.Err())
}

// wanted says of which lanes something should come: those in which something waits, of a queue for
// which a worker has a free slot, unless something more urgent waits there. A worker with short
// tasks reports a free slot every now and then, and fills it with what is most urgent.
func (t *term) wanted(lanes []lane) func(lane) bool {
	free := map[string]bool{}
	for _, w := range t.workers {
		for queue, load := range w.Queues {
			if load.Busy < load.Slots && !w.Draining {
				free[queue] = true
			}
		}
	}
	first := map[string]int{} // the most urgent band in which something waits
	for _, l := range lanes {
		if band, known := first[l.queue]; l.NumPending > 0 && (!known || l.band < band) {
			first[l.queue] = l.band
		}
	}
	return func(l lane) bool { return l.NumPending > 0 && free[l.queue] && first[l.queue] == l.band }
}

// moved is when a lane last did what it is for, or had nothing to do. That the tasks in
// flight are renewed is no sign of it.
func (t *term) moved(l lane, wanted bool) *watched {
	w := &watched{delivered: l.Delivered.Consumer, acked: l.AckFloor.Consumer, since: t.e.cfg.Now()}
	before := t.lanes[l.Name]
	if before != nil && before.delivered == w.delivered && before.acked == w.acked && wanted {
		w.since, w.remade = before.since, before.remade
	}
	return w
}

// remake deletes a consumer and makes it anew, and tells the workers. All that it knew is
// in the records; what it had delivered is delivered again, and the worker that lost it is fenced.
func (t *term) remake(ctx context.Context, work jetstream.Stream, l lane) error {
	if err := work.DeleteConsumer(ctx, l.Name); err != nil {
		return fmt.Errorf("delete the consumer %s: %w", l.Name, err)
	}
	cfg := l.Config
	cfg.PauseUntil = nil
	if _, err := work.CreateOrUpdateConsumer(ctx, cfg); err != nil {
		return fmt.Errorf("make the consumer %s: %w", l.Name, err)
	}
	_ = t.e.conn.NATS().Publish(streams.WakeSubject(l.queue, l.band, l.number), nil) // workers look now and then, told or not
	return nil
}
