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
	queue, work       string        // where it waits: the queue, and the subject
	canceled          bool          // a client asks for it
	seq               uint64        // of its specification
	ends              uint64        // its end, if there is one, is not before this sequence
	next              time.Time     // when to look at it
	pause             time.Duration // until the look after the next, if all is well
	entry             uint64        // the last entry of its record when it was looked at
	since             time.Time     // since when that is the last
	ended             bool
}

// cursor goes through a stream once, a part at a time.
type cursor struct {
	js      jetstream.JetStream
	stream  string
	headers bool   // the bodies are not needed
	next    uint64 // the sequence to continue at
	// upTo is the time up to which all was read when it was read last, and more whether
	// there was more.
	upTo time.Time
	more bool
}

// The most that one request asks for, and how long a reader that was left is kept.
const (
	readBatch = 250
	readerTTL = 10 * time.Second
)

// errGap says that entries were lost on the way; they are read again.
var errGap = errors.New("entries came with a gap")

// read gives up to most entries to each, in order, until that says no to one, which is
// then the next. It remembers how far it came, also when it fails.
func (c *cursor) read(ctx context.Context, most int, each func(jetstream.Msg, *jetstream.MsgMetadata) bool) error {
	s, err := c.js.Stream(ctx, c.stream)
	if err != nil {
		return fmt.Errorf("look at the stream %s: %w", c.stream, err)
	}
	info := s.CachedInfo()
	if c.next > info.State.LastSeq+1 { // it is another one by now, such as a backup
		c.next = 1
	}
	c.more = c.next <= info.State.LastSeq
	if !c.more {
		c.upTo = info.TimeStamp
	}
	if !c.more || most <= 0 {
		return nil
	}
	reader, err := s.CreateConsumer(ctx, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, HeadersOnly: c.headers,
		InactiveThreshold: readerTTL, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(1, c.next)})
	if err != nil {
		return fmt.Errorf("read the stream %s: %w", c.stream, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.DeleteConsumer(ctx, reader.CachedInfo().Name) // else it goes by itself
	}()
	for read := 0; read < most && c.more; {
		got, err := c.batch(reader, min(readBatch, most-read), uint64(read), each)
		if err != nil || got == 0 {
			return err
		}
		read += got
	}
	if !c.more {
		c.upTo = info.TimeStamp
	}
	return nil
}

// batch reads once, after so many that the reader gave already, and says how many were
// taken.
func (c *cursor) batch(reader jetstream.Consumer, most int, after uint64, each func(jetstream.Msg, *jetstream.MsgMetadata) bool) (got int, err error) {
	batch, err := reader.FetchNoWait(most)
	if err != nil {
		return 0, fmt.Errorf("read the stream %s: %w", c.stream, err)
	}
	stopped := false
	for msg := range batch.Messages() { // all of them, also when no more are wanted
		meta, metaErr := msg.Metadata()
		switch {
		case stopped:
		case metaErr != nil:
			stopped, err = true, fmt.Errorf("read the stream %s: %w", c.stream, metaErr)
		case meta.Sequence.Consumer != after+uint64(got)+1:
			stopped, err = true, fmt.Errorf("read the stream %s: %w", c.stream, errGap)
		case !each(msg, meta):
			stopped, c.more = true, false
		default:
			c.next, c.upTo = meta.Sequence.Stream+1, meta.Timestamp
			c.more = meta.NumPending > 0
			got++
		}
	}
	if err == nil && batch.Error() != nil {
		err = fmt.Errorf("read the stream %s: %w", c.stream, batch.Error())
	}
	return got, err
}

// mark is what a leader notes down for the next.
type mark struct {
	Task uint64 `json:"task"` // all tasks before this sequence have ended
	Done uint64 `json:"done"` // all ends of other tasks are from this sequence on
}

// begin takes up what the leader before noted, the first time.
func (t *term) begin(ctx context.Context) error {
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
	err := t.tasks.read(ctx, min(readsPerRound, t.remember-len(t.open)), func(msg jetstream.Msg, meta *jetstream.MsgMetadata) bool {
		if id, ok := streams.ParseCancel(msg.Subject()); ok {
			canceled[id] = true
			return true
		}
		id, ok := lastToken(msg.Subject())
		switch {
		case !ok: // nothing of ours
		case msg.Subject() == streams.TaskSubject(id) && t.open[id] == nil:
			var spec dispatch.Task
			if err := json.Unmarshal(msg.Data(), &spec); err != nil || spec.ID != id {
				t.e.log.Warn("steward cannot read a task and leaves it alone", "task", id.String())
				break
			}
			t.open[id] = &item{id: id, investigation: spec.Investigation, queue: spec.Queue, work: workSubject(spec),
				seq: meta.Sequence.Stream, ends: t.ends.next, next: now.Add(2 * t.lease), since: now}
		}
		return true
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

// readEnds forgets tasks that have ended. It reads no further than the tasks were read:
// the end of a task that is not known yet would be passed over. Where the clocks of hubs
// differ, one is all the same, and is found when the task is looked at.
func (t *term) readEnds(ctx context.Context) error {
	full := len(t.open) >= t.remember // then room is what counts
	return t.ends.read(ctx, readsPerRound, func(msg jetstream.Msg, meta *jetstream.MsgMetadata) bool {
		if !full && meta.Timestamp.After(t.tasks.upTo) {
			return false
		}
		t.count(func(s *Stewardship) {
			s.Ended++
			if msg.Headers().Get(headerFlawed) != "" {
				s.Flawed++
			}
		})
		if id, ok := lastToken(msg.Subject()); ok {
			delete(t.open, id)
		}
		return true
	})
}

// lastToken is the task that a subject is about.
func lastToken(subject string) (marchwarden.TraceID, bool) {
	id, err := marchwarden.ParseTraceID(subject[strings.LastIndexByte(subject, '.')+1:])
	return id, err == nil
}
