package limit

import (
	"encoding/json"
	"fmt"
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

func (s state) encode() []byte {
	s.V = formatVersion
	b, _ := json.Marshal(s) // numbers and a day always marshal
	return b
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

	unused int // of n, when it is given back; less than 0 if more was used
}

// An algorithm is the arithmetic of one kind of rate: pure functions of a state and a
// moment.
type algorithm interface {
	// take gives leave to as many of wants, from the first on, as may be used now. If it
	// does not reach the last, again is when to ask once more, at the latest. An error is
	// of the first that has no leave: waiting is of no use.
	take(s *state, now, lead int64, wants []int) (given []grant, again int64, err error)
	// back is told how much of a grant was unused.
	back(s *state, now int64, g grant)
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
func (p paced) back(s *state, now int64, g grant) {
	if first := g.at - int64(g.n-1)*p.step; g.unused == g.n && first > now && s.Next == g.at+int64(g.n)*p.step {
		s.Next = first
	}
}

func (paced) late(g grant, now int64) bool { return now-g.at > tooLate }

// stretches is into how many stretches a window is divided. What was used in a stretch
// counts until the window has passed it by a whole stretch: that much later than it was
// given may a use come.
const stretches = 60

// poll is how often a limiter looks whether others have given something back.
const poll = int64(time.Second)

// window is the arithmetic of a rate per minute or hour.
type window struct {
	rate  Rate
	width int64 // of a stretch
}

func (w window) take(s *state, now, _ int64, wants []int) (given []grant, again int64, err error) {
	s.regrid(w.width, now/w.width, stretches+1)
	for _, n := range wants {
		if s.Slow > now {
			return given, s.Slow, nil
		}
		if over := s.sum() + int64(n) - int64(w.rate.N); over > 0 {
			return given, min(s.ends(over, stretches+2), now+poll), nil
		}
		at := now / w.width
		s.add(at, int64(n))
		given = append(given, grant{n: n, at: at, when: now})
	}
	return given, 0, nil
}

func (w window) back(s *state, now int64, g grant) {
	s.regrid(w.width, now/w.width, stretches+1)
	s.add(g.at, int64(-g.unused))
}

func (w window) late(g grant, now int64) bool { return now-g.when > w.width/2 }

// regrid makes the stretches those of a width, from keep before the current one on. What
// is older goes; what is of another width, or of a future that only a clock gone wrong
// can know, counts as of now.
func (s *state) regrid(width, current int64, keep int64) (gone int64) {
	old := *s
	s.Width, s.At, s.Used = width, current-keep, nil
	for i, n := range old.Used {
		at := old.At + int64(i)
		switch {
		case old.Width != width || at > current+2:
			s.add(current, n)
		case at < s.At:
			gone += n
		default:
			s.add(at, n)
		}
	}
	return gone
}

// add adds to a stretch, if it still counts, and never makes it less than nothing.
func (s *state) add(at, n int64) {
	i := at - s.At
	if i < 0 || n < 0 && i >= int64(len(s.Used)) {
		return
	}
	for int64(len(s.Used)) <= i {
		s.Used = append(s.Used, 0)
	}
	s.Used[i] = max(0, s.Used[i]+n)
}

func (s *state) sum() int64 {
	var all int64
	for _, n := range s.Used {
		all += n
	}
	return all
}

// ends is when so much of what is used will count no more.
func (s *state) ends(over, keep int64) int64 {
	for i, n := range s.Used {
		if over -= n; over <= 0 {
			return (s.At + int64(i) + keep) * s.Width
		}
	}
	return (s.At + int64(len(s.Used)) + keep) * s.Width
}

// heldFor is how many minutes a use may take. What is set aside for longer counts as used:
// the process that did it is gone, and what it spent is unknown.
const heldFor = 15

// daily is the arithmetic of a rate per day. What is set aside comes back when the true
// cost is known.
type daily struct{ rate Rate }

func (d daily) take(s *state, now, _ int64, wants []int) (given []grant, again int64, err error) {
	d.turn(s, now)
	for _, n := range wants {
		switch free := int64(d.rate.N) - s.Spent; {
		case s.Slow > now:
			return given, s.Slow, nil
		case int64(n) > free:
			resets := "midnight UTC"
			if day, err := time.Parse(time.DateOnly, s.Day); err == nil {
				resets = day.AddDate(0, 0, 1).Format(time.RFC3339)
			}
			return given, 0, &marchwarden.Error{Code: marchwarden.CodeExhausted, Hint: "the day's limit begins anew at " + resets + ", or raise it",
				Message: fmt.Sprintf("of %s, %s are used today, and this may take %s", d.rate, d.rate.amount(float64(s.Spent)), d.rate.amount(float64(n)))}
		case int64(n) > free-s.sum():
			return given, now + poll/2, nil
		}
		at := now / int64(time.Minute)
		s.add(at, int64(n))
		given = append(given, grant{n: n, at: at, when: now, day: s.Day})
	}
	return given, 0, nil
}

// turn begins a new day at midnight. A clock that is behind by less than a day uses the day that
// others have begun.
func (d daily) turn(s *state, now int64) {
	today := time.Unix(0, now).UTC()
	if s.Day < today.Format(time.DateOnly) || s.Day > today.AddDate(0, 0, 1).Format(time.DateOnly) {
		s.Day, s.Spent, s.Used = today.Format(time.DateOnly), 0, nil
	}
	s.Spent += s.regrid(int64(time.Minute), now/int64(time.Minute), heldFor)
}

// back settles a grant: what was not used is free, the rest is used for certain.
func (d daily) back(s *state, now int64, g grant) {
	d.turn(s, now)
	if g.day != s.Day {
		return // the day is over, and what it used with it
	}
	if i := g.at - s.At; i >= 0 && i < int64(len(s.Used)) && s.Used[i] >= int64(g.n) {
		s.Used[i] -= int64(g.n)
		s.Spent += int64(g.n - g.unused)
		return
	}
	s.Spent = max(0, s.Spent-int64(g.unused)) // it was counted as used already
}

// late is when the day is over that a grant is of, which back knows; else it can be used.
func (daily) late(g grant, now int64) bool { return now-g.when > int64(time.Minute) }
