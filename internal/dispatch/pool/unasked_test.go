package pool

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// A member that is not in the network any more, or that its caller no longer waits for,
// was not asked: that costs nothing.
func TestAMemberThatIsNotThereWasNotAsked(t *testing.T) {
	t.Parallel()
	h := &house{}
	h.research = hangs
	p := newPool(t, h.seat("files"))
	if err := ask(p, "gone"); !errors.Is(err, dispatch.ErrNotAsked) || marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
		t.Errorf("one who is not there: %v", err)
	}
	ctx, done := context.WithTimeout(t.Context(), -time.Minute)
	defer done()
	if _, err := p.Dispatch(ctx, "files", marchwarden.Request{Question: "why?"}, nil); !errors.Is(err, dispatch.ErrNotAsked) {
		t.Errorf("one whom its caller does not wait for: %v", err)
	}
}

// What an external researcher says when it fails goes into the log; a researcher of this
// program is understood.
func TestWordsOfAnExternalResearcher(t *testing.T) {
	t.Parallel()
	said := func() error {
		return &dispatch.Said{Words: marchwarden.Errorf(marchwarden.CodeRateLimited, "Traceback: key hunter2"), Plain: marchwarden.Errorf(marchwarden.CodeRateLimited, "it failed (rate_limited)")}
	}
	failing := &house{}
	failing.research = func(context.Context, *fake, marchwarden.Sink) (*marchwarden.Result, error) { return nil, said() }
	closed := &house{fail: func(int) error { return said() }}
	own := failing.seat("own")
	own.Trust = dispatch.Own
	var log bytes.Buffer
	p := configured(t, Config{Seats: []Seat{failing.seat("lamps"), closed.seat("closed"), own}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	wantError(t, ask(p, "lamps"), marchwarden.CodeRateLimited, "researcher lamps: it failed (rate_limited)")
	wantError(t, ask(p, "closed"), marchwarden.CodeRateLimited, "researcher closed cannot be reached: it failed (rate_limited)")
	wantError(t, ask(p, "own"), marchwarden.CodeRateLimited, "researcher own: Traceback: key hunter2")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"lamps", "closed"} {
		if !strings.Contains(log.String(), `researcher=`+name+` said="Traceback: key hunter2"`) {
			t.Errorf("the log lacks what %s said: %s", name, log.String())
		}
	}
}
