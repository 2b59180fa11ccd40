package main

import (
	"regexp"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// A cluster is well while whatever waits has a worker to wait for.
func TestStuck(t *testing.T) {
	queue := func(workers, waiting, inFlight int) cluster.Status {
		q := cluster.Queue{Name: "web", Workers: workers, Waiting: waiting, InFlight: inFlight}
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
	} {
		err := stuckError(tt.s)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// Answers that failed or came with a warning are counted.
func TestStatusLines(t *testing.T) {
	var out strings.Builder
	s := cluster.Status{Steward: &cluster.Stewardship{Name: "hub", Open: 3, Flawed: 2},
		Workers: []cluster.Presence{{Name: "well", Queues: map[string]cluster.Load{"pi": {Slots: 4, Busy: 2}}}}}
	if err := writeStatus(&out, term.Style{}, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`well +working +2 of 4 +.*pi`, `3 tasks under way; 0\.0 ended a minute; 2 answers failed or came with a warning; kept in order by hub`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
