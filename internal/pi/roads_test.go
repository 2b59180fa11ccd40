package pi_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
)

// roadsAsked says that the bars are tested over all engines: for "full" with all
// repetitions, and for anything else but "" with few.
var roadsAsked = os.Getenv("MARCHWARDEN_TEST_CLUSTER")

// road is the way on which an investigator reaches its members.
type road struct {
	name string
	// open makes a store, and returns how to open an engine on it, as one more process
	// would; nil is a road without an engine.
	open func(t testing.TB) (engine func(name string) dispatch.Engine)
}

var (
	direct     = road{name: "direct"}
	overStream = road{"cluster engine", openStream}
)

// onRoads runs a test for investigators who ask their members directly, and for those
// who do so by tasks of an engine.
func onRoads(t *testing.T, test func(t *testing.T, o *office), roads ...road) {
	if roadsAsked != "" {
		roads = []road{overStream}
	}
	t.Parallel()
	for _, r := range append([]road{direct}, roads...) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			if r.open != nil {
				o.network = newNetwork(t, r)
			}
			test(t, o)
		})
	}
}

// times is how often something is repeated on a road.
func (o *office) times(all, few int) int {
	if o.network != nil && roadsAsked != "full" {
		return max(2, few/15)
	}
	return times(all, few)
}

func openStream(t testing.TB) func(string) dispatch.Engine {
	h, err := hub.Start(hub.Config{Store: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	cfg := cluster.Config{InProcess: h, Seed: h.Seed, Now: time.Now, Name: "hub"}
	if err := cluster.Prepare(t.Context(), cfg, cluster.Facts{Lease: 2 * time.Second}); err != nil {
		t.Fatal(err)
	}
	return func(name string) dispatch.Engine {
		cfg := cfg
		cfg.Name = name
		e, err := cluster.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
}

// network has members asked by tasks of an engine, whose workers hand them to the
// members' sessions. It is safe for concurrent use.
type network struct {
	t      testing.TB
	client dispatch.Engine
	worker dispatch.Engine

	mu    sync.Mutex // guards asked
	asked map[marchwarden.TraceID]dispatch.Dispatcher

	staff  sync.Mutex // guards queues
	queues map[string]bool
}

func newNetwork(t testing.TB, r road) *network {
	open := r.open(t)
	return &network{t: t, client: open("client"), worker: open("worker"), asked: map[marchwarden.TraceID]dispatch.Dispatcher{}, queues: map[string]bool{}}
}

// through is a way to the members of d for one investigation.
func (n *network) through(d dispatch.Dispatcher) dispatch.Dispatcher {
	id := dispatchtest.ID()
	n.mu.Lock()
	n.asked[id] = d
	n.mu.Unlock()
	n.staff.Lock() // and not mu, which those who work need
	defer n.staff.Unlock()
	for _, m := range d.Members() {
		if !n.queues[m.Name] {
			n.queues[m.Name] = true
			n.work(m.Name)
		}
	}
	return &submit.Dispatcher{Engine: n.client, Blobs: n.client.Blobs(), Investigation: id, Owner: "a-caller", Priority: dispatch.Normal, Network: d.Members, Now: time.Now}
}

// work has a worker for a queue, until the test ends. It is ready when work returns, so
// that its start is not what is measured.
func (n *network) work(queue string) {
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- n.worker.Work(ctx, dispatch.Job{Queue: queue, Slots: 64}, n.handle) }()
	n.t.Cleanup(func() {
		stop()
		if err := <-over; err != nil {
			n.t.Errorf("work: %v", err)
		}
	})
	first := dispatchtest.Task(queue) // of nobody's investigation
	if err := n.client.Submit(n.t.Context(), first); err != nil {
		n.t.Fatal(err)
	}
	for _, err := range n.client.Watch(n.t.Context(), dispatch.Watching{Task: first.ID}) {
		if err != nil {
			n.t.Fatal(err)
		}
	}
}

func (n *network) handle(ctx context.Context, t dispatch.Task, _ dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	d := n.asked[t.Investigation]
	n.mu.Unlock()
	if d == nil {
		return nil, fmt.Errorf("nobody asked for %s", t.ID)
	}
	if t.Within > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, t.Within)
		defer done()
	}
	res, err := d.Dispatch(marchwarden.WithTraceID(ctx, t.Record), t.Queue, t.Request, sink)
	if err != nil {
		return nil, err
	}
	return res, submit.Bring(context.WithoutCancel(ctx), n.worker.Blobs(), d, t.Queue, res)
}
