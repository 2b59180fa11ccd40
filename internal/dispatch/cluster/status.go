package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

// Status is a cluster as it is now. Making it costs a few requests and one for each
// worker, however many tasks there are.
type Status struct {
	Hubs    []Hub      `json:"hubs"`
	Workers []Presence `json:"workers"` // those that live, by name
	Queues  []Queue    `json:"queues"`
	// Unserved is how many tasks wait in queues that no worker ever served.
	Unserved int `json:"unserved,omitempty"`
	// Steward is the leader that looks after the cluster; nil if there is none at the moment.
	Steward *Stewardship `json:"steward,omitempty"`
}

// Hub is a server of the cluster, as the streams that it keeps tell of it.
type Hub struct {
	Name    string `json:"name"`
	Offline bool   `json:"offline,omitempty"`
	// Behind is how many streams it has not all of yet.
	Behind int `json:"behind,omitempty"`
}

// Queue is what waits for one kind of worker.
type Queue struct {
	Name     string `json:"name"`
	Waiting  int    `json:"waiting"`
	InFlight int    `json:"in_flight"`
	// Workers serve it, with so many slots of which so many are in use.
	Workers int `json:"workers"`
	Slots   int `json:"slots"`
	Busy    int `json:"busy"`
}

// Stewardship is what a steward says of itself.
type Stewardship struct {
	Name      string  `json:"name"`
	Leading   bool    `json:"leading"`
	Open      int     `json:"open"` // tasks that have not ended
	PerMinute float64 `json:"ended_per_minute"`
	// Silent are workers that were there, are not heard of and did not say that they leave: frozen, cut
	// off or killed.
	Silent []Presence `json:"silent,omitempty"`
	// What it did since its process began.
	Terms    uint64 `json:"terms"` // times that it became the leader
	Rounds   uint64 `json:"rounds"`
	Failures uint64 `json:"failures"` // rounds that could not be finished
	Ended    uint64 `json:"ended"`    // ends that it heard of
	Flawed   uint64 `json:"flawed"`   // investigations among them that failed or whose results carry warnings
	Requeued uint64 `json:"requeued"`
	Settled  uint64 `json:"settled"` // canceled tasks that it ended
	Copied   uint64 `json:"copied"`  // ends that it copied
}

// Status says how the cluster is. CodeUnavailable if it cannot be asked.
func (e *Engine) Status(ctx context.Context) (s Status, err error) {
	if s.Workers, err = e.Workers(ctx); err != nil {
		return s, err
	}
	if s.Hubs, err = e.hubs(ctx); err != nil {
		return s, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "look at the streams")
	}
	if s.Queues, s.Unserved, err = e.queues(ctx, s.Workers); err != nil {
		return s, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "look at the queues")
	}
	s.Steward, err = e.steward(ctx)
	return s, err
}

// steward is the leading steward, nil if there is none.
func (e *Engine) steward(ctx context.Context) (*Stewardship, error) {
	kv, err := e.conn.JetStream().KeyValue(ctx, streams.BucketWorker)
	var entry jetstream.KeyValueEntry
	if err == nil {
		entry, err = kv.Get(ctx, stewardKey)
	}
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "look who is steward")
	}
	var s Stewardship
	err = json.Unmarshal(entry.Value(), &s)
	return &s, marchwarden.Wrap(err, marchwarden.CodeMalformed, "read the steward's entry")
}

// hubs looks at the streams, and by them at the hubs.
func (e *Engine) hubs(ctx context.Context) (list []Hub, err error) {
	known := map[string]*Hub{}
	hub := func(name string) *Hub {
		if known[name] == nil {
			known[name] = &Hub{Name: name}
		}
		return known[name]
	}
	for _, name := range []string{streams.StreamTask, streams.StreamWork, streams.StreamLog, streams.StreamDone} {
		stream, err := e.conn.JetStream().Stream(ctx, name)
		if err != nil {
			return nil, err
		}
		group := stream.CachedInfo().Cluster
		if group == nil { // a hub that is alone
			group = &jetstream.ClusterInfo{Leader: e.conn.NATS().ConnectedServerName()}
		}
		if group.Leader != "" {
			hub(group.Leader)
		}
		for _, peer := range group.Replicas {
			h := hub(peer.Name)
			h.Offline = h.Offline || peer.Offline
			if !peer.Current {
				h.Behind++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		list = append(list, *known[name])
	}
	return list, nil
}

// queues looks at the consumers, and by them at the queues. unserved is how much waits where there
// is none.
func (e *Engine) queues(ctx context.Context, workers []Presence) (list []Queue, unserved int, err error) {
	known := map[string]*Queue{}
	queue := func(name string) *Queue {
		if known[name] == nil {
			known[name] = &Queue{Name: name}
		}
		return known[name]
	}
	for _, w := range workers {
		for name, load := range w.Queues {
			q := queue(name)
			q.Workers++
			q.Slots += load.Slots
			q.Busy += load.Busy
		}
	}
	work, err := e.conn.JetStream().Stream(ctx, streams.StreamWork)
	if err != nil {
		return nil, 0, err
	}
	unserved = int(work.CachedInfo().State.Msgs)
	lanes := work.ListConsumers(ctx)
	for lane := range lanes.Info() {
		name, _, _, ok := streams.ParseLane(lane.Config.FilterSubject)
		if !ok {
			continue
		}
		q := queue(name)
		q.Waiting += int(lane.NumPending)
		q.InFlight += lane.NumAckPending
		unserved -= int(lane.NumPending) + lane.NumAckPending
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		list = append(list, *known[name])
	}
	return list, max(0, unserved), lanes.Err() // the two were not looked at in the same moment
}

// Presence is what a worker says of itself while it lives.
type Presence struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Members are the researchers that it works for, each on the queue of its name.
	Members []dispatch.Member `json:"members,omitempty"`
	Queues  map[string]Load   `json:"queues,omitempty"`
	Since   time.Time         `json:"since,omitzero"`
	// Draining says that it takes no more and ends what it has.
	Draining bool `json:"draining,omitempty"`
	// Heard is when it last said so, by the clock of a hub. It is known to those who read it.
	Heard time.Time `json:"heard,omitzero"`

	key string // of its entry
}

// Load is how much of a queue a worker takes at once, and has now.
type Load struct {
	Slots int `json:"slots"`
	Busy  int `json:"busy"`
}

// The keys of the bucket of workers.
const (
	// stewardKey is the entry of the hub that leads, and, in the bucket of facts, what
	// it notes down for the next.
	stewardKey = "steward"
	workerKeys = "worker."
)

// Announce says that a worker is there until ctx ends, and then that it is gone. say is asked every
// third of a lease. A cluster that cannot be reached for a while is no error: a worker that is not
// heard for a lease counts as gone until it is heard again.
func (e *Engine) Announce(ctx context.Context, say func() Presence) {
	key := workerKeys + rand.Text() // names may be given twice
	every := e.facts.Lease / 3
	for failed := false; ; {
		pause := every
		err := e.say(ctx, every, key, say())
		if err != nil {
			pause = min(every, time.Second)
			if !failed && ctx.Err() == nil {
				e.log.Warn("could not announce this worker; it counts as gone until it can", "error", err)
			}
		}
		failed = err != nil
		if httpapi.Sleep(ctx, pause) != nil {
			break
		}
	}
	e.unsay(ctx, every, key)
}

// say sets a key of the bucket of workers, which forgets it after a lease.
func (e *Engine) say(ctx context.Context, within time.Duration, key string, what any) error {
	value, err := json.Marshal(what)
	if err != nil {
		return err
	}
	trying, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return e.conn.PutKey(trying, streams.BucketWorker, key, value)
}

// unsay takes the key back when ctx has ended.
func (e *Engine) unsay(ctx context.Context, within time.Duration, key string) {
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if kv, err := e.conn.JetStream().KeyValue(leaving, streams.BucketWorker); err == nil {
		_ = kv.Purge(leaving, key) // else it goes by itself
	}
}

// Ready says what keeps this process from reaching the cluster just now, nil nothing.
func (e *Engine) Ready() error {
	if !e.conn.NATS().IsConnected() {
		return marchwarden.Errorf(marchwarden.CodeUnavailable, "there is no connection to a hub")
	}
	return nil
}

// readersAtOnce bounds how many entries are read at once.
const readersAtOnce = 16

// Workers are those that live, by name and age. Asking makes no consumer, so a client with
// read access may ask, and often.
func (e *Engine) Workers(ctx context.Context) (living []Presence, err error) {
	defer func() {
		err = marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the bucket %s", streams.BucketWorker)
	}()
	kv, err := e.conn.JetStream().KeyValue(ctx, streams.BucketWorker)
	if err != nil {
		return nil, err
	}
	stream, err := e.conn.JetStream().Stream(ctx, "KV_"+streams.BucketWorker)
	if err != nil {
		return nil, err
	}
	const prefix = "$KV." + streams.BucketWorker + "."
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+workerKeys+">"))
	if err != nil {
		return nil, err
	}
	subjects := slices.Sorted(maps.Keys(info.State.Subjects))
	list := make([]*Presence, len(subjects))
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(readersAtOnce)
	for i, subject := range subjects {
		group.Go(func() error {
			key := strings.TrimPrefix(subject, prefix)
			entry, err := kv.Get(reading, key)
			if errors.Is(err, jetstream.ErrKeyNotFound) {
				return nil // gone by now, marked as gone, or not on the replica that was asked yet
			}
			if err != nil {
				return fmt.Errorf("read %s: %w", key, err)
			}
			var p Presence
			if err := json.Unmarshal(entry.Value(), &p); err != nil {
				e.log.Warn("the entry of a worker cannot be read", "key", key, "error", err) // the others are there all the same
				return nil
			}
			p.key, p.Heard = key, entry.Created()
			list[i] = &p
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, p := range list {
		if p != nil {
			living = append(living, *p)
		}
	}
	slices.SortStableFunc(living, func(a, b Presence) int { return cmp.Or(strings.Compare(a.Name, b.Name), a.Since.Compare(b.Since)) })
	return living, nil
}

// Members are the researchers that live workers work for, by name. Where workers differ
// in what they say of one, the latest worker's word counts.
func (e *Engine) Members(ctx context.Context) ([]dispatch.Member, error) {
	workers, err := e.Workers(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(workers, func(a, b Presence) int { return a.Since.Compare(b.Since) })
	known := map[string]dispatch.Member{}
	for _, w := range workers {
		for _, m := range w.Members {
			known[m.Name] = m
		}
	}
	return slices.SortedFunc(maps.Values(known), func(a, b dispatch.Member) int { return strings.Compare(a.Name, b.Name) }), nil
}
