package cluster_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
)

// Three hubs, each with a steward. The hub of the one that leads dies; the others go on
// without it, and nothing is lost.
func TestThreeHubs(t *testing.T) {
	if os.Getenv("MARCHWARDEN_TEST_CLUSTER") == "" {
		t.Skip("three servers take a while: set MARCHWARDEN_TEST_CLUSTER=1")
	}
	const lease = 2 * time.Second
	routes := datatest.FreeAddresses(t, 3)
	hubs, urls := make([]*hub.Hub, 3), make([]string, 3)
	for i := range hubs {
		var err error
		if hubs[i], err = hub.Start(hub.Config{Name: fmt.Sprintf("hub%d", i), Store: t.TempDir(), Listen: "127.0.0.1:0", ClusterListen: routes[i], Routes: routes}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = hubs[i].Close() })
		urls[i] = hubs[i].Address()
	}
	w := &hubWorld{T: t}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all := cluster.Config{URL: strings.Join(urls, ","), Name: "all", Now: time.Now}
	if err := cluster.Prepare(ctx, all, cluster.Facts{Replicas: 3, Lease: lease}); err != nil {
		t.Fatal(err)
	}
	open := func(name string, cfg cluster.Config) *cluster.Engine {
		t.Helper()
		cfg.Name = name
		var e *cluster.Engine
		var err error
		for range 50 {
			if e, err = cluster.Open(ctx, cfg); err == nil {
				t.Cleanup(func() { _ = e.Close() })
				return e
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Fatal(err)
		return nil
	}
	w.e = open("test", all)
	stewards := make([]*cluster.Steward, 3)
	for i := range stewards {
		stewards[i], _ = w.keep(open(fmt.Sprint("steward", i), cluster.Config{InProcess: hubs[i], Now: time.Now}), fmt.Sprint("steward", i), 0)
	}
	works := open("works", all)
	over := make(chan error, 1)
	working, stop := context.WithCancel(t.Context())
	go func() { over <- works.Work(working, dispatch.Job{Queue: "web", Slots: 4}, answer) }()

	leader := func() int { // -1 for none or several
		var leads []int
		for i, s := range stewards {
			if s != nil && s.Stats().Leading {
				leads = append(leads, i)
			}
		}
		if len(leads) != 1 {
			return -1
		}
		return leads[0]
	}
	var tasks []dispatch.Task
	lose := func() {
		for range 10 {
			task := w.task()
			tasks = append(tasks, task)
			w.specify(task)
		}
	}
	lose()
	w.until("led", func() bool { return leader() >= 0 })
	dead := leader()
	// Hubs that were just started, or have just lost one, may take their time to answer.
	seen := func(what string, ok func(s cluster.Status) bool) {
		var status cluster.Status
		defer func() {
			if t.Failed() {
				t.Logf("%s: %+v", what, status)
			}
		}()
		w.until(what, func() bool {
			var err error
			status, err = w.e.Status(t.Context())
			return err == nil && ok(status)
		})
	}
	seen("all are there", func(s cluster.Status) bool { return len(s.Hubs) == 3 })
	if err := hubs[dead].Close(); err != nil {
		t.Fatal(err)
	}
	stewards[dead] = nil
	died := time.Now()
	lose()
	w.until("led again", func() bool { return leader() >= 0 })
	next := leader()
	seen("the other is told of", func(s cluster.Status) bool { return s.Steward != nil && s.Steward.Name == fmt.Sprint("steward", next) })
	t.Logf("led again after %v, with a lease of %v", time.Since(died).Round(time.Millisecond), lease)
	for _, task := range tasks {
		w.endsAs(task, dispatch.Done)
	}
	seen("one is gone", func(s cluster.Status) bool {
		offline := 0
		for _, h := range s.Hubs {
			if h.Offline {
				offline++
			}
		}
		return offline == 1 && s.Steward != nil
	})
	stop()
	if err := <-over; err != nil {
		t.Error(err)
	}
}
