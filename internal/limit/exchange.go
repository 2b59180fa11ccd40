package limit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// patience is how long a store is tried before those who wait are told: longer than
	// hubs need to agree on another leader.
	patience = 15 * time.Second
	// longestPause is the longest between two tries.
	longestPause = int64(500 * time.Millisecond)
	// atOnce bounds how many one exchange asks for.
	atOnce = 64
	// longestLead bounds how much later than now slots begin because exchanges are slow.
	longestLead = int64(300 * time.Millisecond)
)

// job is what one exchange with the store is about.
type job struct {
	waiters []*waiter
	wants   []int
	backs   []returned
	slow    int64
}

// outcome is what came of it.
type outcome struct {
	given []grant
	again int64 // when to ask for the others, on the shared clock; 0 for at once
	err   error // of the first without leave; of all, if every is set
	every bool
}

// exchange asks the store for leave, for as long as a caller waits, and tells it what was given
// back.
func (l *Limiter) exchange() {
	for {
		j, ok := l.next()
		if !ok {
			return
		}
		out := l.trade(j)
		pause := l.deliver(j, out)
		if pause > 0 {
			_ = sleep(context.Background(), pause, l.kick) // it ends by the timer or by kick
		}
	}
}

// next is what is to be done; the exchange ends if there is nothing.
func (l *Limiter) next() (job, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := job{waiters: slices.Clone(l.queue[:min(len(l.queue), atOnce)]), backs: l.backs, slow: l.slowing}
	l.backs, l.slowing = nil, 0
	for _, w := range j.waiters {
		j.wants = append(j.wants, w.n)
	}
	l.running = len(j.waiters) > 0 || len(j.backs) > 0 || j.slow > 0
	return j, l.running
}

// deliver hands out what was given, and returns how long to rest before the next
// exchange.
func (l *Limiter) deliver(j job, out outcome) (pause int64) {
	now := l.cfg.Store.Now().UnixNano()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, g := range out.given {
		if !l.answer(j.waiters[i], answer{grant: g}) { // it left meanwhile
			l.backs = append(l.backs, returned{grant: g, n: g.n})
		}
	}
	left := j.waiters[len(out.given):]
	switch {
	case out.err != nil && out.every:
		for _, w := range slices.Clone(l.queue) {
			l.answer(w, answer{err: out.err})
		}
		return 0
	case out.err != nil && len(left) > 0:
		l.answer(left[0], answer{err: out.err})
		return 0
	case len(left) == 0 || len(l.backs) > 0 || l.slowing > 0:
		return 0
	}
	// Not all who wait ask at the same moment.
	wait := max(out.again-now, 0)
	return wait + rand.Int64N(min(wait, ahead)/2+int64(time.Millisecond))
}

// answer tells a waiter, unless it has left. The caller has mu.
func (l *Limiter) answer(w *waiter, a answer) bool {
	i := slices.Index(l.queue, w)
	if i < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	w.leave <- a
	return true
}

// trade has one exchange with the store, as often as others come first. It fails when the
// store has not answered for all of patience.
func (l *Limiter) trade(j job) outcome {
	heard := l.cfg.Now() // from the store
	for attempt := 0; ; attempt++ {
		if attempt > 0 {
			longest := max(int64(time.Millisecond)<<min(attempt, 6), l.took*int64(min(attempt, 4)))
			_ = sleep(context.Background(), rand.Int64N(min(longest, longestPause)), nil)
		}
		out, done, err := l.attempt(j)
		switch {
		case done:
			return out
		case err == nil || errors.Is(err, ErrConflict):
			heard = l.cfg.Now()
		case errors.Is(err, marchwarden.CodeCorrupt) || errors.Is(err, marchwarden.CodeUnsupported):
			return outcome{err: err, every: true}
		case errors.Is(err, ErrClosed) || l.cfg.Now().Sub(heard) >= patience:
			return l.unreachable(err)
		case errors.Is(err, errSwap):
			j.backs = nil // it may have been done, and must not be done twice
		}
	}
}

// errSwap marks a failed swap that may have been done or not.
var errSwap = errors.New("write the state")

// attempt works out what the state allows and puts the next one in its place. It is not done if
// another process was first.
func (l *Limiter) attempt(j job) (out outcome, done bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b, rev, err := l.cfg.Store.Load(ctx)
	if err != nil {
		return outcome{}, false, err
	}
	s, err := decode(b)
	if err != nil {
		return outcome{}, false, err
	}
	l.heard(s.Slow)
	began, before := l.cfg.Store.Now().UnixNano(), s.Slow
	if slow, _ := l.look(); max(slow, j.slow) > began {
		s.Slow = min(max(s.Slow, slow, j.slow), began+int64(longestSlow))
	}
	for _, b := range j.backs {
		l.alg.back(&s, began, b.grant, b.n)
	}
	out.given, out.again, out.err = l.alg.take(&s, began, min(2*l.took, longestLead), j.wants)
	if len(out.given) == 0 && len(j.backs) == 0 && s.Slow == before {
		return l.judged(out, s, began), true, nil
	}
	if b, err = s.encode(); err != nil {
		return outcome{err: err, every: true}, true, nil
	}
	err = l.cfg.Store.Swap(ctx, b, rev)
	if took := l.cfg.Store.Now().UnixNano() - began; err == nil || errors.Is(err, ErrConflict) {
		l.took = max(took, l.took-(l.took-took)/8)
	}
	switch {
	case errors.Is(err, ErrConflict):
		return outcome{}, false, err
	case err != nil:
		return outcome{}, false, fmt.Errorf("%w: %w", errSwap, err)
	}
	l.heard(s.Slow)
	return l.judged(out, s, began), true, nil
}

// judged is an outcome in which those who would wait too long for their provider are told
// so, and errors name the limit.
func (l *Limiter) judged(out outcome, s state, now int64) outcome {
	if err := later(l.cfg.Name, s.Slow, now); err != nil {
		return outcome{given: out.given, err: err, every: true}
	}
	if out.err != nil {
		out.err = &marchwarden.Error{Code: marchwarden.CodeOf(out.err), Message: l.cfg.Name, Hint: marchwarden.HintOf(out.err), Err: out.err}
	}
	return out
}

func (l *Limiter) unreachable(fault error) outcome {
	return outcome{every: true, err: &unreachableError{&marchwarden.Error{Code: marchwarden.CodeUnavailable, Err: fault,
		Message: l.cfg.Name + ": what others use of this limit cannot be known, so no call may be made", Hint: "check that the engine can be reached"}}}
}

// unreachableError says that a store was tried for long enough.
type unreachableError struct{ error }

// Unwrap exposes the code.
func (e *unreachableError) Unwrap() error { return e.error }

// Retryable says that another try is of no use soon, as the faults of models say it.
func (*unreachableError) Retryable() bool { return false }
