package submit

import (
	"context"
	"errors"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

// A server that ends lets go of its tasks; a caller that goes, or whose time is up, does
// not.
func TestReleased(t *testing.T) {
	for cause, want := range map[error]bool{runs.ErrShutdown: true, dispatch.ErrReleased: true, errors.New("gone"): false, context.Canceled: false} {
		ctx, end := context.WithCancelCause(t.Context())
		if released(ctx) {
			t.Error("it is released before its end")
		}
		end(cause)
		if got := released(ctx); got != want {
			t.Errorf("%v: %v", cause, got)
		}
	}
}

// broken is an engine whose records cannot be read.
type broken struct{ dispatch.Engine }

func (broken) Look(context.Context, marchwarden.TraceID) (dispatch.State, error) {
	return dispatch.State{Status: dispatch.Working}, nil
}

func (broken) Record(context.Context, dispatch.Task) ([]byte, error) {
	return []byte("{}\n"), marchwarden.Errorf(marchwarden.CodeUnavailable, "the hub is away")
}

// A record that cannot be read is an error, and not a short record.
func TestClusterWithoutItsRecord(t *testing.T) {
	f := &Cluster{Engine: broken{}}
	_, err1 := f.Trace(t.Context(), marchwarden.TraceID{})
	_, _, err2 := f.Size(t.Context(), marchwarden.TraceID{})
	_, err3 := f.SoFar(t.Context(), marchwarden.TraceID{})
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, marchwarden.CodeUnavailable) {
			t.Errorf("%v", err)
		}
	}
}
