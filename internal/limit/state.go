package limit

import (
	"encoding/json"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// formatVersion is the version of the state below. A reader refuses a later one.
const formatVersion = 1

// state is what all share of one limit, as it is kept in a store. Times are nanoseconds
// since 1970 on the shared clock.
type state struct {
	V    int   `json:"v"`
	Slow int64 `json:"slow,omitempty"` // nothing before this moment

	// Paced: the next free slot.
	Next int64 `json:"next,omitempty"`

	// In windows: what was used in which stretch of Width; Used[0] is stretch number At
	// since 1970. By the day: what is set aside, and not known to be used.
	Width int64   `json:"width,omitempty"`
	At    int64   `json:"at,omitempty"`
	Used  []int64 `json:"used,omitempty"`

	// By the day: which one, as 2006-01-02, and what is used for certain.
	Day   string `json:"day,omitempty"`
	Spent int64  `json:"spent,omitempty"`
}

func (s state) encode() ([]byte, error) {
	s.V = formatVersion
	return json.Marshal(s)
}

func decode(b []byte) (state, error) {
	var s state
	if len(b) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return state{}, marchwarden.Wrap(err, marchwarden.CodeCorrupt, "read the state of a limit")
	}
	if s.V > formatVersion {
		return state{}, marchwarden.Errorf(marchwarden.CodeUnsupported, "the state of a limit has version %d, and this program knows %d", s.V, formatVersion)
	}
	return s, nil
}

// grant is leave to use n.
type grant struct {
	n    int
	at   int64  // paced: the slot; else the stretch it was taken in
	when int64  // when it was given; the slot of a paced one
	day  string // by the day: which
}

// An algorithm is the arithmetic of one kind of rate: pure functions of a state and a
// moment.
type algorithm interface {
	// take gives leave to as many of wants, from the first on, as may be used now. If it
	// does not reach the last, again is when to ask once more, at the latest. An error is
	// of the first that has no leave: waiting is of no use.
	take(s *state, now, lead int64, wants []int) (given []grant, again int64, err error)
	// back is told that n of a grant were not used; less than 0 is that more were.
	back(s *state, now int64, g grant, n int)
	// late reports whether a grant can no longer be used.
	late(g grant, now int64) bool
}

// algorithmOf is the arithmetic of a rate; nil of none.
func algorithmOf(r Rate) algorithm {
	switch r.Per {
	case 0:
		return nil
	case time.Second:
		return paced{rate: r, step: max(1, int64(float64(time.Second)*(1+slack)/r.N))}
	case Day:
		return daily{rate: r}
	}
	return window{rate: r, width: int64(r.Per) / stretches}
}

// Paced rates.
const (
	// slack is the part of a second by which uses may come later than their slots, in
	// all, without more than N of them falling into one second.
	slack = 0.06
	// tooLate is how much of that a waiter may use up; the rest is for the way to the
	// provider and for clocks that differ.
	tooLate = int64(30 * time.Millisecond)
	// ahead is how far into the future slots are given out: far enough for the slowest
	// exchange with a store, and not so far that a slot means nothing when it comes.
	ahead = int64(time.Second)
	// block is how much of the time ahead one exchange may take for itself.
	block = ahead / 4
)

type paced struct {
	rate Rate
	step int64 // from slot to slot
}

func (p paced) take(s *state, now, lead int64, wants []int) (given []grant, again int64, err error) {
	p.heal(s, now)
	var begun int64
	for _, n := range wants {
		first := max(s.Next, now+lead, s.Slow)
		if begun == 0 {
			begun = first
		}
		switch {
		case first-now > ahead:
			return given, first - ahead/2, nil
		case first-begun > block:
			return given, now + block/8, nil // it is the turn of others
		}
		// A use of n comes at one moment: it needs the slots of a second on either side.
		at := first + int64(n-1)*p.step
		s.Next = first + int64(2*n-1)*p.step
		given = append(given, grant{n: n, at: at, when: at})
	}
	return given, 0, nil
}

// heal drops times that only a clock gone wrong can have written.
func (p paced) heal(s *state, now int64) {
	if furthest := max(now, s.Slow) + 2*ahead + 3*int64(time.Second) + 3*p.step; s.Next > furthest {
		s.Next = max(now, s.Slow) + ahead
	}
}

// back gives the last slots to others if they are still to come. One that has passed is gone,
// used or not: another use in its place would come too close to others.
func (p paced) back(s *state, now int64, g grant, n int) {
	if first := g.at - int64(g.n-1)*p.step; n == g.n && first > now && s.Next == g.at+int64(g.n)*p.step {
		s.Next = first
	}
}

func (paced) late(g grant, now int64) bool { return now-g.at > tooLate }
