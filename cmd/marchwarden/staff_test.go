package main

import (
	"errors"
	"slices"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// A caller of a cluster cannot have more told than the owner of the sources allows.
func TestWhoAsksAllowsNothing(t *testing.T) {
	for _, tt := range []struct {
		own, wished, want []string
	}{
		{nil, []string{"files"}, nil},
		{[]string{"files", "database"}, []string{"files", "web"}, []string{"files"}},
		{[]string{"files"}, nil, []string{"files"}},
	} {
		s := &network.Worker{Settings: &settings.Settings{}, Options: network.Options{Choice: marchwarden.Choice{AllowEgress: tt.own}}}
		if got := s.AllowEgress(dispatch.Task{Wishes: dispatch.Wishes{AllowEgress: tt.wished}}); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// A worker that was started for one queue opens no researcher of another, though it is
// configured on the host and a task comes that names it.
func TestWorkerServesItsOwnQueueAlone(t *testing.T) {
	for queue, other := range map[string]string{"web": "files", settings.PI: "database", "stranger": "web"} {
		s := &network.Worker{Place: &network.WorkerRecords{}, Runners: map[network.Post]*network.Runner{}}
		res, err := s.Handler(queue)(t.Context(), dispatch.Task{Queue: other}, nil, nil)
		if res != nil || !errors.Is(err, marchwarden.CodeDenied) || len(s.Runners) != 0 {
			t.Errorf("the worker of %s was asked as %s: %v, %v", queue, other, res, err)
		}
	}
}
