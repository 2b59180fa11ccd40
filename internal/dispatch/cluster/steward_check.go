package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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

// item is a task that has not ended as far as the steward knows.
type item struct {
	id, investigation marchwarden.TraceID
	queue, work       string    // where it waits: the queue, and the subject
	canceled          bool      // a client asks for it
	seq               uint64    // of its specification
	ends              uint64    // its end, if there is one, is not before this sequence
	next              time.Time // when to look at it
	entry             uint64    // the last entry of its record when it was looked at
	since             time.Time // since when that is the last
	ended             bool
}

// cursor goes through a stream once, a part at a time.
type cursor struct {
	js      jetstream.JetStream
	stream  string
	headers bool   // the bodies are not needed
	next    uint64 // the sequence to continue at
	more    bool   // there was more when it was read last
}

// The most that one read gives, and how long a reader that was left is kept.
const (
	readBatch = 1000
	readerTTL = 10 * time.Second
)

// read gives the next entries to each, in order, up to most. It remembers how far it came, also
// when it fails.
func (c *cursor) read(ctx context.Context, most int, each func(jetstream.Msg, *jetstream.MsgMetadata)) error {
	s, err := c.js.Stream(ctx, c.stream)
	if err != nil {
		return err
	}
	last := s.CachedInfo().State.LastSeq
	if c.next > last+1 { // it is another one by now, such as a backup
		c.next = 1
	}
	c.more = c.next <= last
	if !c.more || most <= 0 {
		return nil
	}
	reader, err := s.CreateConsumer(ctx, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, HeadersOnly: c.headers,
		InactiveThreshold: readerTTL, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(1, c.next)})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.DeleteConsumer(ctx, reader.CachedInfo().Name) // else it goes by itself
	}()
	batch, err := reader.FetchNoWait(min(most, readBatch))
	if err != nil {
		return err
	}
	read := uint64(0)
	for msg := range batch.Messages() {
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		if read++; meta.Sequence.Consumer != read {
			return errGap
		}
		each(msg, meta)
		c.next, c.more = meta.Sequence.Stream+1, meta.NumPending > 0
	}
	return batch.Error()
}

// errGap says that entries were lost on the way; they are read again.
var errGap = errors.New("entries came with a gap")

// mark is what a leader notes down for the next.
type mark struct {
	Task uint64 `json:"task"` // all tasks before this sequence have ended
	Done uint64 `json:"done"` // all ends of other tasks are from this sequence on
}

// resume takes up what the leader before noted, the first time.
func (t *term) resume(ctx context.Context) error {
	if t.tasks.next > 0 {
		return nil
	}
	value, found, err := t.e.conn.Key(ctx, streams.BucketFacts, stewardKey)
	if err != nil {
		return fmt.Errorf("read the low mark: %w", err)
	}
	if !found || json.Unmarshal(value, &t.noted) != nil {
		t.noted = mark{} // it saves reading, no more
	}
	t.tasks.next, t.ends.next = max(1, t.noted.Task), max(1, t.noted.Done)
	return nil
}

// noteEvery is after how many rounds the low mark is written down, if it has changed.
const noteEvery = 8

// note writes down before which task all have ended.
func (t *term) note(ctx context.Context) error {
	if t.Stats().Rounds%noteEvery != 0 {
		return nil
	}
	low := mark{t.tasks.next, t.ends.next}
	for _, it := range t.open {
		low = mark{min(low.Task, it.seq), min(low.Done, it.ends)}
	}
	if low == t.noted {
		return nil
	}
	value, err := json.Marshal(low)
	if err == nil {
		err = t.e.conn.PutKey(ctx, streams.BucketFacts, stewardKey, value)
	}
	if err == nil {
		t.noted = low
	}
	return err
}

// readTasks takes note of tasks that were submitted and of those that were canceled.
func (t *term) readTasks(ctx context.Context) error {
	now, canceled := t.e.cfg.Now(), map[marchwarden.TraceID]bool{}
	err := t.tasks.read(ctx, t.remember-len(t.open), func(msg jetstream.Msg, meta *jetstream.MsgMetadata) {
		if id, ok := streams.ParseCancel(msg.Subject()); ok {
			canceled[id] = true
			return
		}
		id, ok := lastToken(msg.Subject())
		if !ok || msg.Subject() != streams.TaskSubject(id) || t.open[id] != nil {
			return // nothing of ours, or known
		}
		var spec dispatch.Task
		if err := json.Unmarshal(msg.Data(), &spec); err != nil || spec.ID != id {
			t.e.log.Warn("steward cannot read a task and leaves it alone", "task", id.String())
			return
		}
		t.open[id] = &item{id: id, investigation: spec.Investigation, queue: spec.Queue, work: workSubject(spec),
			seq: meta.Sequence.Stream, ends: t.ends.next, next: now.Add(2 * t.lease), since: now}
	})
	if len(canceled) > 0 { // whatever was submitted before
		for _, it := range t.open {
			if canceled[it.id] || canceled[it.investigation] {
				it.canceled, it.next = true, now
			}
		}
	}
	return err
}

// readEnds forgets tasks that have ended. It waits for the tasks to be read: the end of one that is
// not known yet is passed over, and found when the task is looked at.
func (t *term) readEnds(ctx context.Context) error {
	if t.tasks.more && len(t.open) < t.remember {
		return nil
	}
	return t.ends.read(ctx, readBatch, func(msg jetstream.Msg, _ *jetstream.MsgMetadata) {
		t.count(func(s *Stewardship) {
			s.Ended++
			if msg.Headers().Get(headerFlawed) != "" {
				s.Flawed++
			}
		})
		if id, ok := lastToken(msg.Subject()); ok {
			delete(t.open, id)
		}
	})
}

// lastToken is the task that a subject is about.
func lastToken(subject string) (marchwarden.TraceID, bool) {
	id, err := marchwarden.ParseTraceID(subject[strings.LastIndexByte(subject, '.')+1:])
	return id, err == nil
}
