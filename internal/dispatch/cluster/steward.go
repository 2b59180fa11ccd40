package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
)

// The work of one round, so that it stays small whatever there is.
const (
	defaultRemember = 100_000
	checksPerRound  = 1_000 // tasks
	checksAtOnce    = 8
)

// smooth is over how many rounds, about, a rate is averaged.
const smooth = 8

// Steward maintains a cluster: it queues tasks again whose place in the queue was lost,
// ends those that were canceled while they waited, and copies ends that their worker had no
// time to copy. Every hub runs one, and one of them at a time leads. It is safe for concurrent
// use.
//
// Whatever it does may be done twice, or by two at once: what can be written once only is
// written once, and what belongs to a record is fenced. So a leader that does not know yet
// that it is deposed does no harm.
type Steward struct {
	e     *Engine
	name  string // what others see of who leads
	lease time.Duration
	// remember is how many tasks that have not ended are kept in mind, the oldest first.
	// Later ones wait until there is room.
	remember int

	mu    sync.Mutex // guards what follows
	stats Stewardship
}

// NewSteward makes a steward of the cluster that e has joined with the rights of a hub. It
// does nothing before Run, and does not close e.
func NewSteward(e *Engine, name string) *Steward {
	return &Steward{e: e, name: name, lease: e.facts.Lease, remember: defaultRemember}
}

// Stats is what this steward did since it was made. Leading says whether it leads now.
func (s *Steward) Stats() Stewardship {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// count changes the measures.
func (s *Steward) count(change func(*Stewardship)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.stats)
}

// Run leads while its hub leads the stream of tasks, which one hub does at a time, and
// returns when ctx ends. What fails is counted, logged and tried again.
func (s *Steward) Run(ctx context.Context) {
	wake := make(chan struct{}, 1)
	sub, err := s.e.conn.NATS().Subscribe(streams.AnyStop, func(*nats.Msg) {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	if err != nil {
		s.e.log.Warn("the engine of the steward is closed", "error", err)
		return
	}
	defer func() { _ = sub.Unsubscribe() }() // fails if the connection is closed, which ends it too
	var t *term
	for {
		pause := s.lease / 4
		switch leads := s.leads(ctx); {
		case leads && t == nil:
			t = s.begin()
		case !leads && t != nil:
			s.end("another hub leads")
			t = nil
		}
		if t != nil {
			pause = t.turn(ctx)
		}
		select {
		case <-time.After(pause):
		case <-wake: // something is to be canceled
		case <-ctx.Done():
			if t != nil {
				s.end("its hub ends")
				s.e.unsay(ctx, min(s.lease, 2*time.Second), stewardKey) // so that the next need not be waited for
			}
			return
		}
	}
}

// leads reports whether the hub of this steward leads the stream of tasks. If that cannot be
// known for a lease, it does not.
func (s *Steward) leads(ctx context.Context) (leads bool) {
	ctx, cancel := context.WithTimeout(ctx, s.lease)
	defer cancel()
	err := s.e.conn.Insist(ctx, "look who leads", func(ctx context.Context) error {
		stream, err := s.e.conn.JetStream().Stream(ctx, streams.StreamTask)
		if err == nil {
			group := stream.CachedInfo().Cluster // nil of a hub that is alone
			leads = group == nil || group.Leader == s.e.conn.NATS().ConnectedServerName()
		}
		return err
	})
	return leads && err == nil
}

// begin begins a term.
func (s *Steward) begin() *term {
	now, js := s.e.cfg.Now(), s.e.conn.JetStream()
	s.count(func(t *Stewardship) {
		t.Name, t.Leading = s.name, true
		t.Terms++
	})
	s.e.log.Info("steward leads", "name", s.name)
	return &term{Steward: s, start: now, served: map[string]time.Time{}, open: map[marchwarden.TraceID]*item{},
		tasks: cursor{js: js, stream: streams.StreamTask}, ends: cursor{js: js, stream: streams.StreamDone, headers: true}}
}

// end ends a term.
func (s *Steward) end(why string) {
	s.count(func(t *Stewardship) {
		t.Leading, t.Open, t.PerMinute, t.Silent = false, 0, 0, nil
	})
	s.e.log.Info("steward does not lead any more", "name", s.name, "why", why)
}

// term is what a leader has in mind. A new leader begins with what its predecessor
// noted down: before which task all have ended.
type term struct {
	*Steward
	tasks  cursor
	ends   cursor
	open   map[marchwarden.TraceID]*item
	noted  mark                 // what is written down
	served map[string]time.Time // when workers of a queue were last seen
	living []Presence           // workers, as of this round
	silent []Presence           // those that are missed
	start  time.Time            // of the term
	ended  uint64               // ends that were heard of before this round
	began  time.Time            // when the round before began
}

// turn does everything once, says so, and returns when to do it again. What fails is made up for by
// the next turn.
func (t *term) turn(ctx context.Context) (pause time.Duration) {
	err := t.round(ctx)
	if ctx.Err() != nil {
		return 0
	}
	t.count(func(st *Stewardship) {
		st.Rounds++
		if err != nil {
			st.Failures++
		}
	})
	if err != nil {
		t.e.log.Warn("steward could not finish a round", "error", err)
	}
	if err := t.e.say(ctx, t.lease/2, stewardKey, t.Stats()); err != nil && ctx.Err() == nil {
		t.e.log.Warn("steward cannot say that it leads", "error", err)
	}
	if err == nil && (t.tasks.more && len(t.open) < t.remember || t.ends.more) {
		return t.lease / 96 // there is more to read
	}
	return t.lease / 3
}

// round does everything once.
func (t *term) round(ctx context.Context) error {
	if err := t.resume(ctx); err != nil {
		return err
	}
	err := t.roll(ctx)
	// One that fails keeps none of the others from being done.
	err = errors.Join(
		wrap("list workers", err),
		wrap("read new tasks", t.readTasks(ctx)),
		wrap("read new ends", t.readEnds(ctx)),
		wrap("check tasks", t.checkDue(ctx)),
		wrap("note the low mark", t.note(ctx)))
	t.measure()
	return err
}

// roll looks who is there. If that cannot be known, all are taken to be where they were.
func (t *term) roll(ctx context.Context) error {
	workers, err := t.e.Workers(ctx)
	now := t.e.cfg.Now()
	if err != nil {
		for queue := range t.served {
			t.served[queue] = now
		}
		return err
	}
	for _, w := range workers {
		for queue := range w.Queues {
			t.served[queue] = now
		}
	}
	maps.DeleteFunc(t.served, func(_ string, last time.Time) bool { return now.Sub(last) > 8*t.lease })
	return t.miss(ctx, workers)
}

// The most workers that are listed as silent, and for how long.
const (
	maxSilent = 50
	silentFor = time.Hour
)

// miss lists the workers that were there in the round before and are not heard of, until they are, or
// a later one of their name is. One that said that it leaves is not missed.
func (t *term) miss(ctx context.Context, living []Presence) error {
	var silent []Presence
	var errs []error
	for i, w := range slices.Concat(t.silent, t.living) {
		if t.e.cfg.Now().Sub(w.Heard) > silentFor || slices.ContainsFunc(living, func(l Presence) bool {
			return l.key == w.key || l.Name == w.Name && l.Since.After(w.Since)
		}) {
			continue
		}
		if i >= len(t.silent) { // since this round
			left, err := t.e.left(ctx, w)
			if errs = append(errs, err); left || err != nil {
				continue
			}
		}
		silent = append(silent, Presence{Name: w.Name, Version: w.Version, Since: w.Since, Heard: w.Heard, key: w.key})
	}
	t.living, t.silent = living, silent[max(0, len(silent)-maxSilent):]
	t.count(func(s *Stewardship) { s.Silent = slices.Clone(t.silent) })
	return errors.Join(errs...)
}

// left reports whether a worker whose entry is gone has said that it leaves. It can be told for a lease.
func (e *Engine) left(ctx context.Context, p Presence) (bool, error) {
	stream, err := e.conn.JetStream().Stream(ctx, "KV_"+streams.BucketWorker)
	if err != nil {
		return false, err
	}
	_, err = stream.GetLastMsgForSubject(ctx, "$KV."+streams.BucketWorker+"."+p.key)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil, err
}

// measure says what there is to see.
func (t *term) measure() {
	now := t.e.cfg.Now()
	t.count(func(s *Stewardship) {
		s.Open = len(t.open)
		if took := now.Sub(t.began); !t.began.IsZero() && took > 0 { // the first round reads what is old
			s.PerMinute += (float64(s.Ended-t.ended)/took.Minutes() - s.PerMinute) / smooth
		}
		t.ended, t.began = s.Ended, now
	})
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
