//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// residentKB is how much memory a process has, in kilobytes: now and at most so far. Both
// are 0 where that cannot be known.
func residentKB(pid int) (now, most int) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		kb, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB")) // other lines hold no number
		switch name {
		case "VmRSS":
			now = kb
		case "VmHWM":
			most = kb
		}
	}
	return now, most
}

// load is what callers saw of a server, all of them at once.
type load struct {
	sent atomic.Int64

	mu    sync.Mutex // guards what follows
	took  []time.Duration
	ids   map[marchwarden.TraceID]bool
	fails []string
	rss   []int // one after the other
}

// TestManyCallers has many callers ask over connections of their own, each one question
// after the other: none is lost, none fails, and the server does not grow with the number
// of calls.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	callers, length := 50, time.Second
	if longTests() {
		callers, length = 200, time.Minute
	}
	w := newHTTPWorld(t)
	s := w.serve(t, w.home(t), "files", "--library", "notes", "--model", "openai/gpt-test", "--max-calls", strconv.Itoa(callers), "--rate", "100000")
	hosts := make([]*hostClient, callers)
	for i := range hosts {
		hosts[i] = newHost(t, s.url, "", bothEras[i%2])
	}
	if _, err := hosts[0].research(t.Context(), map[string]any{"question": aboutBoats}); err != nil { // makes the index
		t.Fatal(err)
	}
	before, _ := residentKB(s.cmd.Process.Pid)
	l := &load{ids: map[marchwarden.TraceID]bool{}}
	began := time.Now()
	var wg sync.WaitGroup
	watched := make(chan struct{})
	go func() { l.watch(s.cmd.Process.Pid, watched) }()
	for i, c := range hosts {
		wg.Go(func() {
			for n := 0; time.Since(began) < length; n++ {
				l.ask(t.Context(), c, fmt.Sprintf("%s Caller %d asks for the time number %d.", aboutBoats, i, n))
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	close(watched)
	l.judge(t, s, callers, before, took)
	s.endBy(t, syscall.SIGTERM)
}

// ask makes one call, which must be answered with evidence.
func (l *load) ask(ctx context.Context, c *hostClient, question string) {
	l.sent.Add(1)
	began := time.Now()
	res, err := c.research(ctx, map[string]any{"question": question})
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.fails = append(l.fails, err.Error())
	case len(res.Citations) == 0 || l.ids[res.TraceID]:
		l.fails = append(l.fails, fmt.Sprintf("%s: %d citations; told before: %v", res.TraceID, len(res.Citations), l.ids[res.TraceID]))
	default:
		l.ids[res.TraceID] = true
		l.took = append(l.took, took)
	}
}

// watch notes the memory of a process until it is told to end.
func (l *load) watch(pid int, end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case <-time.After(50 * time.Millisecond):
		}
		now, _ := residentKB(pid)
		l.mu.Lock()
		l.rss = append(l.rss, now)
		l.mu.Unlock()
	}
}

func (l *load) judge(t *testing.T, s *served, callers, before int, took time.Duration) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	times := sortedTimes(l.took)
	after, most := residentKB(s.cmd.Process.Pid)
	third := len(l.rss) / 3
	t.Logf("%d callers, %v: %d calls, %d answered, %d failed, %.1f calls/s; p50 %v, p95 %v", callers, took.Round(time.Millisecond), l.sent.Load(), len(l.took), len(l.fails),
		float64(len(l.took))/took.Seconds(), percentile(times, 50).Round(time.Millisecond), percentile(times, 95).Round(time.Millisecond))
	if lost := int(l.sent.Load()) - len(l.took) - len(l.fails); lost != 0 || len(l.fails) > 0 || len(l.took) < callers {
		t.Errorf("%d lost, %d failed, %d answered: %.600q", lost, len(l.fails), len(l.took), l.fails)
	}
	if third == 0 || l.rss[0] == 0 {
		t.Log("memory is not known here")
		return
	}
	first, last := slices.Max(l.rss[:third]), slices.Max(l.rss[len(l.rss)-third:])
	t.Logf("memory of the server: %d MB before, at most %d MB, %d MB after; at most %d MB in the first third and %d MB in the last", before>>10, most>>10, after>>10, first>>10, last>>10)
	// The number of calls at once is the same all the time. What fills up with the number
	// of calls is bounded: what was stored last (32 MB), the streams of clients that may
	// come back (32 MB) and the index of the runs (10,000). Garbage doubles it.
	if last > 2*first || most > 400<<10 {
		t.Errorf("the server grows with the number of calls")
	}
}
