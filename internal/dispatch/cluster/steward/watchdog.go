package steward

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/jet"
)

// watched is a consumer as it was when it last moved.
type watched struct {
	delivered, acked uint64
	since            time.Time
}

// watch looks at every consumer of the work, and makes those anew that deliver nothing
// although there is something to deliver and somebody who waits for it.
func (t *term) watch(ctx context.Context) error {
	work := t.streams[jet.StreamWork]
	free := t.free()
	seen := map[string]*watched{}
	list := work.ListConsumers(ctx)
	for info := range list.Info() {
		w := t.moved(info, free)
		patience := 2 * t.lease
		if info.NumAckPending > 0 {
			patience *= 2 // those who work on these would lose them
		}
		if t.cfg.Now().Sub(w.since) < patience {
			seen[info.Name] = w
			continue
		}
		if err := t.remake(ctx, work, info); err != nil {
			return err
		}
		t.count(func(s *cluster.Stewardship) { s.Remade++ })
		t.cfg.Log.Warn("steward made a stuck consumer anew", "consumer", info.Name, "pending", info.NumPending, "in_flight", info.NumAckPending)
	}
	t.queues = seen
	return wrap("list consumers", list.Err())
}

// free is the queues for which somebody has a slot that is not in use.
func (t *term) free() map[string]bool {
	free := map[string]bool{}
	for _, w := range t.workers {
		for queue, load := range w.Queues {
			if load.Busy < load.Slots && !w.Draining {
				free[queue] = true
			}
		}
	}
	return free
}

// moved is when a consumer last did what it is for, or had nothing to do.
func (t *term) moved(info *jetstream.ConsumerInfo, free map[string]bool) *watched {
	w := &watched{delivered: info.Delivered.Consumer, acked: info.AckFloor.Consumer, since: t.cfg.Now()}
	before := t.queues[info.Name]
	full := info.Config.MaxAckPending > 0 && info.NumAckPending >= info.Config.MaxAckPending
	queue, _, _, _ := cluster.Lane(info.Config)
	wanted := info.NumWaiting > 0 || free[queue]
	if before != nil && before.delivered == w.delivered && before.acked == w.acked && info.NumPending > 0 && wanted && !full {
		w.since = before.since
	}
	return w
}

// remake deletes a consumer and makes it anew, and tells the workers. All that it knew is
// in the records; what it had delivered is delivered again, and whoever lost it is fenced.
func (t *term) remake(ctx context.Context, work jetstream.Stream, info *jetstream.ConsumerInfo) error {
	if err := work.DeleteConsumer(ctx, info.Name); err != nil {
		return fmt.Errorf("delete the consumer %s: %w", info.Name, err)
	}
	cfg := info.Config
	cfg.PauseUntil = nil
	if _, err := work.CreateOrUpdateConsumer(ctx, cfg); err != nil {
		return fmt.Errorf("make the consumer %s: %w", info.Name, err)
	}
	lane := strings.TrimSuffix(strings.TrimPrefix(cfg.FilterSubject, "mw.work."), "*")
	_ = t.conn.NATS().Publish("mw.wake."+lane+"again", nil) // workers look now and then, told or not
	return nil
}
