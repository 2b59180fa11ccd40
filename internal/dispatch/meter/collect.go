package meter

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
)

// How old a status may be, and how long one may take.
const (
	statusAge  = 5 * time.Second
	statusTime = 3 * time.Second
)

// descs are what is measured of a cluster as a whole.
var descs []*prometheus.Desc

func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("marchwarden_"+name, help, labels, nil)
	descs = append(descs, d)
	return d
}

var (
	descUp          = desc("cluster_up", "1 if the cluster could be asked how it is.")
	descWaiting     = desc("queue_waiting", "Tasks that wait, by queue and band (0 urgent, 1 normal, 2 low).", "queue", "band")
	descInFlight    = desc("queue_in_flight", "Tasks that some worker has, by queue and band.", "queue", "band")
	descRedelivered = desc("queue_redelivered", "Tasks in flight that were in flight before, by queue and band.", "queue", "band")
	descSlots       = desc("queue_slots", "Tasks that live workers could have at once, by queue.", "queue")
	descUnserved    = desc("queue_unserved", "Tasks in queues that no worker has ever served.")
	descStuck       = desc("queue_stuck", "Lanes of queues from which nothing comes although it is wanted.")
	descWorkers     = desc("workers", "Workers that live, by whether they are draining.", "draining")
	descHubs        = desc("hubs", "Hubs, by state: current, behind, offline.", "state")
	descStored      = desc("stream_bytes", "Bytes that a stream holds, on each hub that keeps it.", "stream")
	descTasks       = desc("tasks_open", "Tasks that have not ended.")
	descOpen        = desc("investigations_open", "Investigations that have not ended.")

	descLeading  = desc("steward_leading", "1 if this process is the one that keeps the cluster in order.")
	descActions  = desc("steward_actions_total", "What this process put right: requeued, settled, copied, remade.", "action")
	descRounds   = desc("steward_rounds_total", "Rounds of the steward of this process.")
	descFailures = desc("steward_failures_total", "Rounds of the steward that it could not finish.")
)

// Describe is for Prometheus.
func (m *Meter) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.own() {
		c.Describe(out)
	}
	for _, d := range descs {
		out <- d
	}
}

// own are the measures of this process.
func (m *Meter) own() []prometheus.Collector {
	return []prometheus.Collector{m.taken, m.resumed, m.duration, m.running, m.appends}
}

// Collect is for Prometheus.
func (m *Meter) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.own() {
		c.Collect(out)
	}
	if m.cfg.Status != nil {
		status, up := m.status()
		gauge(out, descUp, truth(up))
		if up {
			m.collectStatus(out, status)
		}
	}
	if m.cfg.Steward != nil {
		s := m.cfg.Steward()
		gauge(out, descLeading, truth(s.Leading))
		counter(out, descActions, s.Requeued, "requeued")
		counter(out, descActions, s.Settled, "settled")
		counter(out, descActions, s.Copied, "copied")
		counter(out, descActions, s.Remade, "remade")
		counter(out, descRounds, s.Rounds)
		counter(out, descFailures, s.Failures)
	}
}

// status is how the cluster is, or was a moment ago.
func (m *Meter) status() (cluster.Status, bool) {
	m.asking.Lock()
	defer m.asking.Unlock()
	if m.at.IsZero() || m.cfg.Now().Sub(m.at) >= statusAge {
		ctx, cancel := context.WithTimeout(context.Background(), statusTime)
		defer cancel()
		var err error
		m.seen, err = m.cfg.Status(ctx)
		m.up, m.at = err == nil, m.cfg.Now()
	}
	return m.seen, m.up
}

func (m *Meter) collectStatus(out chan<- prometheus.Metric, s cluster.Status) {
	sums := map[string]cluster.Queue{} // queues beyond those that have a name here are one
	for _, q := range s.Queues {
		sum := sums[m.name(q.Name)]
		sum.Slots += q.Slots
		for i, b := range q.Bands {
			sum.Bands[i].Waiting += b.Waiting
			sum.Bands[i].InFlight += b.InFlight
			sum.Bands[i].Redelivered += b.Redelivered
		}
		sums[m.name(q.Name)] = sum
	}
	for name, q := range sums {
		gauge(out, descSlots, q.Slots, name)
		for i, b := range q.Bands {
			band := strconv.Itoa(i)
			gauge(out, descWaiting, b.Waiting, name, band)
			gauge(out, descInFlight, b.InFlight, name, band)
			gauge(out, descRedelivered, b.Redelivered, name, band)
		}
	}
	draining, behind, offline := 0, 0, 0
	for _, w := range s.Workers {
		draining += truth(w.Draining)
	}
	for _, h := range s.Hubs {
		offline += truth(h.Offline)
		behind += truth(!h.Offline && h.Behind > 0)
	}
	gauge(out, descWorkers, len(s.Workers)-draining, "false")
	gauge(out, descWorkers, draining, "true")
	gauge(out, descHubs, len(s.Hubs)-behind-offline, "current")
	gauge(out, descHubs, behind, "behind")
	gauge(out, descHubs, offline, "offline")
	for _, stream := range s.Streams {
		gauge(out, descStored, int(stream.Bytes), stream.Name)
	}
	gauge(out, descUnserved, s.Unserved)
	gauge(out, descStuck, len(s.Stuck))
	gauge(out, descTasks, s.Tasks)
	gauge(out, descOpen, s.Investigations)
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func gauge(out chan<- prometheus.Metric, d *prometheus.Desc, n int, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
}

func counter(out chan<- prometheus.Metric, d *prometheus.Desc, n uint64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}
