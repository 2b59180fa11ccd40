package page

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// grid is where the rows of a picture lie. Across, all is in percent of its width, so that
// one picture fits every place and its text is never scaled.
type grid struct {
	*stretch
	dense  bool // names stand beside the bars, not above them
	drawn  int  // rows
	pitch  int  // from row to row
	middle int  // of a bar below the top of its row
	bar    int  // the full height of a bar
}

// head is the height of the axis above the first row.
const head = 24

func (s *stretch) grid() grid {
	g := grid{stretch: s, dense: len(s.rows) > fewLanes, drawn: min(len(s.rows), mostLanes), pitch: 38, middle: 27, bar: 14}
	if g.dense {
		g.pitch, g.middle, g.bar = 13, 7, 8
	}
	return g
}

func (g grid) x(at time.Duration) float64 {
	return 100 * float64(min(max(at, 0), g.whole)) / float64(g.whole)
}

func (g grid) y(lane int) int { return head + lane*g.pitch + g.middle }

// percent writes a part of the width.
func percent(v float64) string { return strconv.FormatFloat(math.Round(100*v)/100, 'f', -1, 64) + "%" }

func vertical(class string, x float64, from, to int) h.Node {
	return h.Fill(`<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>`, class, percent(x), percent(x), from, to)
}

func (s *stretch) picture(title string) h.Node {
	g := s.grid()
	left, wide := "0", "100%"
	if g.dense {
		left, wide = "25%", "75%"
	}
	rest := len(s.rows) - g.drawn
	note := ""
	switch {
	case len(s.rows) == 0:
		note = "No lane yet."
	case rest > 0:
		note = "and " + term.Plural(rest, "more lane") + ", in the table"
	}
	bottom := head + g.drawn*g.pitch
	return h.Fill(`<svg class="lanes" role="img" width="100%" height="{}"><title>{}</title><desc>{}</desc><svg x="{}" width="{}">{}</svg>{}</svg>{}{}`, bottom+4, title, s.sentence(), left, wide,
		h.Join(g.axis(bottom), g.bars()), g.names(), with(note, `<p class="soft">{}</p>`), g.legend())
}

// mostSteps is how many round times an axis has, so that their words have room.
const mostSteps = 5

// axis draws the round times as lines with words above, and the line where now is.
func (g grid) axis(bottom int) h.Node {
	if len(g.rows) == 0 {
		return h.Node{}
	}
	end := 96.0 // a word there would be cut, or stand on another one
	if g.going {
		end = 84
	}
	step := clockStep(g.whole)
	var out []h.Node
	for n := time.Duration(0); n <= g.whole/step; n++ {
		x, anchor := g.x(n*step), "middle"
		if n == 0 {
			anchor = "start"
		}
		out = append(out, vertical("grid", x, head-6, bottom), h.If(x < end, `<text class="soft" x="{}" y="13" text-anchor="{}">{}</text>`, percent(x), anchor, elapsed(n*step)))
	}
	return h.Join(h.Join(out...), h.If(g.going, `{}<text class="now-word" x="100%" y="13" text-anchor="end">now</text>`, vertical("now", g.x(g.at), head-6, bottom)))
}

// names are the labels of rows with what became of them, each clipped to its room.
func (g grid) names() h.Node {
	n := -1
	return h.Each(g.rows[:g.drawn], func(r laneRow) h.Node {
		n++
		top := head + n*g.pitch
		if g.dense {
			return h.Fill(`<svg class="lane-name" y="{}" width="24%" height="{}"><text font-size="10" x="0" y="10">{}</text></svg>`, top, g.pitch, chartLine(r.label))
		}
		tone, sign := outcome(r.last)
		return h.Fill(`<svg class="lane-name" y="{}" width="70%" height="18"><text x="0" y="13">{}</text></svg><text class="soft" x="100%" y="{}" text-anchor="end">{}{}</text><rect class="hit" x="0" y="{}" width="100%" height="{}"><title>{}</title></rect>`,
			top, chartLine(r.label), top+13, r.word(), h.If(sign != "", ` <tspan class="{}">{}</tspan>`, tone, sign), top, g.pitch, chartLine(r.words()))
	})
}

// outcome is the sign of a lane that has ended, and its class.
func outcome(s run.State) (class, sign string) {
	switch s {
	case run.Done:
		return "tick", "✓"
	case run.Failed:
		return "cross", "✗"
	}
	return "", ""
}

func (r laneRow) word() string {
	if _, sign := outcome(r.last); r.worked || sign != "" {
		return elapsed(r.took())
	}
	return "waits"
}

func (r laneRow) words() string {
	out := stateTimes(r.by)
	if _, sign := outcome(r.last); sign != "" {
		out = append(out, string(r.last)+" after "+elapsed(r.to))
	}
	return r.label + ": " + strings.Join(out, ", ")
}

// bars draws the bars of each state, and letters on those that have room.
func (g grid) bars() h.Node {
	return h.Each(looks[:], func(l look) h.Node {
		var bars, letters []h.Node
		for _, m := range g.marks {
			if m.state != l.state {
				continue
			}
			from, to := g.x(m.from), g.x(m.to)
			if to-from > 0.4 {
				to -= 0.1 // so that neighbours are two
			}
			to = min(max(to, from+0.15), 100)
			from = min(from, to-0.15)
			bars = append(bars, h.Fill(`<line x1="{}" x2="{}" y1="{}" y2="{}"/>`, percent(from), percent(to), g.y(m.lane), g.y(m.lane)))
			if l.letter != "" && !g.dense && to-from > 5 {
				letters = append(letters, h.Fill(`<text class="letter {}" text-anchor="middle" font-size="10.5" x="{}" y="{}">{}</text>`, l.state, percent((from+to)/2), g.y(m.lane)+4, l.letter))
			}
		}
		return h.If(len(bars) > 0, `<g class="bar {}" stroke-width="{}">{}</g>{}`, l.state, l.height*float64(g.bar), h.Join(bars...), h.Join(letters...))
	})
}

func (g grid) legend() h.Node {
	key := func(shown bool, sign h.Node, name string) h.Node {
		return h.If(shown, `<li>{} {}</li>`, sign, name)
	}
	states := h.Each(looks[:], func(l look) h.Node {
		name := string(l.state)
		if l.letter != "" {
			name += " (" + l.letter + ")"
		}
		there := slices.ContainsFunc(g.marks, func(m mark) bool { return m.state == l.state })
		return key(there, h.Fill(`<svg class="key" width="18" height="12" aria-hidden="true"><g class="bar {}" stroke-width="{}"><line x1="0" x2="18" y1="6" y2="6"/></g></svg>`, l.state, 12*l.height), name)
	})
	last := func(s run.State) bool {
		return slices.ContainsFunc(g.rows, func(r laneRow) bool { return r.last == s })
	}
	return h.If(len(g.rows) > 0, `<ul class="legend">{}{}{}</ul>`, states,
		key(last(run.Done), h.Fill(`<span class="tick" aria-hidden="true">✓</span>`), "done"), key(last(run.Failed), h.Fill(`<span class="cross" aria-hidden="true">✗</span>`), "failed"))
}

// clockSteps are what people count time in, up to a day.
var clockSteps = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, oneDay,
}

const oneDay = 24 * time.Hour

// clockStep is the smallest round step of which a time has few enough.
func clockStep(whole time.Duration) time.Duration {
	for _, step := range clockSteps {
		if whole/step <= mostSteps {
			return step
		}
	}
	for step := oneDay; ; step *= 10 {
		for _, m := range []time.Duration{1, 2, 5} {
			if whole/(m*step) <= mostSteps {
				return m * step
			}
		}
	}
}

func elapsed(d time.Duration) string {
	d = max(d, 0)
	unit := func(n time.Duration, u string, rest time.Duration, less string) string {
		if rest == 0 {
			return fmt.Sprintf("%d %s", n, u)
		}
		return fmt.Sprintf("%d %s %d %s", n, u, rest, less)
	}
	switch {
	case d == 0:
		return "0"
	case d < time.Millisecond:
		return "< 1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond)/time.Millisecond)
	case d < 10*time.Second:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	case d < time.Minute-time.Second/2:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour-time.Second/2:
		d = d.Round(time.Second)
		return unit(d/time.Minute, "min", d%time.Minute/time.Second, "s")
	case d < oneDay-time.Minute/2:
		d = d.Round(time.Minute)
		return unit(d/time.Hour, "h", d%time.Hour/time.Minute, "min")
	}
	if d < math.MaxInt64-oneDay {
		d = d.Round(time.Hour)
	}
	return unit(d/oneDay, "d", d%oneDay/time.Hour, "h")
}
