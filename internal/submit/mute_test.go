package submit_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
)

// mute is an engine that takes tasks and tells nothing of them.
type mute struct{ dispatch.Client }

func (mute) Submit(context.Context, dispatch.Task) error { return nil }

func (mute) Watch(context.Context, dispatch.Watching) iter.Seq2[dispatch.Event, error] {
	return func(func(dispatch.Event, error) bool) {}
}

func TestMuteEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &submit.Dispatcher{Engine: mute{}, Blobs: blob.NewMem(), Investigation: dispatchtest.ID(),
			Network: func() []dispatch.Member { return []dispatch.Member{{Name: "web"}} }}
		res, err := d.Dispatch(t.Context(), "web", marchwarden.Request{Question: "Where is Paris?"}, nil)
		if res != nil || marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
			t.Errorf("it gives %+v, %v", res, err)
		}
	})
}

// unserved is an engine without workers: a task waits until it is canceled.
type unserved struct {
	mute
	watched  chan struct{} // hears of the first watch
	canceled chan struct{} // closed by Cancel
}

func (e unserved) Watch(ctx context.Context, w dispatch.Watching) iter.Seq2[dispatch.Event, error] {
	return func(yield func(dispatch.Event, error) bool) {
		select {
		case e.watched <- struct{}{}:
		case <-ctx.Done():
		case <-e.canceled:
			end := dispatch.CanceledEnd("")
			yield(dispatch.Event{Task: w.Task, Kind: dispatch.Ended, End: &end}, nil)
		}
		<-ctx.Done()
	}
}

func (e unserved) Cancel(context.Context, marchwarden.TraceID, string) error {
	close(e.canceled)
	return nil
}

func TestNoWorkerHadBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := unserved{watched: make(chan struct{}), canceled: make(chan struct{})}
		d := &submit.Dispatcher{Engine: e, Blobs: blob.NewMem(), Investigation: dispatchtest.ID(),
			Network: func() []dispatch.Member { return []dispatch.Member{{Name: "web"}} }}
		ctx, stop := context.WithCancel(t.Context())
		go func() { <-e.watched; stop() }()
		_, err := d.Dispatch(ctx, "web", marchwarden.Request{Question: "Where is Paris?"}, nil)
		if !errors.Is(err, dispatch.ErrNotAsked) || marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
			t.Errorf("canceled while it waited: %v", err)
		}
	})
}
