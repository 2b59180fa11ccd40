package scholar

import (
	"context"
	"net/http"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

// Pace is the least time between two requests that arXiv asks for.
const Pace = 3 * time.Second

// longestWait is the longest that a request waits because arXiv said so; one that
// would have to wait longer fails at once.
const longestWait = 10 * time.Second

// turns lets one request at a time go to arXiv, at least a gap after the one
// before it began, and not before arXiv wants the next.
type turns struct {
	gap   time.Duration
	now   func() time.Time
	sleep func(context.Context, time.Duration) error

	turn chan struct{} // holds one token while a request is under way
	next time.Time     // no request before; guarded by the token
}

// do runs a request when its turn has come. One that arXiv refuses for the moment
// is tried once more.
func (t *turns) do(ctx context.Context, request func() error) error {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return stopped(ctx)
	}
	defer func() { <-t.turn }()
	err := t.once(ctx, request)
	if again(err) && t.next.Sub(t.now()) <= longestWait {
		err = t.once(ctx, request)
	}
	return err
}

// once waits and runs the request.
func (t *turns) once(ctx context.Context, request func() error) error {
	wait := t.next.Sub(t.now())
	if wait > longestWait {
		return marchwarden.Errorf(marchwarden.CodeRateLimited, "%s: asked to come back in %v", arxivName, wait.Round(time.Second))
	}
	if t.sleep(ctx, max(wait, 0)) != nil {
		return stopped(ctx)
	}
	t.next = t.now().Add(t.gap)
	err := request()
	if marchwarden.CodeOf(err) == marchwarden.CodeUnavailable && httpapi.Status(err) == 0 {
		t.next = t.now() // no server was reached, so none is spared by waiting
	}
	if wait, ok := httpapi.AskedWait(err); ok && t.next.Before(t.now().Add(wait)) {
		t.next = t.now().Add(wait)
	}
	return err
}

// again reports whether a request that failed may succeed in a moment.
func again(err error) bool {
	status := httpapi.Status(err)
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

func stopped(ctx context.Context) error {
	return marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "%s: the request was stopped", arxivName)
}
