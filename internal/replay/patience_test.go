package replay_test

import (
	"context"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
)

func TestPatience(t *testing.T) {
	started := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct{ limit, caller, want time.Duration }{
		"nobody says":       {0, 0, 0},
		"its own":           {time.Minute, 0, time.Minute},
		"the caller's":      {0, time.Second, time.Second},
		"the caller's less": {time.Minute, time.Second, time.Second},
		"the caller's more": {time.Second, time.Minute, time.Second},
		"over already":      {time.Minute, -time.Second, time.Millisecond}, // and not none at all
	} {
		ctx := context.Background()
		if tt.caller != 0 {
			var done context.CancelFunc
			ctx, done = context.WithDeadline(ctx, started.Add(tt.caller))
			defer done()
		}
		if got := replay.Patience(ctx, tt.limit, started); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
