// Package meter measures an engine at work, in the form of Prometheus: what a worker
// takes and how that ends, how long a record takes to write, and, on a hub, what waits in
// the queues and what the steward puts right. Every label has few values, whatever tasks
// say: no question, no owner and no id is among them.
//
// It owns the names of these measurements. Where they can be read is package door's.
package meter

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
)

// Config is what a meter looks at. What is nil is not measured.
type Config struct {
	Now func() time.Time // must be set
	// Draining says whether this process hands back what it has: what it loses then it
	// releases, what it loses at other times it lost.
	Draining func() bool
	// Status is asked at most every few seconds.
	Status  func(context.Context) (cluster.Status, error)
	Steward func() cluster.Stewardship
}

// Meter is the measurements of one process. It is a collector of Prometheus, and safe for
// concurrent use.
type Meter struct {
	cfg      Config
	taken    *prometheus.CounterVec
	resumed  *prometheus.CounterVec
	duration *prometheus.HistogramVec
	running  *prometheus.GaugeVec
	appends  *prometheus.HistogramVec

	mu     sync.Mutex // guards queues
	queues map[string]int

	asking sync.Mutex // guards what follows
	seen   cluster.Status
	up     bool
	at     time.Time
}

// How a piece of work ends, as the label outcome has it.
const (
	outcomeReleased = "released" // handed back while draining
	outcomeLost     = "lost"     // the lease went to another
)

// The bounds of the buckets, in seconds: of research, and of one line of a record.
var (
	workSeconds   = []float64{0.01, 0.05, 0.2, 1, 5, 15, 30, 60, 120, 300, 600, 1800}
	appendSeconds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 20}
)

// maxQueues bounds the values of the label queue; those beyond are told as other.
const (
	maxQueues = 64
	other     = "other"
)

// New makes a meter that has measured nothing yet.
func New(cfg Config) *Meter {
	queue := []string{"queue"}
	return &Meter{
		cfg: cfg, queues: map[string]int{},
		taken: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "marchwarden_tasks_taken_total",
			Help: "Tasks that this worker took on, by queue."}, queue),
		resumed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "marchwarden_tasks_resumed_total",
			Help: "Tasks that this worker took on after another had begun them, by queue."}, queue),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "marchwarden_task_duration_seconds", Buckets: workSeconds,
			Help: "Time from taking a task to handing it over, by queue and how it ended: done, failed, canceled, released, lost."}, []string{"queue", "outcome"}),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "marchwarden_tasks_running",
			Help: "Tasks that this worker works on now, by queue."}, queue),
		appends: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "marchwarden_journal_append_duration_seconds", Buckets: appendSeconds,
			Help: "Time to keep one line of a record, by outcome: ok, lost, failed."}, []string{"outcome"}),
	}
}

// name bounds the values of the label queue.
func (m *Meter) name(queue string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.queues[queue]; !known {
		if len(m.queues) >= maxQueues {
			return other
		}
		m.queues[queue] = 0
	}
	return queue
}

// Busy is how many tasks of a queue are worked on through this meter now.
func (m *Meter) Busy(queue string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queues[queue]
}

func (m *Meter) shift(queue string, by int) {
	m.running.WithLabelValues(queue).Add(float64(by))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues[queue] += by
}

// Handler is h with each task measured, and else as h.
func (m *Meter) Handler(h dispatch.Handler) dispatch.Handler {
	return func(ctx context.Context, t dispatch.Task, lines dispatch.Lines, sink marchwarden.Sink) (*marchwarden.Result, error) {
		queue, begun := m.name(t.Queue), m.cfg.Now()
		m.taken.WithLabelValues(queue).Inc()
		if lines.Begun() {
			m.resumed.WithLabelValues(queue).Inc()
		}
		m.shift(queue, 1)
		outcome := string(dispatch.Failed) // if it panics
		defer func() {
			m.shift(queue, -1)
			m.duration.WithLabelValues(queue, outcome).Observe(m.cfg.Now().Sub(begun).Seconds())
		}()
		res, err := h(ctx, t, &measured{lines, m}, sink)
		outcome = m.outcome(ctx, err)
		return res, err
	}
}

func (m *Meter) outcome(ctx context.Context, err error) string {
	switch {
	case errors.Is(context.Cause(ctx), dispatch.ErrReleased) || errors.Is(err, dispatch.ErrReleased):
		if m.cfg.Draining != nil && m.cfg.Draining() {
			return outcomeReleased
		}
		return outcomeLost
	case errors.Is(ctx.Err(), context.Canceled):
		return string(dispatch.Canceled)
	case err != nil:
		return string(dispatch.Failed)
	}
	return string(dispatch.Done)
}

// measured is a record whose appends are measured.
type measured struct {
	dispatch.Lines
	meter *Meter
}

// Append adds a line and tells how long that took.
func (l *measured) Append(ctx context.Context, line []byte) error {
	begun := l.meter.cfg.Now()
	err := l.Lines.Append(ctx, line)
	outcome := "ok"
	switch {
	case errors.Is(err, dispatch.ErrReleased):
		outcome = outcomeLost
	case err != nil:
		outcome = "failed"
	}
	l.meter.appends.WithLabelValues(outcome).Observe(l.meter.cfg.Now().Sub(begun).Seconds())
	return err
}
