package cluster_test

import (
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
)

// However often an investigation is canceled, that is found out by so many reads, and what
// it is canceled too often for is not begun.
func TestCanceledTooOften(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	e := w.open(t, "one")
	first := dispatchtest.Task("web")
	if err := e.Submit(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	for range 103 {
		if err := e.Cancel(t.Context(), first.ID, "enough"); err != nil {
			t.Fatal(err)
		}
	}
	later := dispatchtest.Task("web")
	later.Investigation = first.ID
	if err := e.Submit(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	work(t, e, 1, empty)
	for _, task := range []dispatch.Task{first, later} {
		if end := ended(t, e, task); end.Status != dispatch.Canceled || end.Attempt != 0 {
			t.Errorf("it ended as %+v", end)
		}
	}
}
