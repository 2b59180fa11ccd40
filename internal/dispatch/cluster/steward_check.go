package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
)

// checkDue looks at the tasks whose turn it is, up to so many a round.
func (t *term) checkDue(ctx context.Context) error {
	now := t.e.cfg.Now()
	var due []*item
	for _, it := range t.open {
		if !it.next.After(now) {
			due = append(due, it)
		}
	}
	slices.SortFunc(due, func(a, b *item) int { return cmp.Or(a.next.Compare(b.next), cmp.Compare(a.seq, b.seq)) })
	var group errgroup.Group
	group.SetLimit(checksAtOnce)
	for _, it := range due[:min(len(due), checksPerRound)] {
		group.Go(func() (err error) {
			it.next = now.Add(t.lease / 2)
			it.ended, err = t.check(ctx, it)
			return err
		})
	}
	err := group.Wait() // one stands for all: they have the same cause as a rule
	maps.DeleteFunc(t.open, func(_ marchwarden.TraceID, it *item) bool { return it.ended })
	return err
}

// attended says whether workers serve a queue, or did until a moment ago: one who is not
// seen once may have been read of from a replica that is behind.
func (t *term) attended(queue string) bool {
	last, known := t.served[queue]
	if !known {
		last = t.start
	}
	return t.e.cfg.Now().Sub(last) < 2*t.lease
}

// sight is a task as the streams have it.
type sight struct {
	spec   dispatch.Task
	over   bool // it has ended, or there is none
	queued bool // it waits in the queue, or a worker has taken it from there
	tail   tail
}

// see reads how a task is. The order counts: a worker leaves the queue last, so a task
// that was not queued and had not ended when that was read later was lost on the way.
func (t *term) see(ctx context.Context, id marchwarden.TraceID) (sight, error) {
	var s sight
	var err error
	s.spec, err = t.e.spec(ctx, id)
	if code := marchwarden.CodeOf(err); code == marchwarden.CodeNotFound || code == marchwarden.CodeCorrupt {
		return sight{over: true}, nil // so old that it is not kept any more, or nothing that a worker could do
	}
	if err != nil {
		return s, err
	}
	if _, s.queued, err = t.e.conn.Last(ctx, workSubject(s.spec)); err != nil {
		return s, fmt.Errorf("look for %s in its queue: %w", id, err)
	}
	if _, s.over, err = t.e.conn.Last(ctx, streams.DoneSubject(id)); err != nil {
		return s, fmt.Errorf("look for the end of %s: %w", id, err)
	}
	if !s.over {
		s.tail, err = t.e.tail(ctx, s.spec)
	}
	return s, err
}

// check looks at one task and puts it right. It says whether the task has ended.
func (t *term) check(ctx context.Context, it *item) (bool, error) {
	if !it.canceled && t.attended(it.queue) {
		_, queued, err := t.e.conn.Last(ctx, it.work)
		if err != nil {
			return false, fmt.Errorf("look for %s in its queue: %w", it.id, err)
		}
		if queued { // the workers continue it
			t.rest(it)
			return false, nil
		}
	}
	s, err := t.see(ctx, it.id)
	if err != nil || s.over {
		return err == nil, err
	}
	now := t.e.cfg.Now()
	if s.tail.seq != it.entry {
		it.entry, it.since = s.tail.seq, now
	}
	own := s.tail.task == it.id
	if own && s.tail.end != nil {
		if err := t.e.copyEnd(ctx, s.spec, *s.tail.end); err != nil {
			return false, err
		}
		t.did("copied the end of a task", it.id, func(st *Stewardship) { st.Copied++ })
		return true, t.drop(ctx, s)
	}
	var wish *wish
	if it.canceled {
		if wish, err = t.e.canceled(ctx, s.spec); err != nil {
			return false, err
		}
		it.canceled = wish != nil
	}
	quiet := now.Sub(it.since) >= 2*t.lease
	deserted := own && quiet && !t.attended(it.queue)
	switch {
	case wish != nil && (s.tail.idle() || deserted):
		return t.settle(ctx, s, dispatch.CanceledEnd(wish.Reason))
	case !s.queued && quiet:
		if err := t.e.requeue(ctx, s.spec); err != nil {
			return false, err
		}
		it.since = now // so that it has as long again
		t.did("queued a task again", it.id, func(st *Stewardship) { st.Requeued++ })
	case s.queued && wish == nil:
		t.rest(it)
	}
	return false, nil
}

// rest leaves a task alone for a while that all is well with.
func (t *term) rest(it *item) { it.next = t.e.cfg.Now().Add(4 * t.lease) }

// settle ends a canceled task that no worker has. If a worker begins it in this moment, that worker
// ends it.
func (t *term) settle(ctx context.Context, s sight, end dispatch.End) (bool, error) {
	err := t.e.settle(ctx, s.spec, end, s.tail.seq)
	if errors.Is(err, dispatch.ErrReleased) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("end the canceled task %s: %w", s.spec.ID, err)
	}
	t.did("ended a canceled task", s.spec.ID, func(st *Stewardship) { st.Settled++ })
	return true, t.drop(ctx, s)
}

// drop takes a task that has ended from its queue, where it would wait for a worker to find that
// out.
func (t *term) drop(ctx context.Context, s sight) error {
	if !s.queued {
		return nil
	}
	work, err := t.e.conn.JetStream().Stream(ctx, streams.StreamWork)
	if err == nil {
		err = work.Purge(ctx, jetstream.WithPurgeSubject(workSubject(s.spec)))
	}
	return wrap("take an ended task from its queue", err)
}

// did counts and logs what was done.
func (t *term) did(what string, id marchwarden.TraceID, change func(*Stewardship)) {
	t.count(change)
	t.e.log.Info("steward "+what, "task", id.String())
}
