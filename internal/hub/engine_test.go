package hub_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
)

// violations fails a test when an engine tells of something that it may not do.
type violations struct {
	t    *testing.T
	name string

	mu   *sync.Mutex
	over *bool
}

func (v violations) log() *slog.Logger { return slog.New(v) }

func (v violations) Enabled(context.Context, slog.Level) bool { return true }
func (v violations) WithAttrs([]slog.Attr) slog.Handler       { return v }
func (v violations) WithGroup(string) slog.Handler            { return v }
func (v violations) Handle(_ context.Context, r slog.Record) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	r.Attrs(func(a slog.Attr) bool {
		if strings.Contains(strings.ToLower(a.Value.String()), "permission") && !*v.over {
			v.t.Errorf("%s: %s: %v", v.name, r.Message, a.Value)
		}
		return true
	})
	return nil
}

// engine opens an engine with a key.
func (g *guarded) engine(t *testing.T, key, name string) *cluster.Engine {
	t.Helper()
	v := violations{t: t, name: key, mu: new(sync.Mutex), over: new(bool)}
	e, err := cluster.Open(within(t, 20*time.Second), cluster.Config{
		URL: g.Address(), Name: name, Seed: func() ([]byte, error) { return g.seeds[key], nil }, Now: time.Now, Log: v.log(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = e.Close()
		v.mu.Lock()
		defer v.mu.Unlock()
		*v.over = true
	})
	return e
}

// Everything that people do with a cluster works with no more rights than each role has.
func TestEveryRoleCanDoItsWork(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	g.prepare(t, cluster.Facts{Lease: 2 * time.Second, Limits: []string{"anthropic requests 50/s", "host:* requests 9/s"}})
	client, worker := g.engine(t, "client1", "desk"), g.engine(t, "worker1", "w1")
	own, err := cluster.Open(t.Context(), cluster.Config{InProcess: g, Name: "hub", Seed: g.Seed, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	keeper := cluster.NewSteward(own, "hub")
	ctx, cancel := context.WithCancel(within(t, 30*time.Second))
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() { keeper.Run(ctx) })
	all.Go(func() {
		say := func() cluster.Presence {
			return cluster.Presence{Name: "w1", Queues: map[string]cluster.Load{"web": {Slots: 2}}, Members: []dispatch.Member{{Name: "web"}}}
		}
		worker.Announce(ctx, say)
	})
	large := bytes.Repeat([]byte("evidence "), 100_000)
	all.Go(func() {
		err := worker.Work(ctx, dispatch.Job{Queue: "web", Slots: 2}, func(ctx context.Context, task dispatch.Task, lines dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
			host := worker.Limit("host:example.org/requests")
			host.Slow(time.Now().Add(10 * time.Millisecond))
			_, refused := worker.Limit("anthropic/requests").Take(ctx, 1)
			settle, err := host.Take(ctx, 2)
			if err := errors.Join(lines.Append(ctx, []byte("{\"n\":1}\n")), refused, err); err != nil {
				return nil, err
			}
			settle(1)
			if _, err := worker.Blobs().Put(ctx, large); err != nil {
				return nil, err
			}
			sink(marchwarden.Event{})
			if task.Owner == "waits" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return dispatchtest.Answer(task.Record, "Paris"), nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	answered, canceled := dispatchtest.Task("web"), dispatchtest.Task("web")
	canceled.Owner = "waits"
	for _, task := range []dispatch.Task{answered, answered, canceled} {
		if err := client.Submit(ctx, task); err != nil {
			t.Fatal(err)
		}
	}
	if end := watchToEnd(ctx, t, client, answered); end == nil || end.Status != dispatch.Done {
		t.Errorf("it ended as %+v", end)
	} else if _, err := client.Blobs().Get(ctx, end.Result); err != nil {
		t.Errorf("the result: %v", err)
	}
	for { // until it is begun
		if s, err := client.Look(ctx, canceled.ID); err != nil {
			t.Fatal(err)
		} else if s.Status == dispatch.Working {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := client.Cancel(ctx, canceled.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	if end := watchToEnd(ctx, t, client, canceled); end == nil || end.Status != dispatch.Canceled {
		t.Errorf("it ended as %+v", end)
	}
	for {
		status, err := client.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(status.Workers) == 1 && status.Steward != nil && len(status.Hubs) == 1 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if members, err := client.Members(ctx); err != nil || !slices.ContainsFunc(members, func(m dispatch.Member) bool { return m.Name == "web" }) {
		t.Errorf("the members are %v, %v", members, err)
	}
}

func watchToEnd(ctx context.Context, t *testing.T, e dispatch.Client, task dispatch.Task) *dispatch.End {
	t.Helper()
	for event, err := range e.Watch(ctx, dispatch.Watching{Task: task.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		if event.End != nil {
			return event.End
		}
	}
	return nil
}

// The whole suite of the engine, each with the key of a worker.
func TestConformanceWithKeys(t *testing.T) {
	if os.Getenv("MARCHWARDEN_TEST_CLUSTER") == "" {
		t.Skip("set MARCHWARDEN_TEST_CLUSTER=1")
	}
	dispatchtest.Run(t, func(t *testing.T, lease time.Duration) dispatchtest.Rig {
		g := newGuarded(t)
		g.prepare(t, cluster.Facts{Lease: lease})
		return dispatchtest.Rig{
			Lease: lease,
			Open:  func(t *testing.T, name string) dispatch.Engine { return g.engine(t, "worker1", name) },
			Kill:  func(e dispatch.Engine) { _ = e.Close() },
		}
	})
}
