package meter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/meter"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
)

// page is the measurements as they can be read.
func page(t *testing.T, m *meter.Meter) string {
	t.Helper()
	metrics := httpdoor.NewMetrics("v")
	if err := metrics.Add(m); err != nil {
		t.Fatal(err)
	}
	if err := metrics.Add(m); err == nil {
		t.Error("the same names twice")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- metrics.Probe(ctx, l, func() error { return nil }) }()
	resp, err := http.Get("http://" + l.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v:\n%s", resp.StatusCode, err, text)
	}
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
	return string(text)
}

func lacks(t *testing.T, text string, wants ...string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	for _, want := range wants {
		if !slices.Contains(lines, want) {
			t.Errorf("no %s", want)
		}
	}
	if t.Failed() {
		for _, line := range lines {
			if strings.HasPrefix(line, "marchwarden_") && !strings.Contains(line, "_bucket") {
				t.Log(line)
			}
		}
	}
}

// record is a record in memory.
type record struct {
	text  string
	begun bool
	err   error
}

func (r *record) Read(context.Context) ([]byte, error)        { return []byte(r.text), nil }
func (r *record) Append(_ context.Context, line []byte) error { return r.err }
func (r *record) Begun() bool                                 { return r.begun }

func TestHandler(t *testing.T) {
	at, draining := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), false
	m := meter.New(meter.Config{Now: func() time.Time { return at }, Draining: func() bool { return draining }})
	lost, lose := context.WithCancelCause(t.Context())
	lose(fmt.Errorf("its lease: %w", dispatch.ErrReleased))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	broken := errors.New("broken")
	for _, c := range []struct {
		ctx      context.Context
		draining bool
		lines    dispatch.Lines
		err      error
	}{
		{ctx: t.Context(), lines: &record{text: "{}\n"}}, // an earlier run's, which it resumes
		{ctx: t.Context(), lines: &record{err: broken}, err: broken},
		{ctx: canceled, lines: &record{}},
		{ctx: lost, lines: &record{err: dispatch.ErrReleased}, err: dispatch.ErrReleased},
		{ctx: lost, draining: true, lines: &record{text: "{}\n", begun: true}, err: dispatch.ErrReleased},
	} {
		draining = c.draining
		_, err := m.Handler(func(ctx context.Context, task dispatch.Task, lines dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
			if n := m.Busy("web"); n != 1 {
				t.Errorf("%d are busy", n)
			}
			if _, err := lines.Read(ctx); err != nil || lines.Begun() != c.lines.Begun() {
				t.Errorf("begun: %v, was %v; %v", lines.Begun(), c.lines.Begun(), err)
			}
			_ = lines.Append(ctx, []byte("{}\n"))
			at = at.Add(3 * time.Second)
			return nil, c.err
		})(c.ctx, dispatch.Task{Queue: "web"}, c.lines, nil)
		if !errors.Is(err, c.err) {
			t.Errorf("%v became %v", c.err, err)
		}
	}
	lacks(t, page(t, m),
		`marchwarden_tasks_taken_total{queue="web"} 5`,
		`marchwarden_tasks_resumed_total{queue="web"} 1`,
		`marchwarden_tasks_running{queue="web"} 0`,
		`marchwarden_task_duration_seconds_count{outcome="done",queue="web"} 1`,
		`marchwarden_task_duration_seconds_sum{outcome="done",queue="web"} 3`,
		`marchwarden_task_duration_seconds_count{outcome="failed",queue="web"} 1`,
		`marchwarden_task_duration_seconds_count{outcome="canceled",queue="web"} 1`,
		`marchwarden_task_duration_seconds_count{outcome="lost",queue="web"} 1`,
		`marchwarden_task_duration_seconds_count{outcome="released",queue="web"} 1`,
		`marchwarden_journal_append_duration_seconds_count{outcome="ok"} 3`,
		`marchwarden_journal_append_duration_seconds_count{outcome="failed"} 1`,
		`marchwarden_journal_append_duration_seconds_count{outcome="lost"} 1`)
}

func TestClusterAndSteward(t *testing.T) {
	at, asked := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0
	var broken error
	status := cluster.Status{
		Hubs:    []cluster.Hub{{Name: "a"}, {Name: "b", Behind: 1}, {Name: "c", Offline: true, Behind: 2}},
		Workers: []cluster.Presence{{Name: "x"}, {Name: "y", Draining: true}},
		Queues:  []cluster.Queue{{Name: "web", Slots: 8}}, Unserved: 3, Tasks: 12, Investigations: 5,
		Stuck: []cluster.Stuck{{Queue: "web"}}, Streams: []cluster.Stream{{Name: "MW_LOG", Bytes: 1024}},
	}
	status.Queues[0].Bands[0] = cluster.Band{Waiting: 7, InFlight: 2, Redelivered: 1}
	for i := range 200 { // more than there are labels for
		status.Queues = append(status.Queues, cluster.Queue{Name: fmt.Sprintf("q%d", i), Slots: 1})
	}
	m := meter.New(meter.Config{Now: func() time.Time { return at },
		Status: func(context.Context) (cluster.Status, error) { asked++; return status, broken },
		Steward: func() cluster.Stewardship {
			return cluster.Stewardship{Leading: true, Requeued: 4, Remade: 1, Rounds: 9, Failures: 2}
		}})
	text := page(t, m)
	lacks(t, text,
		"marchwarden_cluster_up 1",
		`marchwarden_queue_waiting{band="0",queue="web"} 7`,
		`marchwarden_queue_in_flight{band="0",queue="web"} 2`,
		`marchwarden_queue_redelivered{band="0",queue="web"} 1`,
		`marchwarden_queue_slots{queue="web"} 8`,
		`marchwarden_queue_slots{queue="other"} 137`,
		"marchwarden_queue_unserved 3", "marchwarden_queue_stuck 1", "marchwarden_tasks_open 12", "marchwarden_investigations_open 5",
		`marchwarden_workers{draining="false"} 1`, `marchwarden_workers{draining="true"} 1`,
		`marchwarden_hubs{state="current"} 1`, `marchwarden_hubs{state="behind"} 1`, `marchwarden_hubs{state="offline"} 1`,
		`marchwarden_stream_bytes{stream="MW_LOG"} 1024`,
		"marchwarden_steward_leading 1", `marchwarden_steward_actions_total{action="requeued"} 4`, `marchwarden_steward_actions_total{action="remade"} 1`,
		"marchwarden_steward_rounds_total 9", "marchwarden_steward_failures_total 2")
	page(t, m)
	if asked != 1 {
		t.Errorf("asked %d times in a moment", asked)
	}
	at, broken = at.Add(time.Minute), errors.New("broken")
	if text = page(t, m); strings.Contains(text, "marchwarden_queue_waiting{") {
		t.Error("what is not known is told")
	}
	lacks(t, text, "marchwarden_cluster_up 0", "marchwarden_steward_leading 1")
}
