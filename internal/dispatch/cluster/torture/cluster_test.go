//go:build linux

package torture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// longer says whether tests without an everyday form are asked for, and full whether the
// large forms of all are.
func longer() bool { return os.Getenv("MARCHWARDEN_TEST_CLUSTER") != "" }

func full() bool { return os.Getenv("MARCHWARDEN_TEST_CLUSTER") == "full" }

// size is how much of a test is run.
func size[N any](everyday, all N) N {
	if full() {
		return all
	}
	return everyday
}

func newID() marchwarden.TraceID { return serve.NewTraceID() }

// errands are n tasks, of plots from a first one on.
func errands(first, n int) []errand {
	var out []errand
	for i := range n {
		out = append(out, errand{newID(), first + i})
	}
	return out
}

// cluster is hubs, workers, a provider and a driver, each on a host of its own.
type cluster struct {
	*ground
	lease    time.Duration
	hubs     []*machine
	workers  []*machine
	provider *machine
	driver   *machine
	rights   rights
}

// machine is a host with the one process that is to run on it.
type machine struct {
	*host
	*process
	role     string
	settings any
}

// start begins the process of a machine, again if it was killed.
func (m *machine) start() {
	m.g.t.Helper()
	m.process = m.host.start(m.role, m.settings)
}

// plan is how large a cluster is.
type plan struct {
	hubs, workers, slots int
	lease, latency       time.Duration
	drain                time.Duration
	idle                 bool // the workers have nothing to do for a task
}

const (
	clientPort  = 4222
	clusterPort = 6222
)

// newCluster starts all but the workers.
func newCluster(t *testing.T, p plan) *cluster {
	t.Helper()
	c := &cluster{ground: newGround(t), lease: p.lease}
	c.rights = newRights(t, c.dir)
	var routes, urls []string
	for i := range p.hubs {
		h := c.host(fmt.Sprint("hub", i))
		c.hubs = append(c.hubs, &machine{host: h, role: "hub"})
		routes = append(routes, fmt.Sprintf("%s:%d", h.ip, clusterPort))
		urls = append(urls, fmt.Sprintf("nats://%s:%d", h.ip, clientPort))
	}
	for _, m := range c.hubs {
		s := serving{Name: m.host.name, Store: filepath.Join(c.dir, m.host.name), Listen: fmt.Sprintf("%s:%d", m.ip, clientPort), Lease: p.lease, Replicas: 1,
			Keys: c.rights.file, Secret: c.rights.secret}
		if p.hubs > 1 {
			s.ClusterListen, s.Routes, s.Replicas = fmt.Sprintf("%s:%d", m.ip, clusterPort), routes, p.hubs
		}
		m.settings = s
	}
	c.startAll(c.hubs)
	c.provider = &machine{host: c.host("provider"), role: "provider"}
	c.provider.settings = provided{Address: c.provider.ip + ":80", Latency: p.latency}
	c.provider.start()
	url := strings.Join(urls, ",")
	for i := range p.workers {
		m := &machine{host: c.host(fmt.Sprint("worker", i)), role: "worker"}
		s := joining{URL: url, Name: m.host.name, Provider: c.provider.ip + ":80", Slots: p.slots, Seed: c.rights.seeds[hub.RoleWorker], Drain: p.drain}
		if p.idle {
			s.Provider = ""
		}
		m.settings = s
		c.workers = append(c.workers, m)
	}
	c.driver = &machine{host: c.host("driver"), role: "driver", settings: joining{URL: url, Name: "driver", Seed: c.rights.seeds[hub.RoleClient], Admin: c.rights.seeds[hub.RoleHub]}}
	c.driver.start()
	return c
}

// startAll begins processes at once, and waits for all of them: hubs wait for each other.
func (c *cluster) startAll(all []*machine) {
	c.t.Helper()
	if err := begin(all); err != nil {
		c.t.Fatal(err)
	}
}

func begin(all []*machine) error {
	var err error
	for _, m := range all {
		if m.process, err = m.launch(m.role, m.settings); err != nil {
			return err
		}
	}
	for _, m := range all {
		if err := m.ready(); err != nil {
			return fmt.Errorf("start %s: %w", m.host.name, err)
		}
	}
	return nil
}

// restart kills the process of a machine and begins it again after a time.
func (m *machine) restart(after time.Duration) error {
	m.kill()
	time.Sleep(after)
	return begin([]*machine{m})
}

// without cuts a machine off for a time.
func (m *machine) without(how cut, d time.Duration) error {
	err := m.cut(how)
	time.Sleep(d)
	return errors.Join(err, m.mend(how))
}

// done is how many tasks have ended.
func (c *cluster) done() int {
	var k kept
	if err := c.driver.ask("done", []errand{}, &k); err != nil {
		return -1 // a hub is missing at the moment
	}
	return int(k.Messages)
}

// until waits until so many tasks have ended.
func (c *cluster) until(n int, within time.Duration) {
	c.t.Helper()
	limit := time.Now().Add(within)
	for {
		got := c.done()
		if got >= n {
			return
		}
		if time.Now().After(limit) {
			var streams []string
			err := c.driver.ask("streams", nil, &streams)
			c.t.Fatalf("after %v %d tasks have ended, not %d\n%s\n%v", within, got, n, strings.Join(streams, "\n"), err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// leader is the hub that leads the journal.
func (c *cluster) leader() *machine {
	c.t.Helper()
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		var name string
		err := c.driver.ask("leader", nil, &name)
		for _, h := range c.hubs {
			if err == nil && h.host.name == name {
				return h
			}
		}
		if time.Now().After(limit) {
			c.t.Fatalf("no leader: %q, %v", name, err)
		}
	}
}

// memory is the resident set of a process in MB.
func (p *process) memory() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kb, _ := strconv.Atoi(strings.Fields(rest + " 0")[0])
	return kb / 1024
}
