package limit

import (
	"fmt"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

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

func (w window) back(s *state, now int64, g grant, n int) {
	s.regrid(w.width, now/w.width, stretches+1)
	s.add(g.at, int64(-n))
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
			return given, 0, d.spent(s, n)
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

func (d daily) spent(s *state, n int) error {
	resets := "midnight UTC"
	if day, err := time.Parse(time.DateOnly, s.Day); err == nil {
		resets = day.AddDate(0, 0, 1).Format(time.RFC3339)
	}
	return &marchwarden.Error{
		Code:    marchwarden.CodeExhausted,
		Message: fmt.Sprintf("of %s, %s are used today, and this may take %s", d.rate, d.rate.amount(float64(s.Spent)), d.rate.amount(float64(n))),
		Hint:    "the day's limit begins anew at " + resets + ", or raise it",
	}
}

// back settles a grant: what was not used is free, the rest is used for certain.
func (d daily) back(s *state, now int64, g grant, n int) {
	d.turn(s, now)
	if g.day != s.Day {
		return // the day is over, and what it used with it
	}
	if i := g.at - s.At; i >= 0 && i < int64(len(s.Used)) && s.Used[i] >= int64(g.n) {
		s.Used[i] -= int64(g.n)
		s.Spent += int64(g.n - n)
		return
	}
	s.Spent = max(0, s.Spent-int64(n)) // it was counted as used already
}

// late is when the day is over that a grant is of, which back knows; else it can be used.
func (daily) late(g grant, now int64) bool { return now-g.when > int64(time.Minute) }
