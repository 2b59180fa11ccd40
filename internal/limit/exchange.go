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
	backs   []grant
	slow    int64
}

// exchange asks the store for leave, for as long as a caller waits, and tells it what was given
// back.
func (l *Limiter) exchange() {
	for {
		j, ok := l.next()
		if !ok {
			return
		}
		given, again, err := l.trade(j)
		if pause, changed := l.deliver(j, given, again, err); pause > 0 {
			_ = sleep(context.Background(), pause, changed) // it ends by one of the two
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

// deliver hands out what was given, and returns how long to rest before the next exchange, if
// nothing changes. again is when to ask for the others, on the shared clock. An error that a use is
// too large is of the first without leave, any other of all.
func (l *Limiter) deliver(j job, given []grant, again int64, err error) (pause int64, changed <-chan struct{}) {
	now := l.cfg.Store.Now().UnixNano()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, g := range given {
		if !l.answer(j.waiters[i], answer{grant: g}) { // it left meanwhile
			g.unused = g.n
			l.backs = append(l.backs, g)
		}
	}
	left := j.waiters[len(given):]
	if err != nil {
		told := left[:min(len(left), 1)]
		if marchwarden.CodeOf(err) != marchwarden.CodeExhausted {
			told = slices.Clone(l.queue)
		}
		for _, w := range told {
			l.answer(w, answer{err: err})
		}
		return 0, nil
	}
	if len(left) == 0 || len(l.backs) > 0 || l.slowing > 0 {
		return 0, nil
	}
	// Not all who wait ask at the same moment.
	wait := max(again-now, 0)
	return wait + rand.Int64N(min(wait, ahead)/2+int64(time.Millisecond)), l.changed
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
func (l *Limiter) trade(j job) (given []grant, again int64, err error) {
	heard := l.cfg.Now() // from the store
	for attempt := 0; ; attempt++ {
		if attempt > 0 {
			longest := max(int64(time.Millisecond)<<min(attempt, 6), l.took*int64(min(attempt, 4)))
			_ = sleep(context.Background(), rand.Int64N(min(longest, longestPause)), nil)
		}
		if given, again, err = l.attempt(j); err == nil || slices.Contains(final, marchwarden.CodeOf(err)) {
			return given, again, err
		}
		switch {
		case errors.Is(err, ErrConflict):
			heard = l.cfg.Now()
		case errors.Is(err, ErrClosed) || l.cfg.Now().Sub(heard) >= patience:
			return nil, 0, fault{error: &marchwarden.Error{Code: marchwarden.CodeUnavailable, Err: err, Hint: "check that the engine can be reached",
				Message: l.cfg.Name + ": what others use of this limit cannot be known, so no call may be made"}}
		case errors.Is(err, errSwap):
			j.backs = nil // it may have been done, and must not be done twice
		}
	}
}

// final are the faults that another try does not mend.
var final = []marchwarden.Code{marchwarden.CodeCorrupt, marchwarden.CodeUnsupported, marchwarden.CodeExhausted, marchwarden.CodeRateLimited}

// errSwap marks a failed swap that may have been done or not.
var errSwap = errors.New("write the state")

// attempt works out what the state allows and puts the next one in its place, unless another process was first.
// Those who would wait too long for their provider are told so.
func (l *Limiter) attempt(j job) (given []grant, again int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b, rev, err := l.cfg.Store.Load(ctx)
	if err != nil {
		return nil, 0, err
	}
	s, err := decode(b)
	if err != nil {
		return nil, 0, err
	}
	l.heard(s.Slow)
	began, before := l.cfg.Store.Now().UnixNano(), s.Slow
	if slow, _ := l.look(); max(slow, j.slow) > began {
		s.Slow = min(max(s.Slow, slow, j.slow), began+int64(longestSlow))
	}
	for _, b := range j.backs {
		l.alg.back(&s, began, b)
	}
	given, again, refused := l.alg.take(&s, began, min(2*l.took, longestLead), j.wants)
	if len(given) > 0 || len(j.backs) > 0 || s.Slow != before {
		err = l.cfg.Store.Swap(ctx, s.encode(), rev)
		if took := l.cfg.Store.Now().UnixNano() - began; err == nil || errors.Is(err, ErrConflict) {
			l.took = max(took, l.took-(l.took-took)/8)
		}
		switch {
		case errors.Is(err, ErrConflict):
			return nil, 0, err
		case err != nil:
			return nil, 0, fmt.Errorf("%w: %w", errSwap, err)
		}
		l.heard(s.Slow)
	}
	if err := later(l.cfg.Name, s.Slow, began); err != nil {
		return given, again, err
	}
	if refused != nil {
		refused = &marchwarden.Error{Code: marchwarden.CodeOf(refused), Message: l.cfg.Name, Hint: marchwarden.HintOf(refused), Err: refused}
	}
	return given, again, refused
}
