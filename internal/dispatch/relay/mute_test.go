package relay_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/relay"
)

// mute is an engine that takes tasks and tells nothing of them.
type mute struct{ dispatch.Client }

func (mute) Submit(context.Context, dispatch.Task) error { return nil }

func (mute) Watch(context.Context, dispatch.Watching) iter.Seq2[dispatch.Event, error] {
	return func(func(dispatch.Event, error) bool) {}
}

func TestMuteEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := relay.New(relay.Config{Engine: mute{}, Blobs: blob.NewMem(), Investigation: dispatchtest.ID(),
			Members: func() []dispatch.Member { return []dispatch.Member{{Name: "web"}} }})
		res, err := d.Dispatch(t.Context(), "web", marchwarden.Request{Question: "Where is Paris?"}, nil)
		if res != nil || marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
			t.Errorf("it gives %+v, %v", res, err)
		}
	})
}
