package cluster_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
)

// Each role may do its part and no more: the hub keeps order, the worker says that it is
// there, the client looks.
func TestRoles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	seeds := map[hub.Role][]byte{}
	for _, role := range []hub.Role{hub.RoleWorker, hub.RoleClient} {
		seed, err := hub.KeysFile(path).Add(time.Now(), string(role), role)
		if err != nil {
			t.Fatal(err)
		}
		seeds[role] = seed
	}
	h, err := hub.Start(hub.Config{Store: t.TempDir(), Listen: "127.0.0.1:0", Keys: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	own := cluster.Config{InProcess: h, Seed: h.Seed, Name: "hub", Now: time.Now}
	if err := cluster.Prepare(t.Context(), own, cluster.Facts{Lease: shortLease, Limits: []string{"anthropic requests 50/s"}}); err != nil {
		t.Fatal(err)
	}
	open := func(cfg cluster.Config) *cluster.Engine {
		t.Helper()
		e, err := cluster.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
	as := func(role hub.Role) *cluster.Engine {
		t.Helper()
		return open(cluster.Config{URL: h.Address(), Seed: func() ([]byte, error) { return append([]byte(nil), seeds[role]...), nil }, Name: string(role), Now: time.Now})
	}
	w := &hubWorld{T: t, hub: h, e: as(hub.RoleClient)}
	s, _ := w.keep(open(own), "hub", 0)
	worker := as(hub.RoleWorker)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 2)
	go func() {
		worker.Announce(ctx, func() cluster.Presence {
			return cluster.Presence{Name: "worker", Members: []dispatch.Member{{Name: "web"}}, Queues: map[string]cluster.Load{"web": {Slots: 1}}}
		})
		over <- nil
	}()
	go func() { over <- worker.Work(ctx, dispatch.Job{Queue: "web", Slots: 1}, answer) }()
	lost := w.task()
	w.specify(lost)
	w.endsAs(lost, dispatch.Done)
	// On a busy machine the entry of a worker may lapse, and comes back.
	eventually(t, "seen whole by a client", func() bool {
		status, err := w.e.Status(t.Context())
		return err == nil && len(status.Workers) == 1 && len(status.Queues) == 1 && status.Steward != nil && len(status.Hubs) == 1
	})
	for role, e := range map[hub.Role]*cluster.Engine{hub.RoleClient: w.e, hub.RoleWorker: worker} {
		eventually(t, "a member for a "+string(role), func() bool {
			members, err := e.Members(t.Context())
			return err == nil && len(members) == 1
		})
		kv, err := e.JetStream().KeyValue(t.Context(), streams.BucketWorker)
		if err != nil {
			t.Fatal(err)
		}
		short, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if _, err := kv.Put(short, cluster.StewardKey, []byte("{}")); err == nil {
			t.Errorf("a %s makes itself steward", role)
		}
		stop()
	}
	if got := s.Stats(); got.Requeued != 1 {
		t.Errorf("stats: %+v", got)
	}
	cancel()
	for range 2 {
		if err := <-over; err != nil {
			t.Error(err)
		}
	}
	w.until("gone", func() bool { workers, err := w.e.Workers(t.Context()); return err == nil && len(workers) == 0 })
}
