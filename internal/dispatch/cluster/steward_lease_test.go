package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
)

func bucket(t *testing.T, ttl time.Duration) jetstream.KeyValue {
	t.Helper()
	h, err := hub.Start(hub.Config{Store: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	nc, err := nats.Connect("", nats.InProcessServer(h))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "B", TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

func none() Stewardship { return Stewardship{} }

func TestLease(t *testing.T) {
	t.Parallel()
	const ttl = 400 * time.Millisecond
	kv := bucket(t, ttl)
	a := &lease{kv: kv, ttl: ttl, holder: "a", now: time.Now}
	b := &lease{kv: kv, ttl: ttl, holder: "b", now: time.Now}
	if err := a.acquire(t.Context(), none); err != nil {
		t.Fatal(err)
	}
	if _, err := b.create(t.Context(), none()); !errors.Is(err, jetstream.ErrKeyExists) {
		t.Errorf("the lease of another was taken: %v", err)
	}

	// An answer that was lost: the entry is newer than known, and still a's.
	value, err := a.encode(none())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), StewardKey, value); err != nil {
		t.Fatal(err)
	}
	if err := a.renew(t.Context(), none()); err != nil {
		t.Errorf("a renewal whose answer was lost deposes: %v", err)
	}

	// A leader that is kept lives longer than its lease, and learns of its end.
	kept, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- a.keep(kept, none) }()
	time.Sleep(2 * ttl)
	if _, err := b.create(t.Context(), none()); !errors.Is(err, jetstream.ErrKeyExists) {
		t.Errorf("a lease that is renewed was taken: %v", err)
	}
	usurped, err := json.Marshal(tenure{Holder: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), StewardKey, usurped); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, errDeposed) {
			t.Errorf("deposed by %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("a does not learn that b leads")
	}
	a.release(t.Context())
	if entry, err := kv.Get(t.Context(), StewardKey); err != nil || entry.Revision() == a.revision {
		t.Errorf("a gave up what is b's: %v", err)
	}
}

// One that cannot be renewed for a lease is lost, whatever the server says.
func TestLeaseEndsByTheClock(t *testing.T) {
	t.Parallel()
	kv := bucket(t, time.Minute)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := &lease{kv: kv, ttl: 40 * time.Millisecond, holder: "a", now: func() time.Time { return at }}
	if err := l.acquire(t.Context(), none); err != nil {
		t.Fatal(err)
	}
	at = at.Add(l.ttl)
	if err := l.keep(t.Context(), none); !errors.Is(err, errDeposed) {
		t.Errorf("kept: %v", err)
	}
}
