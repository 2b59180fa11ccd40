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
)

// Presence is what a worker says of itself while it lives.
type Presence struct {
	Name    string `json:"name"`
	Host    string `json:"host,omitempty"`
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
		trying, cancel := context.WithTimeout(ctx, every)
		value, err := json.Marshal(say())
		if err == nil {
			err = e.conn.PutKey(trying, streams.BucketWorker, key, value)
		}
		cancel()
		pause := every
		if err != nil {
			pause = min(every, time.Second)
			if !failed && ctx.Err() == nil {
				e.log.Warn("could not announce this worker; it counts as gone until it can", "error", err)
			}
		}
		failed = err != nil
		if streams.Pause(ctx, pause) != nil {
			break
		}
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), every)
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
func (e *Engine) Workers(ctx context.Context) ([]Presence, error) {
	list, err := e.presences(ctx)
	slices.SortStableFunc(list, func(a, b Presence) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), a.Since.Compare(b.Since))
	})
	return list, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the bucket %s", streams.BucketWorker)
}

// presences are the entries of those that live.
func (e *Engine) presences(ctx context.Context) ([]Presence, error) {
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
	list := make([]Presence, len(subjects))
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
			list[i] = p
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(p Presence) bool { return p.key == "" }), nil
}

// left reports whether a worker whose entry is gone has said that it leaves. It can be told
// for a lease.
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
	list := make([]dispatch.Member, 0, len(known))
	for _, name := range slices.Sorted(maps.Keys(known)) {
		list = append(list, known[name])
	}
	return list, nil
}
