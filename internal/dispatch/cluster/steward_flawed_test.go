package cluster_test

import (
	"context"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
)

func (w *hubWorld) status() cluster.Status {
	w.Helper()
	s, err := w.e.Status(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// Investigations that fail, or whose results carry warnings, are counted.
func TestFlawedAnswersAreCounted(t *testing.T) {
	w := newHubWorld(t)
	w.keep(w.e, "hub", 0)
	whole, warned, failed, part := w.task(), w.task(), w.task(), w.task()
	part.Investigation, part.Record = whole.ID, part.ID
	w.work(func(_ context.Context, task dispatch.Task, _ dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		switch task.ID {
		case warned.ID, part.ID:
			return &marchwarden.Result{Warnings: []string{"given up: 1 of the steps"}}, nil
		case failed.ID:
			return nil, marchwarden.Errorf(marchwarden.CodeInternal, "it broke")
		}
		return &marchwarden.Result{}, nil
	})
	for _, task := range []dispatch.Task{whole, warned, failed, part} {
		w.submit(task)
	}
	w.until("counted", func() bool { s := w.status().Steward; return s != nil && s.Ended == 4 })
	if s := w.status().Steward; s.Flawed != 2 {
		t.Errorf("%d of 3 answers are flawed", s.Flawed)
	}
}
