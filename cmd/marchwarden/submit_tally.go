package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

const (
	// tallyLive is the least time between two drawings on a terminal, tallyPlain that
	// between two plain lines.
	tallyLive  = 200 * time.Millisecond
	tallyPlain = 10 * time.Second
)

// tally counts the questions of a submission for people who wait: one line that is drawn
// over itself on a terminal, and a line now and then elsewhere. Its methods are safe for
// concurrent use.
type tally struct {
	a     *app
	all   int
	live  bool
	quiet bool
	began time.Time
	first int // done before

	mu     sync.Mutex // guards what follows, and writing
	now    int        // done here
	failed int        // of those done here
	drawn  time.Time
}

func (a *app) newTally(all, left int, quiet bool) *tally {
	name, _ := a.env("TERM")
	t := &tally{a: a, all: all, first: all - left, quiet: quiet, began: a.now(), live: a.errStyle().Width > 0 && name != "" && name != "dumb"}
	if t.first > 0 && !quiet {
		a.note("going on: %d of %d questions are done", t.first, all)
	}
	t.drawn = t.began
	return t
}

// count takes in a question that is done.
func (t *tally) count(well bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now++
	if !well {
		t.failed++
	}
	every := tallyPlain
	if t.live {
		every = tallyLive
	}
	if at := t.a.now(); !t.quiet && at.Sub(t.drawn) >= every {
		t.drawn = at
		t.draw(at)
	}
}

// done counts all that are done.
func (t *tally) done() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first + t.now
}

// draw shows how far it is; mu is held.
func (t *tally) draw(at time.Time) {
	line := t.words(at)
	if !t.live {
		t.a.note("%s", line)
		return
	}
	const width = 24
	full := width * (t.first + t.now) / t.all
	fmt.Fprintf(t.a.stderr, "\r\x1b[2K[%s%s] %s", strings.Repeat("█", full), strings.Repeat("·", width-full), line)
}

func (t *tally) words(at time.Time) string {
	parts := []string{fmt.Sprintf("%d of %d done", t.first+t.now, t.all)}
	if t.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", t.failed))
	}
	if took := at.Sub(t.began); t.now > 0 && took > 0 {
		rate := float64(t.now) / took.Seconds()
		parts = append(parts, rateWords(rate))
		if left := t.all - t.first - t.now; left > 0 {
			parts = append(parts, "about "+term.Duration(time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second))+" left")
		}
	}
	return strings.Join(parts, ", ")
}

// rateWords is how many a second, or a minute if they are few.
func rateWords(perSecond float64) string {
	if perSecond < 1 {
		return fmt.Sprintf("%.1f/min", perSecond*60)
	}
	return fmt.Sprintf("%.1f/s", perSecond)
}

// close says how far it came.
func (t *tally) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.quiet:
	case t.live:
		t.draw(t.a.now())
		fmt.Fprintln(t.a.stderr)
	default:
		t.a.note("%s", t.words(t.a.now()))
	}
}
