package limit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Limiter is one limit as one process sees it; it is a dispatch.Limiter. It is safe for
// concurrent use, needs no closing, and has a goroutine of its own only while a caller waits or
// something is to be given back.
//
// Take fails at once with CodeExhausted if so much can never be used, or not today, and
// with CodeRateLimited and a method RetryAfter if the provider accepts no calls for longer than 30
// s. It fails with CodeUnavailable when the store cannot be reached for 15 s: without knowing what
// others use, no call may be made.
type Limiter struct {
	cfg Config
	alg algorithm // nil if there is no limit: then the store is not used, which would cost an exchange for each use

	mu      sync.Mutex    // guards what follows
	slow    int64         // the provider accepts no call before this moment of the shared clock
	slowing int64         // a moment that is to be shared; 0 for none
	queue   []*waiter     // without leave, in order
	backs   []grant       // of which so many were not used
	running bool          // the goroutine of the exchange
	changed chan struct{} // closed when something of this is new to those who pause

	took int64 // an exchange takes this long; the exchange alone touches it
}

// Config is what a Limiter is made of. Store and Now are needed.
type Config struct {
	Name  string // in errors, such as "anthropic/requests"
	Rate  Rate   // none is no limit: it waits only while its provider accepts no calls
	Store Store
	Now   func() time.Time // the clock of this process, which Slow is told by
}

// New makes a limiter.
func New(cfg Config) *Limiter {
	return &Limiter{cfg: cfg, alg: algorithmOf(cfg.Rate), changed: make(chan struct{})}
}

// waiter waits for leave to use n.
type waiter struct {
	n     int
	leave chan answer // has room for one
}

type answer struct {
	grant grant
	err   error
}

// Take implements dispatch.Limiter. A slot of a paced limit that has passed is gone, used
// or not. What is taken of a day and not settled keeps others waiting, as it may come back,
// until it counts as used a quarter of an hour later.
func (l *Limiter) Take(ctx context.Context, n int) (settle func(used int), err error) {
	if l.alg == nil {
		return func(int) {}, l.pass(ctx)
	}
	if n <= 0 {
		return func(int) {}, ctx.Err()
	}
	g, err := l.acquire(ctx, n)
	if err != nil {
		return nil, err
	}
	var once sync.Once
	return func(used int) {
		once.Do(func() { l.giveBack(g, g.n-used) })
	}, nil
}

// Slow implements dispatch.Limiter. A provider can ask for ten minutes at most; then a caller tries
// again.
func (l *Limiter) Slow(until time.Time) {
	d := until.Sub(l.cfg.Now())
	at := l.cfg.Store.Now().Add(min(d, longestSlow)).UnixNano()
	if d <= 0 || !l.heard(at) {
		return
	}
	if l.alg != nil {
		l.change(func() { l.slowing = max(l.slowing, at) })
	}
}

// Limited implements dispatch.Limiter.
func (l *Limiter) Limited() bool { return l.alg != nil }

// rests reports whether nothing is under way that would be lost.
func (l *Limiter) rests() bool {
	now := l.cfg.Store.Now().UnixNano()
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.running && l.slow <= now
}

// acquire waits until n may be used.
func (l *Limiter) acquire(ctx context.Context, n int) (grant, error) {
	if n > max(1, int(l.cfg.Rate.N)) {
		return grant{}, &marchwarden.Error{Code: marchwarden.CodeExhausted, Hint: "raise the limit, or ask for less at once",
			Message: fmt.Sprintf("%s: a use of %s is more than %s ever allows", l.cfg.Name, l.cfg.Rate.amount(float64(n)), l.cfg.Rate)}
	}
	w := &waiter{n: n, leave: make(chan answer, 1)}
	for first := true; ; first = false {
		if ctx.Err() != nil {
			return grant{}, l.canceled(ctx)
		}
		l.mu.Lock()
		if first {
			l.queue = append(l.queue, w)
		} else { // it had leave that came to nothing
			l.queue = slices.Insert(l.queue, 0, w)
		}
		l.run()
		l.mu.Unlock()
		select {
		case a := <-w.leave:
			if a.err != nil {
				return grant{}, a.err
			}
			ok, err := l.await(ctx, a.grant)
			if ok && err == nil {
				return a.grant, nil
			}
			l.giveBack(a.grant, n)
			if err != nil {
				return grant{}, l.canceled(ctx)
			}
		case <-ctx.Done():
			l.quit(w)
			return grant{}, l.canceled(ctx)
		}
	}
}

func (l *Limiter) canceled(ctx context.Context) error {
	return marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "wait for %s, which is limited to %s", l.cfg.Name, l.cfg.Rate)
}

// await waits for the moment of a grant. It is false if the moment was missed, or if no call may be
// made before a later one.
func (l *Limiter) await(ctx context.Context, g grant) (bool, error) {
	for {
		slow, changed := l.look()
		now := l.cfg.Store.Now().UnixNano()
		switch {
		case g.when < slow && now < slow:
			return false, nil
		case now >= g.when:
			return !l.alg.late(g, now), nil
		}
		if err := sleep(ctx, g.when-now, changed); err != nil {
			return false, err
		}
	}
}

// quit leaves the line, and gives back what came at the same moment.
func (l *Limiter) quit(w *waiter) {
	// There may be no caller left to wait for.
	l.change(func() { l.queue = slices.DeleteFunc(l.queue, func(o *waiter) bool { return o == w }) })
	select {
	case a := <-w.leave:
		if a.err == nil {
			l.giveBack(a.grant, w.n)
		}
	default:
	}
}

// giveBack has the exchange tell the store that n of a grant were not used, unless that would change
// nothing there.
func (l *Limiter) giveBack(g grant, n int) {
	if n != 0 || g.day != "" {
		g.unused = n
		l.change(func() { l.backs = append(l.backs, g) })
	}
}

// change changes what mu guards, and wakes those who pause.
func (l *Limiter) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
	l.run()
	close(l.changed)
	l.changed = make(chan struct{})
}

// run starts the exchange if it rests. The caller has mu.
func (l *Limiter) run() {
	if !l.running && l.alg != nil {
		l.running = true
		go l.exchange()
	}
}

const (
	// longestSlow is the longest pause that a provider gets; then a caller tries again.
	longestSlow = 10 * time.Minute
	// longestWait is how long a caller waits because a provider asked for it.
	longestWait = 30 * time.Second
)

// look is the moment before which no call may be made, and what is closed when it moves.
func (l *Limiter) look() (int64, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slow, l.changed
}

// heard lets no call be made before a moment of the shared clock. It is false if none may for as
// long already.
func (l *Limiter) heard(at int64) bool {
	at = min(at, l.cfg.Store.Now().Add(longestSlow).UnixNano())
	if slow, _ := l.look(); at <= slow {
		return false
	}
	l.change(func() { l.slow = max(l.slow, at) })
	return true
}

// fault says that no call may be made for longer than a caller waits.
type fault struct {
	error
	after time.Duration // 0 if another try is of no use soon
}

// RetryAfter is when to come back, as the faults of models say it.
func (f fault) RetryAfter() (time.Duration, bool) { return f.after, f.after > 0 }

// Retryable says whether another try is of use, as the faults of models say it.
func (f fault) Retryable() bool { return f.after > 0 }

// Unwrap exposes the code.
func (f fault) Unwrap() error { return f.error }

// later is the error of those who would have to wait too long, or nil.
func later(name string, slow, now int64) error {
	after := time.Duration(slow - now)
	if after <= longestWait {
		return nil
	}
	return fault{&marchwarden.Error{Code: marchwarden.CodeRateLimited, Hint: "try again after " + time.Unix(0, slow).UTC().Format(time.RFC3339),
		Message: fmt.Sprintf("%s: the provider accepts no calls for another %v", name, after.Round(time.Second))}, after}
}

// sleep waits for nanoseconds, until ctx ends and then fails, or until something changes.
func sleep(ctx context.Context, nanoseconds int64, changed <-chan struct{}) error {
	timer := time.NewTimer(time.Duration(nanoseconds))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// pass waits while the provider accepts no calls.
func (l *Limiter) pass(ctx context.Context) error {
	for {
		slow, changed := l.look()
		now := l.cfg.Store.Now().UnixNano()
		if err := cmp.Or(ctx.Err(), later(l.cfg.Name, slow, now)); err != nil || now >= slow {
			return err
		}
		_ = sleep(ctx, slow-now, changed) // the end of ctx shows
	}
}
