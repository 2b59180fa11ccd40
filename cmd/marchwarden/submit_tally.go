package main

import (
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// tallyEvery is the least time between two plain lines.
const tallyEvery = 10 * time.Second

// tally counts the questions of a submission for people who wait: by a bar on a terminal,
// and elsewhere by a line now and then, which goes by the clock since a question may
// take long.
type tally struct {
	a         *app
	all, done int
	bar       *term.Bar // nil when quiet
	told      time.Time // the last plain line
}

func (a *app) newTally(c *settings.Settings, all, left int, quiet bool) *tally {
	t := &tally{a: a, all: all, done: all - left, told: a.Now()}
	if quiet {
		return t
	}
	if t.done > 0 {
		a.note("going on: %d of %d questions are done", t.done, all)
	}
	t.bar = term.NewBar(a.Stderr, "questions", a.liveOn(c, a.Stderr))
	t.bar.Begin(t.done)
	return t
}

// count takes in a question that is done.
func (t *tally) count(well bool) {
	t.done++
	if !well {
		t.bar.Fail()
	}
	switch now := t.a.Now(); {
	case t.bar.Live():
		t.bar.Step(t.done, t.all)
	case t.bar != nil && t.done < t.all && now.Sub(t.told) >= tallyEvery:
		t.told = now
		t.a.note("%d of %d done, %s", t.done, t.all, t.bar.Pace(t.done, t.all))
	}
}

func (t *tally) close() { t.bar.Close() }
