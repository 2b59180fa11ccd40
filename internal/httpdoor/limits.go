package httpdoor

import (
	"errors"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// lru keeps a bounded number of values by key: those of the latest keys, and those that are busy.
// A value moves from the older half to the younger when it is used; the older half makes room.
type lru[V any] struct {
	half int
	busy func(V) bool // nil: none is

	mu         sync.Mutex
	young, old map[string]V
}

func newLRU[V any](most int, busy func(V) bool) *lru[V] {
	return &lru[V]{half: most / 2, busy: busy, young: map[string]V{}}
}

func (l *lru[V]) get(key string, fresh func() V) V {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := l.young[key]
	if ok {
		return v
	}
	if v, ok = l.old[key]; !ok {
		v = fresh()
	}
	if len(l.young) >= l.half {
		maps.DeleteFunc(l.old, func(_ string, v V) bool { return l.busy == nil || !l.busy(v) })
		l.young, l.old = maps.Collect(maps.All(l.old)), l.young
	}
	delete(l.old, key)
	l.young[key] = v
	return v
}

// look gives the value of a key, if it is there.
func (l *lru[V]) look(key string) (v V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v, ok = l.young[key]; !ok {
		v, ok = l.old[key]
	}
	return v, ok
}

// take removes a key and gives its value, if it is there.
func (l *lru[V]) take(key string) (v V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v, ok = l.young[key]; !ok {
		v, ok = l.old[key]
	}
	delete(l.young, key)
	delete(l.old, key)
	return v, ok
}

// caller is what one principal or address has going on.
type caller struct {
	pace     *rate.Limiter
	inFlight atomic.Int64
}

func (c *caller) busy() bool { return c.inFlight.Load() > 0 }

// take lets a caller, who must leave then, make one more request, or answers the request.
func (d *Door) take(w http.ResponseWriter, key string) (leave func(), ok bool) {
	c := d.callers.get(key, func() *caller {
		return &caller{pace: rate.NewLimiter(rate.Limit(d.cfg.Rate), d.cfg.Burst)}
	})
	leave = func() { c.inFlight.Add(-1) }
	atOnce := c.inFlight.Add(1)
	if now := d.cfg.Now(); !c.pace.AllowN(now, 1) {
		leave()
		retryAfter(w, max(1, int(math.Ceil((1-c.pace.TokensAt(now))/d.cfg.Rate))))
		d.refuse(w, "rate", http.StatusTooManyRequests, "too many requests per second", "slow down")
		return nil, false
	}
	if atOnce > int64(d.cfg.MaxInFlight/2) {
		leave()
		retryAfter(w, retrySoon)
		d.refuse(w, "caller_busy", http.StatusTooManyRequests, "too many requests at once from this caller", "wait for answers before asking more")
		return nil, false
	}
	return leave, true
}

// tally counts the requests that are inside, until it is closed. Its zero value is open.
type tally struct {
	inside sync.WaitGroup // counted up while it is open
	closed atomic.Bool
	mu     sync.Mutex // held while a request enters, or the tally is closed
}

// enter lets a request in, unless the tally is closed. Only those that count are waited for.
func (t *tally) enter(counts bool) (leave func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed.Load():
		return nil, false
	case !counts:
		return func() {}, true
	}
	t.inside.Add(1)
	return t.inside.Done, true
}

// close lets no request in any more; first is false if it was closed before.
func (t *tally) close() (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.closed.Swap(true)
}

// body reads the whole body of a request: the handler gets all of it or none, and net/http notices
// from then on when the caller goes away. If it is not as it should be, the request is answered.
func (d *Door) body(w *answer, r *http.Request) ([]byte, bool) {
	if types := r.Header.Values("Content-Type"); r.Method == http.MethodPost && (len(types) != 1 || mediaType(types[0]) != "application/json") {
		d.refuse(w, "content_type", http.StatusUnsupportedMediaType, "the body must be application/json", "set Content-Type")
		return nil, false
	}
	var body []byte
	var err error
	late := false
	large := r.ContentLength > d.cfg.MaxBody
	if !large {
		late = inTime(d.cfg.BodyTimeout, w.conn.SetReadDeadline, func() { body, err = io.ReadAll(io.LimitReader(r.Body, d.cfg.MaxBody+1)) })
		large = int64(len(body)) > d.cfg.MaxBody // by the one byte that tells whether there is more
	}
	if !large && !late && err == nil {
		return body, true
	}
	w.Header().Set("Connection", "close")
	switch {
	case late:
		d.refuse(w, "body_slow", http.StatusRequestTimeout, "the body did not come in time", "")
	case large:
		d.refuse(w, "body_size", http.StatusRequestEntityTooLarge, "the body is over the limit of this server", "")
	default:
		d.refuse(w, "body_broken", http.StatusBadRequest, "the body broke off", "")
	}
	return nil, false
}

var errTooSlow = errors.New("the body is too slow")

// inTime runs something that waits for the other end of a connection, and reports whether it took too
// long: a deadline in the past then ends the waiting, and the connection is of no more use. A timer sets
// it, so that no deadline is left behind.
func inTime(most time.Duration, deadline func(time.Time) error, wait func()) (slow bool) {
	done := make(chan struct{})
	late := time.AfterFunc(most, func() {
		defer close(done)
		_ = deadline(time.Unix(1, 0)) // a writer of a test may have none
	})
	wait()
	if late.Stop() {
		return false
	}
	<-done // the connection is not to be touched after the handler has returned
	return true
}

func mediaType(s string) string {
	t, _, err := mime.ParseMediaType(s)
	if err != nil {
		return ""
	}
	return t
}
