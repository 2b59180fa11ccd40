package cluster_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
)

// Preparing what stands touches nothing; what is to be kept for another time is changed.
func TestPrepareTouchesOnlyWhatChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	e := w.open(t, "one")
	touched := map[string]int{}
	// Of what was made before, word may still be on its way; of changes there is none.
	sub, err := e.Conn().NATS().SubscribeSync("$JS.EVENT.ADVISORY.STREAM.UPDATED.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, keep := range []streams.Keep{{}, {Log: time.Hour}} {
		if err := cluster.Prepare(t.Context(), w.config("hub", w.server), cluster.Facts{Lease: w.lease, Keep: keep}); err != nil {
			t.Fatal(err)
		}
	}
	for {
		m, err := sub.NextMsg(200 * time.Millisecond)
		if err != nil {
			break
		}
		touched[strings.TrimPrefix(m.Subject, "$JS.EVENT.ADVISORY.STREAM.UPDATED.")]++
	}
	if diff := cmp.Diff(map[string]int{streams.StreamLog: 1}, touched); diff != "" {
		t.Error(diff)
	}
	stream, err := e.JetStream().Stream(t.Context(), streams.StreamLog)
	if err != nil || stream.CachedInfo().Config.MaxAge != time.Hour {
		t.Errorf("records are kept %s; %v", stream.CachedInfo().Config.MaxAge, err)
	}
}
