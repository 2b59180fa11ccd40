package run_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Somebody who follows an investigation while it is made, in its folder, sees lanes come
// and change, never that it is over before it is, and at the end what is there.
func TestFollowingWhileItIsMade(t *testing.T) {
	type seen struct {
		board  *run.Board
		boards int
		fault  string
	}
	watched := make(chan seen, 1)
	inv := investigateWatched(t, func(traces *trace.Dir, blobs blob.Store, id marchwarden.TraceID) {
		go func() {
			var s seen
			defer func() { watched <- s }()
			for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
				b, over, err := run.ReadBoard(context.Background(), traces, blobs, id)
				if errors.Is(err, marchwarden.CodeNotFound) && s.board == nil {
					continue // it has not begun
				}
				if err != nil {
					s.fault = err.Error()
					return
				}
				if !cmp.Equal(b, s.board, ids) {
					s.boards++
				}
				// Between its making and its lock a trace is empty and seems to be over; who
				// goes on reading sees it go on.
				if s.board = b; over && b.Ended {
					return
				}
			}
			s.fault = "it was never over"
		}()
	})
	s := <-watched
	if s.fault != "" || s.board == nil || !s.board.Ended {
		t.Fatalf("%s after %d boards: %+v", s.fault, s.boards, s.board)
	}
	if s.boards < 5 {
		t.Errorf("only %d boards were seen", s.boards)
	}
	whole := newShelf()
	whole.texts = inv.texts
	want, _ := read(t, whole, inv.blobs, inv.res.TraceID)
	if diff := cmp.Diff(want, s.board, ids); diff != "" {
		t.Error(diff)
	}
}
