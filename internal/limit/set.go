package limit

import (
	"context"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// mostKept is how many limiters a set remembers before those at rest are forgotten: there
// is one for each host that pages are read from.
const mostKept = 4096

// SetConfig is what a Set is made of. Store and Now are needed.
type SetConfig struct {
	Rules Rules
	// Store is the store of a key, always of the same state for the same key.
	Store func(key string) Store
	Now   func() time.Time // the clock of this process
	// Tell tells others that no call may be made before a moment of the shared clock; they hand it
	// to their Heard. Nil tells no one; then others learn it from the store of a key that has a
	// rule, and not at all of one that has none.
	Tell func(key string, until time.Time)
}

// Set is all limits of one engine, as one process sees them: the same limiter for the
// same key. It is safe for concurrent use.
type Set struct {
	cfg SetConfig

	mu    sync.Mutex // guards what follows
	byKey map[string]*Limiter
}

// NewSet makes a set; nothing is read before a limit is used.
func NewSet(cfg SetConfig) *Set {
	return &Set{cfg: cfg, byKey: map[string]*Limiter{}}
}

// Limit is the limit of a key such as "anthropic/requests" or
// "host:example.org/requests". One that no rule limits waits only after Slow.
func (s *Set) Limit(key string) dispatch.Limiter { return s.limit(key) }

func (s *Set) limit(key string) *Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.byKey[key]; ok {
		return l
	}
	if len(s.byKey) >= mostKept {
		s.forget()
	}
	rate, _ := s.cfg.Rules.For(key)
	l := New(Config{Name: key, Rate: rate, Store: s.cfg.Store(key), Now: s.cfg.Now})
	if s.cfg.Tell != nil {
		l.cfg.Tell = func(until time.Time) { s.cfg.Tell(key, until) }
	}
	s.byKey[key] = l
	return l
}

// forget drops limiters that no call waits for and that hold no call back. The caller has mu.
func (s *Set) forget() {
	for key, l := range s.byKey {
		if l.rests() {
			delete(s.byKey, key)
		}
	}
}

// Heard is told that no call may be made before a moment of the shared clock. It is also remembered
// for keys that are not in use here: what has no rule is in no store to be read later.
func (s *Set) Heard(key string, until time.Time) {
	s.limit(key).heard(until.UnixNano())
}

// Use is what is used of a limit at a moment, for people.
type Use struct {
	Key  string  `json:"key"`
	Rate string  `json:"rate"` // such as "50/s"
	Used float64 `json:"used"` // of N in the current window; of a paced limit, slots that are given out and still to come; of money, dollars
	Of   float64 `json:"of"`   // N
	// Slow is until when the provider accepts no calls; zero if it does.
	Slow time.Time `json:"slow,omitzero"`
}

// Look reads what is used of a limit. Its errors are those of the store.
func Look(ctx context.Context, key string, rate Rate, store Store) (Use, error) {
	b, _, err := store.Load(ctx)
	if err != nil {
		return Use{}, err
	}
	s, err := decode(b)
	if err != nil {
		return Use{}, err
	}
	now := store.Now().UnixNano()
	u := Use{Key: key, Rate: rate.String(), Of: rate.N}
	switch alg := algorithmOf(rate).(type) {
	case paced:
		alg.heal(&s, now)
		u.Used = float64(max(0, s.Next-now) / alg.step)
	case window:
		s.regrid(alg.width, now/alg.width, stretches+1)
		u.Used = float64(s.sum())
	case daily:
		alg.turn(&s, now)
		u.Used = float64(s.Spent + s.sum())
	}
	if rate.Money {
		u.Used, u.Of = u.Used/Millionths, u.Of/Millionths
	}
	if s.Slow > now {
		u.Slow = time.Unix(0, s.Slow).UTC()
	}
	return u, nil
}
