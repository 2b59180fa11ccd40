package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// This part draws a run as lanes on one axis of time. The picture is a pure function of
// its board. Colour is never alone: states differ in the height and rhythm of their bars,
// too. What is too much to be drawn is counted and stays in the table below the picture.

// look is how the bars of a state are told from others, not by colour alone: by their
// height, by a letter, and by the rhythm of their strokes, which the style sheet has.
type look struct {
	state  run.State // also its class
	height float64   // part of the full height
	letter string
}

var looks = [...]look{
	{run.Planned, 0.15, ""},
	{run.Planning, 0.55, ""},
	{run.Searching, 1, "S"},
	{run.Reading, 1, "R"},
	{run.Writing, 1, "W"},
	{run.Checking, 0.55, ""},
}

// lookOf is the look of a state; others than those with a look are drawn as planned.
func lookOf(s run.State) int {
	return max(0, slices.IndexFunc(looks[:], func(l look) bool { return l.state == s }))
}

const (
	mostLanes = 200  // that are drawn
	fewLanes  = 40   // that have room for letters and words
	mostMarks = 1500 // that are drawn
)

// mark is a bar: one span, or several too short to be told apart, like the longest of them.
type mark struct {
	lane     int
	state    run.State
	from, to time.Duration // since the beginning
	long     time.Duration
}

type stretch struct {
	going bool
	began time.Time
	whole time.Duration // what the axis shows
	at    time.Duration // now
	marks []mark
	rows  []laneRow
}

type laneRow struct {
	label    string
	last     run.State
	from, to time.Duration // of work, without waiting to begin
	worked   bool
	by       [len(looks)]time.Duration // by state
}

func (r laneRow) took() time.Duration { return max(0, r.to-r.from) }

// Lanes is a run as lanes on one axis of time: a row for each, bars for what it was at, a
// line where now is while it goes on. Its numbers are in a table below.
func Lanes(b *run.Board, now time.Time, going bool) h.Node {
	s := measure(b, now, going)
	title := "How the research went"
	if going {
		title = "How the research goes"
	}
	return h.Fill(`<figure class="chart">{}<details><summary>The same as numbers</summary><div class="chart-table" tabindex="0" role="group" aria-label="The same as numbers">{}</div></details></figure>`,
		s.picture(title), s.table(title))
}

func laneLabel(b *run.Board, l run.Lane) string {
	switch {
	case l.Number > 0:
		return fmt.Sprintf("%d %s", l.Number, l.Researcher)
	case len(b.Lanes) > 1:
		return "investigator"
	}
	return l.Researcher
}

// measure turns times into durations since the beginning, all within the axis.
func measure(b *run.Board, now time.Time, going bool) *stretch {
	s := &stretch{going: going, began: b.Began}
	last := b.Began
	for _, l := range b.Lanes {
		for _, g := range l.Spans {
			if s.began.IsZero() || b.Began.IsZero() && g.From.Before(s.began) {
				s.began = g.From
			}
			for _, at := range []time.Time{g.From, g.To} {
				if at.After(last) {
					last = at
				}
			}
		}
	}
	if going && now.After(last) {
		last = now
	}
	s.at = max(0, last.Sub(s.began))
	s.whole = max(s.at, time.Millisecond)
	for i, l := range b.Lanes {
		s.rows = append(s.rows, s.row(i, laneLabel(b, l), l))
	}
	s.marks = slices.DeleteFunc(s.marks, func(m mark) bool { return m.lane >= mostLanes })
	every := s.marks
	for fine := s.whole / 1000; ; fine *= 2 {
		if s.marks = merged(every, fine); len(s.marks) <= mostMarks || fine > s.whole/2 {
			return s
		}
	}
}

// mark is a span on the axis.
func (s *stretch) mark(lane int, g run.Span) mark {
	within := func(t time.Time) time.Duration { return min(max(0, t.Sub(s.began)), s.at) }
	m := mark{lane: lane, state: looks[lookOf(g.State)].state, from: within(g.From), to: s.at}
	if !g.To.IsZero() {
		m.to = max(m.from, within(g.To))
	}
	m.long = m.to - m.from
	return m
}

// row sums up a lane and leaves its spans as marks.
func (s *stretch) row(i int, label string, l run.Lane) laneRow {
	r := laneRow{label: label, last: run.Planned}
	for _, span := range l.Spans {
		m := s.mark(i, span)
		if m.state != run.Planned {
			if !r.worked || m.from < r.from {
				r.from = m.from
			}
			r.worked, r.to = true, max(r.to, m.to)
		}
		r.last = m.state
		r.by[lookOf(m.state)] += m.long
		s.marks = append(s.marks, m)
	}
	if l.State != "" {
		r.last = l.State
	}
	return r
}

// merged joins neighbours that are finer than can be seen.
func merged(in []mark, fine time.Duration) []mark {
	var out []mark
	for _, m := range in {
		if n := len(out) - 1; n >= 0 && out[n].lane == m.lane && m.from >= out[n].from && max(m.to, out[n].to)-out[n].from <= fine {
			if m.long > out[n].long {
				out[n].state, out[n].long = m.state, m.long
			}
			out[n].to = max(m.to, out[n].to)
			continue
		}
		out = append(out, m)
	}
	return out
}

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
	out := []string{fmt.Sprintf("%s over %s: %d done, %d failed, %d under way or waiting", term.Plural(len(s.rows), "lane"), elapsed(s.at), done, failed, len(s.rows)-done-failed)}
	return strings.Join(append(out, stateTimes(by)...), "; ") + "."
}

func stateTimes(by [len(looks)]time.Duration) []string {
	var out []string
	for i, l := range looks {
		if by[i] > 0 {
			out = append(out, string(l.state)+" "+elapsed(by[i]))
		}
	}
	return out
}

// table is the numbers of all lanes, drawn or not.
func (s *stretch) table(title string) h.Node {
	head := []string{"Lane", "State", "Began after"}
	for _, l := range looks {
		head = append(head, strings.ToUpper(string(l.state[:1]))+string(l.state[1:]))
	}
	var rows [][]Cell
	for _, r := range s.rows {
		row := []Cell{{Text: r.label}, {Text: string(r.last)}, {Text: elapsed(r.from)}}
		for _, took := range r.by {
			row = append(row, Cell{Text: elapsed(took)})
		}
		rows = append(rows, append(row, Cell{Text: elapsed(r.took())}))
	}
	return Table(title, append(head, "Took"), rows)
}

// Cell is a cell of a table: a text, and a bar before it where it is drawn.
type Cell struct {
	Text string
	Bar  bool
	Part float64 // how long the bar is, from 0 to 1
}

// mostRows is how many rows a table has at most; one more says how many there are.
const mostRows = 1000

// Table is a table whose rows are named by their first cell.
func Table(caption string, head []string, rows [][]Cell) h.Node {
	drawn := rows[:min(len(rows), mostRows)]
	body := h.Each(drawn, func(row []Cell) h.Node {
		if len(row) == 0 {
			return h.Node{}
		}
		cells := h.Each(row[1:], func(c Cell) h.Node {
			return h.Fill(`<td>{}{}</td>`, h.If(c.Bar, `<meter class="good" aria-hidden="true" min="0" max="1" value="{}"></meter> `, unit(c.Part)), chartLine(c.Text))
		})
		return h.Fill(`<tr><th scope="row">{}</th>{}</tr>`, chartLine(row[0].Text), cells)
	})
	more := h.If(len(rows) > len(drawn), `<tr><td colspan="{}">and {}</td></tr>`, len(head), term.Plural(len(rows)-len(drawn), "more row"))
	return h.Fill(`<table><caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}{}</tbody></table>`, chartLine(caption),
		h.Each(head, func(s string) h.Node { return h.Fill(`<th scope="col">{}</th>`, chartLine(s)) }), body, more)
}

// chartLine is a foreign text as it may stand in a chart: on one line, nothing hidden, bounded.
func chartLine(s string) string { return plaintext.Line(s, 400) }
