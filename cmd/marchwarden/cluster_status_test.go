package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// A cluster is well while whatever waits has a worker to wait for.
func TestStuck(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	queue := func(workers, waiting, inFlight int) cluster.Status {
		q := cluster.Queue{Name: "web", Workers: workers}
		q.Bands[0].Waiting, q.Bands[2].InFlight = waiting, inFlight
		return cluster.Status{Queues: []cluster.Queue{{Name: "files"}, q}}
	}
	for _, tt := range []struct {
		name string
		s    cluster.Status
		want string
	}{
		{"nothing there", cluster.Status{}, ""},
		{"nothing to do", queue(0, 0, 0), ""},
		{"all is worked on", queue(1, 3, 2), ""},
		{"the worker is gone", queue(0, 2, 0), "no worker is there for 2 waiting tasks of the queue web"},
		{"and had begun", queue(0, 0, 1), "no worker is there for 1 waiting task of the queue web"},
		{"nobody ever came", cluster.Status{Unserved: 1}, "no worker was ever there for 1 waiting task"},
		{"a long call", cluster.Status{Tasks: 2, Lease: time.Second, At: at, Written: at.Add(-8 * time.Second)}, ""},
		{"no word", cluster.Status{Tasks: 2, Lease: time.Second, At: at, Written: at.Add(-9 * time.Second)}, "nothing was written for 9.00 s with 2 tasks under way"},
		{"no task", cluster.Status{Lease: time.Second, At: at, Written: at.Add(-time.Hour)}, ""},
	} {
		err := stuckError(tt.s)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// A worker that is not heard of is listed, with the time since it spoke.
func TestSilentWorkersAreListed(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	worker := func(name string, silent time.Duration) cluster.Presence {
		return cluster.Presence{Name: name, Since: at.Add(-time.Hour), Heard: at.Add(-silent), Queues: map[string]cluster.Load{"pi": {Slots: 4, Busy: 2}}}
	}
	var out strings.Builder
	s := cluster.Status{At: at, Lease: 15 * time.Second, Tasks: 3, Written: at.Add(-40 * time.Second), Steward: &cluster.Stewardship{Name: "hub", Flawed: 2},
		Workers: []cluster.Presence{worker("well", 5*time.Second), worker("late", 12*time.Second)}, Silent: []cluster.Presence{worker("frozen", 80*time.Second)}}
	if err := writeStatus(&out, term.Style{}, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`well +working +2 of 4 +.*pi`, `late +silent for 12.0 s`, `frozen +silent for 1 min 20 s +2 of 4`,
		`3 tasks; 0\.0 ended a minute, nothing was written for 40.0 s; 2 answers failed or came with a warning`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestLimitWords(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		use  limit.Use
		want string
	}{
		{limit.Use{Key: "anthropic/money", Rate: "$20/day", Used: 0.8712345, Of: 20}, "$0.8712 of $20 used, $20/day"},
		{limit.Use{Key: "anthropic/money", Rate: "$0.5/day", Of: 0.5}, "$0 of $0.5 used, $0.5/day"},
		{limit.Use{Key: "anthropic/tokens", Rate: "400000/m", Used: 12345, Of: 400000}, "12,345 of 400,000 used, 400000/m"},
		{limit.Use{Key: "host:example.org/requests", Rate: "0.5/s", Of: 0.5, Slow: now.Add(90 * time.Second)}, "0 of 0.5 used, 0.5/s; no calls for another 1 min 30 s"},
	} {
		if got := limitWords(tt.use, now); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
