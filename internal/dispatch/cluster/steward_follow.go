package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
)

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
