package streams_test

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
)

// serveThree starts three hubs that form a cluster, and prepares it.
func serveThree(t *testing.T, limits ...string) []*server.Server {
	t.Helper()
	var routes []*url.URL
	var ports []int
	for _, address := range datatest.FreeAddresses(t, 3) {
		at := &url.URL{Scheme: "nats", Host: address}
		port, err := strconv.Atoi(at.Port())
		if err != nil {
			t.Fatal(err)
		}
		routes, ports = append(routes, at), append(ports, port)
	}
	var all []*server.Server
	for i, port := range ports {
		s, err := server.NewServer(&server.Options{ServerName: fmt.Sprint("hub", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
			NoSigs: true, NoLog: true, JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 30, Routes: routes,
			Cluster: server.ClusterOpts{Name: "limits", Host: "127.0.0.1", Port: port}})
		if err != nil {
			t.Fatal(err)
		}
		go s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		all = append(all, s)
	}
	for _, s := range all {
		if !s.ReadyForConnections(20 * time.Second) {
			t.Fatal("a server does not start")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := cluster.Prepare(ctx, cluster.Config{URL: all[0].ClientURL(), Name: "hub", Now: time.Now}, cluster.Facts{Limits: limits, Replicas: 3}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestThreeHubs is the bar on a replicated bucket, whose replicas may answer with what was
// true a moment ago, while the hubs change their leader: a worker that cannot ask waits, and no
// worker sends more than all may.
func TestThreeHubs(t *testing.T) {
	if !longer() {
		t.Skip("set MARCHWARDEN_TEST_CLUSTER=1")
	}
	t.Parallel()
	const n = 50
	hubs, p := serveThree(t, fmt.Sprintf("acme requests %d/s", n)), newProvider(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 6 {
		e := open(t, hubs[i%3], fmt.Sprint("worker", i))
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := use(ctx, e.Limit("acme/requests"), p.URL, 6); err != nil {
					t.Log(err) // while there is no leader
				}
			}
		})
	}
	time.Sleep(8 * time.Second)
	for _, h := range hubs {
		if h.JetStreamIsStreamLeader("$G", "KV_MW_LIMIT") {
			t.Logf("%s leads, and goes", h.Name())
			h.Shutdown()
			break // the one that leads next stays
		}
	}
	gone := time.Now()
	wg.Wait()
	came := p.arrivals()
	longest, after := time.Duration(0), 0
	for i, at := range came {
		if i > 0 {
			longest = max(longest, at.Sub(came[i-1]))
		}
		if at.After(gone.Add(time.Second)) {
			after++
		}
	}
	t.Logf("%d came after the leader was gone; for at most %v nobody came", after, longest.Round(time.Millisecond))
	if after < n {
		t.Errorf("%d came after the leader was gone", after)
	}
	report(t, came, n, 0.3) // no call is made while there is no leader
}
