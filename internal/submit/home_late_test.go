package submit_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// slow is an engine whose only task ends a while after it is canceled.
type slow struct {
	dispatch.Engine
	blobs    blob.Store
	takes    time.Duration
	end      dispatch.End
	watched  chan struct{} // hears of the first watch
	canceled chan struct{} // closed by Cancel
}

func (e *slow) Submit(context.Context, dispatch.Task) error { return nil }

func (e *slow) Record(context.Context, dispatch.Task) ([]byte, error) { return nil, nil }

func (e *slow) Blobs() blob.Store { return e.blobs }

func (e *slow) Watch(ctx context.Context, w dispatch.Watching) iter.Seq2[dispatch.Event, error] {
	return func(yield func(dispatch.Event, error) bool) {
		select {
		case e.watched <- struct{}{}:
			<-ctx.Done()
			if e.takes > 0 {
				return
			}
		case <-e.canceled:
			select {
			case <-time.After(e.takes):
			case <-ctx.Done():
				return
			}
		}
		yield(dispatch.Event{Seq: 1, Task: w.Task, Kind: dispatch.Ended, End: &e.end}, nil)
	}
}

func (e *slow) Cancel(context.Context, marchwarden.TraceID, string) error {
	close(e.canceled)
	return nil
}

// stoppedRecord is the record of a run that was stopped, and its end; all that it names is in a store.
func stoppedRecord(t *testing.T, blobs blob.Store, id marchwarden.TraceID) dispatch.End {
	t.Helper()
	put := func(data []byte, err error) blob.Ref {
		if err != nil {
			t.Fatal(err)
		}
		ref, err := blobs.Put(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	result := put(marchwarden.EncodeResult(&marchwarden.Result{TraceID: id, Answer: "So far.", CostMetadata: marchwarden.CostMetadata{ModelID: "m"}}))
	there, err := trace.OpenDir(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	out, err := there.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []trace.Step{&trace.Start{Format: trace.Format, TraceID: id, Researcher: "pi", StartedAt: time.Now(), Request: question}, &trace.Complete{Result: result, Interrupted: true}} {
		if err := out.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return dispatch.End{Status: dispatch.Canceled, Result: result, Trace: put(there.Text(id))}
}

// What a task that was stopped has found comes home, however long it takes to hand it over, and
// when it ends at the moment of the stop. The run has not ended before.
func TestWhatWasStoppedComesHome(t *testing.T) {
	for _, takes := range []time.Duration{0, time.Second, 20 * time.Second} {
		t.Run(takes.String(), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { comesHome(t, takes) }) })
	}
}

func comesHome(t *testing.T, takes time.Duration) {
	id, err := marchwarden.ParseTraceID("00000000-0000-7000-8000-000000000001")
	if err != nil {
		t.Fatal(err)
	}
	e := &slow{blobs: blob.NewMem(), takes: takes, watched: make(chan struct{}), canceled: make(chan struct{})}
	e.end = stoppedRecord(t, e.blobs, id)
	traces, err := trace.OpenDir(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer traces.Close()
	c := &submit.Cluster{Engine: e, NewID: func() marchwarden.TraceID { return id }, Now: time.Now, Home: &submit.Home{Engine: e, Traces: traces, Blobs: blob.NewMem()}}
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-e.watched; stop() }()
	res, err := c.Research(ctx, question, nil)
	if err != nil || res.Answer != "So far." {
		t.Errorf("%+v, %v", res, err)
	}
	if _, ended, err := traces.Size(t.Context(), id); err != nil || !ended {
		t.Errorf("its record is not here: %v", err)
	}
}
