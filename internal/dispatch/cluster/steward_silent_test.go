package cluster_test

import (
	"context"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
)

// appear has a worker of that name be there until stop is called, on a connection of its
// own.
func (w *hubWorld) appear(name string, since time.Time) (e *cluster.Engine, stop func()) {
	w.Helper()
	e = w.open(name)
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.Announce(ctx, func() cluster.Presence {
			return cluster.Presence{Name: name, Since: since, Queues: map[string]cluster.Load{"web": {Slots: 1}}}
		})
	}()
	stop = func() { cancel(); <-done }
	w.Cleanup(stop)
	return e, stop
}

func (w *hubWorld) status() cluster.Status {
	w.Helper()
	s, err := w.e.Status(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// silent are the workers that are missed.
func (w *hubWorld) silent() []cluster.Presence {
	if s := w.status().Steward; s != nil { // it may be unknown for a moment
		return s.Silent
	}
	return nil
}

// A worker that falls silent is listed, with when it was last heard, until another of its
// name is there. One that leaves is not.
func TestASilentWorkerIsListed(t *testing.T) {
	t.Parallel()
	w := hubWorldOf(t, 5*time.Second) // a steward that loses its lease forgets whom it saw
	w.keep(w.e, "hub", 0)
	began := time.Now()
	_, leave := w.appear("leaves", began)
	frozen, _ := w.appear("freezes", began)
	w.until("both there", func() bool { return len(w.status().Workers) == 2 })
	rounds := 0 // the steward may be unknown for a moment
	w.until("looked at", func() bool {
		if s := w.status(); s.Steward != nil {
			rounds = int(s.Steward.Rounds)
		}
		return rounds > 0
	})
	w.until("seen", func() bool { s := w.status(); return s.Steward != nil && int(s.Steward.Rounds) > rounds+1 })
	leave()
	_ = frozen.Close() // says nothing more
	w.until("silent", func() bool { return len(w.silent()) == 1 })
	if one := w.silent()[0]; one.Name != "freezes" || one.Heard.Before(began) || one.Heard.After(time.Now()) || len(w.status().Workers) != 0 {
		t.Errorf("silent %+v, living %+v", one, w.status().Workers)
	}
	w.appear("freezes", time.Now())
	w.until("replaced", func() bool { return len(w.silent()) == 0 })
}

// Investigations that fail, or whose results carry warnings, are counted.
func TestFlawedAnswersAreCounted(t *testing.T) {
	w := hubWorldOf(t, 15*time.Second) // a steward that loses its lease counts anew
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
