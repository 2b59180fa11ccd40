package runs_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

// Runs beyond the limit wait in turn and say their place. What bounds the research
// begins when its turn has come.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		d := open(t, runs.Config{MaxRunning: 1, Researcher: research(func(ctx context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
			order = append(order, req.Question)
			ctx, done := context.WithTimeout(ctx, 20*time.Second)
			defer done()
			<-ctx.Done()
			return answer(ctx, req), nil
		})})
		var mu sync.Mutex // guards said
		said := map[string][]string{}
		all := map[string]*runs.Visit{}
		for _, question := range []string{"one?", "two?", "three?", "four?"} {
			v, err := d.Begin(as(alice), runs.Asked{Request: marchwarden.Request{Question: question}, Sink: func(e marchwarden.Event) {
				mu.Lock()
				defer mu.Unlock()
				said[question] = append(said[question], e.Message)
			}})
			if err != nil {
				t.Fatal(err)
			}
			all[question] = v
			synctest.Wait()
		}
		began := time.Now()
		if !all["two?"].Leave() { // the others move up
			t.Error("a run that waits is not stopped when its caller leaves")
		}
		<-all["two?"].Done()
		status(t, all["two?"].Run, runs.Cancelled)
		for _, question := range []string{"one?", "three?", "four?"} {
			<-all[question].Done()
			status(t, all[question].Run, runs.Completed)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("three runs of 20 s took %v: who waited had less time, or more went on at once", took)
		}
		if !slices.Equal(order, []string{"one?", "three?", "four?"}) {
			t.Errorf("the order is %q", order)
		}
		const waiting = "waiting for its turn: number "
		if got, want := said["four?"], []string{waiting + "3 in the queue", waiting + "2 in the queue", waiting + "1 in the queue", "research started"}; !slices.Equal(got, want) || !slices.Equal(said["one?"], want[3:]) {
			t.Errorf("the first heard %q, the last %q", said["one?"], got)
		}
	})
}

// A run whose caller says how long it waits ends then, and a queue has an end.
func TestQueueHasLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, runs.Config{MaxRunning: 1, Researcher: research(patient)})
		begin(t, d, alice, ask, asCall)
		ctx, done := context.WithTimeout(access.With(t.Context(), alice), time.Second)
		defer done()
		v, err := d.Begin(ctx, runs.Asked{Request: ask})
		if err != nil {
			t.Fatal(err)
		}
		<-v.Done()
		_, err = v.Outcome()
		want(t, err, marchwarden.CodeTimeout, "before its turn came")
		for range 4096 {
			begin(t, d, alice, ask, asCall)
		}
		_, err = d.Begin(as(alice), runs.Asked{Request: ask})
		want(t, err, marchwarden.CodeUnavailable, "server busy: 1 research calls are running and 4096 wait, which is the limit")
	})
}
