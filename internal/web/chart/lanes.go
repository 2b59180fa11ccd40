package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// look is how the bars of a state are told from others besides by colour: by their
// height, by a letter, and by the rhythm of their strokes, which the style sheet has.
type look struct {
	state  run.State
	class  constant
	height float64 // part of the full height
	letter string
}

var looks = [...]look{
	{run.Planned, "planned", 0.15, ""},
	{run.Planning, "planning", 0.55, ""},
	{run.Searching, "searching", 1, "S"},
	{run.Reading, "reading", 1, "R"},
	{run.Writing, "writing", 1, "W"},
	{run.Checking, "checking", 0.55, ""},
}

// lookOf is the look of a state; others than those with a look are drawn as planned.
func lookOf(s run.State) int {
	return max(0, slices.IndexFunc(looks[:], func(l look) bool { return l.state == s }))
}

// ends reports whether a state is one that a lane stays in and that takes no time.
func ends(s run.State) bool { return s == run.Done || s == run.Failed }

// Segment is a time that a lane spent in one state. To is zero while it lasts. One of
// Done or Failed says when the lane came to its end.
type Segment struct {
	State    run.State
	From, To time.Time
	Critical bool // the end of the whole waited for it
}

// Lane is one row.
type Lane struct {
	Label    string
	State    run.State // what it is at; empty for the state of its last segment
	Segments []Segment // in the order of time
}

// Timeline is a run. Now is when it is looked at while it is Going; otherwise the axis
// ends where the last segment does.
type Timeline struct {
	Title string
	Began time.Time // zero for when the first segment began
	Now   time.Time
	Going bool
	Lanes []Lane
}

const (
	mostLanes = 200  // that are drawn
	fewLanes  = 40   // that have room for letters and words
	mostMarks = 2000 // that are drawn
)

// mark is a bar: one segment, or several too short to be told apart, which look like
// the longest of them.
type mark struct {
	lane     int
	state    run.State
	from, to time.Duration // since the beginning
	long     time.Duration
	critical bool
}

// stretch is a timeline measured.
type stretch struct {
	Timeline
	whole time.Duration // what the axis shows
	at    time.Duration // now
	marks []mark
	rows  []row
}

// row is a lane in numbers.
type row struct {
	label    string
	last     run.State
	from, to time.Duration // of work, without waiting to begin
	worked   bool
	critical time.Duration
	by       [len(looks)]time.Duration // by state
}

func (r row) took() time.Duration { return max(0, r.to-r.from) }

// Lanes is a run as lanes on one axis of time: a row for each, bars for what it was at,
// the chain of bars that the end waited for outlined and joined, a line where now is.
func Lanes(t Timeline) Chart {
	s := measure(t)
	title := cmp.Or(line(t.Title), "The run as lanes")
	return Chart{Picture: picture(title, s.sentence(), s.draw), Table: s.table(title)}
}

// measure turns times into durations since the beginning, all within the axis.
func measure(t Timeline) *stretch {
	s := &stretch{Timeline: t}
	last := t.Began
	for _, l := range t.Lanes {
		for _, g := range l.Segments {
			if s.Began.IsZero() || t.Began.IsZero() && g.From.Before(s.Began) {
				s.Began = g.From
			}
			for _, at := range []time.Time{g.From, g.To} {
				if at.After(last) {
					last = at
				}
			}
		}
	}
	if t.Going && t.Now.After(last) {
		last = t.Now
	}
	s.at = max(0, last.Sub(s.Began))
	s.whole = max(s.at, time.Millisecond)
	for i, l := range t.Lanes {
		s.rows = append(s.rows, s.row(i, l))
	}
	if len(t.Lanes) > mostLanes {
		s.marks = slices.DeleteFunc(s.marks, func(m mark) bool { return m.lane >= mostLanes })
	}
	every := s.marks
	for fine := s.whole / 1000; ; fine *= 2 {
		if s.marks = merged(every, fine); len(s.marks) <= mostMarks || fine > s.whole/2 {
			return s
		}
	}
}

// row sums up a lane and leaves its segments as marks.
func (s *stretch) row(i int, l Lane) row {
	r := row{label: l.Label, last: run.Planned}
	for _, g := range l.Segments {
		m := mark{lane: i, state: g.State, critical: g.Critical}
		m.from = min(max(0, g.From.Sub(s.Began)), s.at)
		if m.to = s.at; !g.To.IsZero() {
			m.to = min(max(0, g.To.Sub(s.Began)), s.at)
		}
		m.to = max(m.to, m.from)
		r.last = g.State
		if ends(g.State) {
			r.to = max(r.to, m.from)
			continue
		}
		look := lookOf(g.State)
		if m.state = looks[look].state; m.state != run.Planned {
			if !r.worked || m.from < r.from {
				r.from = m.from
			}
			r.worked, r.to = true, max(r.to, m.to)
		}
		m.long = m.to - m.from
		r.by[look] += m.long
		if g.Critical {
			r.critical += m.long
		}
		s.marks = append(s.marks, m)
	}
	if !r.worked {
		r.from = r.to
	}
	r.last = cmp.Or(l.State, r.last)
	return r
}

// merged joins neighbours that are finer than can be seen.
func merged(in []mark, fine time.Duration) []mark {
	var out []mark
	for _, m := range in {
		if n := len(out) - 1; n >= 0 && out[n].lane == m.lane && m.from >= out[n].from && max(m.to, out[n].to)-out[n].from <= fine {
			if m.long > out[n].long {
				out[n].state, out[n].critical, out[n].long = m.state, m.critical, m.long
			}
			out[n].to = max(m.to, out[n].to)
			continue
		}
		out = append(out, m)
	}
	return out
}

// sentence says the picture in words.
func (s *stretch) sentence() string {
	var by [len(looks)]time.Duration
	done, failed := 0, 0
	for _, r := range s.rows {
		for i, d := range r.by {
			by[i] += d
		}
		switch r.last {
		case run.Done:
			done++
		case run.Failed:
			failed++
		}
	}
	out := []string{fmt.Sprintf("%s over %s: %d done, %d failed, %d under way or waiting", plural(len(s.rows), "lane"), elapsed(s.at), done, failed, len(s.rows)-done-failed)}
	for i, l := range looks {
		if by[i] > 0 {
			out = append(out, string(l.state)+" "+elapsed(by[i]))
		}
	}
	return strings.Join(out, "; ") + "."
}

// table is the numbers of all lanes, drawn or not.
func (s *stretch) table(title string) template.HTML {
	head := []string{"Lane", "State", "Began after"}
	for _, l := range looks {
		head = append(head, strings.ToUpper(string(l.state[:1]))+string(l.state[1:]))
	}
	head = append(head, "Critical", "Took")
	var rows [][]string
	for _, r := range s.rows {
		cells := []string{r.label, string(r.last), elapsed(r.from)}
		for i := range looks {
			cells = append(cells, elapsed(r.by[i]))
		}
		rows = append(rows, append(cells, elapsed(r.critical), elapsed(r.took())))
	}
	return table(title, head, rows)
}
