package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// TestTally counts five questions of which two were done before: by plain lines not too
// often, and by a bar that no terminal wraps.
func TestTally(t *testing.T) {
	var said bytes.Buffer
	a := world(t, nil)
	now := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	a.Stderr, a.Now = &said, func() time.Time { return now }
	c, err := a.loadConfig()
	if err != nil {
		t.Fatal(err)
	}
	count := func(ta *tally) string {
		for _, well := range []bool{true, false, true} {
			now = now.Add(6 * time.Second)
			ta.count(well)
		}
		ta.close()
		defer said.Reset()
		return said.String()
	}
	const plain = "marchwarden: going on: 2 of 5 questions are done\nmarchwarden: 4 of 5 done, 1 failed, 10.0/min, 6.00 s left\n"
	if got := count(newTally(a, c, 5, 3, false)); got != plain {
		t.Errorf("plain: %q", got)
	}
	if got := count(newTally(a, c, 5, 3, true)); got != "" {
		t.Errorf("quiet: %q", got)
	}
	ta := newTally(a, c, 5, 3, true)
	ta.bar = term.NewBar(a.Stderr, "questions", term.ProgressConfig{Style: term.Style{Width: 60}, Live: true, Now: a.Now})
	ta.bar.Begin(2)
	got := count(ta)
	if !strings.Contains(got, "questions · 4 of 5 · ████████████████░░░░ ") {
		t.Errorf("bar: %q", got)
	}
	for line := range strings.SplitSeq(got, "\r") {
		line, _, _ = strings.Cut(line, "\x1b")
		if n := len([]rune(line)); n > 59 {
			t.Errorf("%d cells: %q", n, line)
		}
	}
}
