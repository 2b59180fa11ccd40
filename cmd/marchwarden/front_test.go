//go:build unix

package main

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// TestFrontEnds ends a server whose researcher is a cluster while the model thinks: the
// record can be read as far as it is, and the task goes on to its end without the server.
func TestFrontEnds(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t)
	hub := w.background(t, `hub \S+ at (nats://[0-9.:]+);`, "hub", "--listen", "127.0.0.1:0", "--http", "off")
	w.background(t, `worker (\S+) serves`, "worker", "--engine", hub, "--researchers", "web", "--model", "openai/gpt-test")
	s := w.serve(t, w.home(t), "pi", "--engine", hub)
	held := w.hold(4)
	c := newHost(t, s.url, "", eraModern)
	c.tasks = true
	id := c.beginTask(t, webtest.Startups)
	arrives(t, held)
	text, err := c.read(t.Context(), "marchwarden://trace/"+id)
	if err != nil || !strings.HasSuffix(text, "\n") || strings.Count(text, "\n") < 2 {
		t.Errorf("%v: the record of a task under way: %q", err, text)
	}
	s.endBy(t, syscall.SIGTERM)
	w.hold(0)
	out, err := w.spec(w.home(t), "watch", "--engine", hub, "--json", id).run(0)
	if err != nil || out.code != exitOK {
		t.Fatalf("%v: exit %d: %s", err, out.code, out.stderr)
	}
	res, err := marchwarden.DecodeResult(out.stdout)
	if err != nil || res.CostMetadata.BudgetExhausted || len(res.Citations) == 0 {
		t.Errorf("%v: it did not go on: %+v", err, res)
	}
}

// A server that ends lets go of its tasks; a caller that goes, or whose time is up, does
// not.
func TestUntilShutdown(t *testing.T) {
	gone := errors.New("gone")
	for cause, released := range map[error]bool{runs.ErrShutdown: true, gone: false, context.Canceled: false} {
		outer, end := context.WithCancelCause(t.Context())
		ctx, done := untilShutdown(outer)
		end(cause)
		<-ctx.Done()
		if got := context.Cause(ctx); errors.Is(got, dispatch.ErrReleased) != released || !released && !errors.Is(got, cause) {
			t.Errorf("%v: %v", cause, got)
		}
		done()
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
func TestFrontWithoutItsRecord(t *testing.T) {
	f := &front{engine: broken{}}
	_, err1 := f.Trace(t.Context(), marchwarden.TraceID{})
	_, _, err2 := f.Size(t.Context(), marchwarden.TraceID{})
	_, err3 := f.SoFar(t.Context(), marchwarden.TraceID{})
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, marchwarden.CodeUnavailable) {
			t.Errorf("%v", err)
		}
	}
}
