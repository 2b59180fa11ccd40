package term

import (
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// axis is the time that all bars of a frame share.
type axis struct {
	from   time.Time
	length time.Duration
	now    time.Time // where what lasts ends
}

// lengths are those of an axis, so that bars grow for a while before they shrink.
var lengths = []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute, 5 * time.Minute,
	10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 24 * time.Hour}

// axisOf is the axis of a board: the whole of a run that is over, and some more of one that is not.
func axisOf(b *run.Board, now time.Time) axis {
	x := axis{from: b.Began, now: now}
	if x.from.IsZero() { // nothing is known of it yet
		x.from = now
	}
	if !b.Began.IsZero() && (b.Ended || b.Interrupted || b.Last.After(now)) { // another host's clock may be ahead
		x.now = b.Last
	}
	took := x.now.Sub(x.from)
	if b.Ended || b.Interrupted {
		x.length = max(took, time.Millisecond)
		return x
	}
	for _, x.length = range lengths {
		if took <= x.length {
			return x
		}
	}
	for x.length < took && x.length < 1<<61 {
		x.length *= 2
	}
	return x
}

// marks is how a state is drawn in a bar: the denser, the nearer to an answer.
var marks = map[run.State]struct {
	block, letter string
	look          Look
}{
	run.Planned: {"·", ".", Dim}, run.Planning: {"░", "p", Plain}, run.Searching: {"▒", "s", Tint},
	run.Reading: {"▓", "r", Tint}, run.Writing: {"█", "w", Green}, run.Checking: {"▚", "c", Yellow},
}

// bar is a lane in so many cells, each of which shows what took most of its time.
func (x axis) bar(l run.Lane, cells int, ascii bool) []Run {
	var out []Run
	for _, s := range x.states(l, cells) {
		m, text := marks[s], " "
		switch {
		case s == run.Failed && ascii:
			m.look, text = Red, "x"
		case s == run.Failed:
			m.look, text = Red, "×"
		case m.block != "" && ascii:
			text = m.letter
		case m.block != "":
			text = m.block
		}
		if n := len(out); n > 0 && out[n-1].Look == m.look {
			out[n-1].Text += text
		} else {
			out = append(out, Run{text, m.look})
		}
	}
	return out
}

func (x axis) states(l run.Lane, cells int) []run.State {
	spent := make([]map[run.State]time.Duration, cells)
	last := 0
	for _, s := range l.Spans {
		to := s.To
		if to.IsZero() || to.After(x.now) {
			to = x.now
		}
		from, until := max(0, s.From.Sub(x.from)), min(to.Sub(x.from), x.length)
		if until < from || until < 0 {
			continue
		}
		for i := x.cell(from, cells); i <= x.cell(until, cells); i++ {
			begin, end := x.at(i, cells), x.at(i+1, cells)
			took := min(until, end) - max(from, begin)
			if took < 0 || took == 0 && until > from {
				continue
			}
			if spent[i] == nil {
				spent[i] = map[run.State]time.Duration{}
			}
			spent[i][s.State] += took + 1 // one of no length is to be seen, too
			last = max(last, i)
		}
	}
	out := make([]run.State, cells)
	for i, by := range spent {
		most := time.Duration(0)
		for _, s := range order {
			if by[s] >= most && by[s] > 0 {
				out[i], most = s, by[s]
			}
		}
	}
	if l.State == run.Failed && cells > 0 {
		out[last] = run.Failed
	}
	return out
}

// order is in which states are looked at: of two that took as long, the later one counts.
var order = []run.State{run.Planned, run.Planning, run.Searching, run.Reading, run.Writing, run.Checking}

// cell is the one that a time since the beginning falls into, and at is when one begins.
func (x axis) cell(d time.Duration, cells int) int {
	return min(cells-1, max(0, int(float64(d)/float64(x.length)*float64(cells))))
}

func (x axis) at(cell, cells int) time.Duration {
	return time.Duration(float64(x.length) * float64(cell) / float64(cells))
}

func began(l run.Lane) time.Time {
	if l.Sent.IsZero() && l.State != run.Planned && len(l.Spans) > 0 {
		return l.Spans[0].From
	}
	return l.Sent
}

// ended is when a lane that is over was: the end of its last span.
func ended(l run.Lane, otherwise time.Time) time.Time {
	if n := len(l.Spans); n > 0 && !l.Spans[n-1].To.IsZero() {
		return l.Spans[n-1].To
	}
	return otherwise
}
