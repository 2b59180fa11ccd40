package main

import (
	"slices"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// Whoever asks a cluster cannot have more told than the owner of the sources allows; on
// one machine they are the same person.
func TestWhoAsksAllowsNothing(t *testing.T) {
	for _, tt := range []struct {
		forOthers         bool
		own, wished, want []string
	}{
		{true, nil, []string{"files"}, nil},
		{true, []string{"files", "database"}, []string{"files", "web"}, []string{"files"}},
		{true, []string{"files"}, nil, []string{"files"}},
		{false, []string{"database"}, []string{"files"}, []string{"database", "files"}},
	} {
		s := &staff{c: &config{}, o: deskOptions{allowEgress: tt.own}, forOthers: tt.forOthers}
		if got := s.allowEgress(dispatch.Task{Wishes: dispatch.Wishes{AllowEgress: tt.wished}}); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
