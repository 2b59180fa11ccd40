package page

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// grid is where the rows and the axis of a timeline lie in a picture.
type grid struct {
	frame
	*stretch
	dense       bool
	left, right float64 // of the axis
	top         float64 // of the first row
	pitch       float64 // from row to row
	bar         float64 // the full height of a bar
	middle      float64 // of a bar below the top of its row
	label       float64 // size of the labels of rows
	drawn       int     // rows
}

func (s *stretch) grid(f frame) grid {
	g := grid{frame: f, stretch: s, dense: len(s.rows) > fewLanes, drawn: min(len(s.rows), mostLanes), label: f.size, top: f.size + 14}
	widest := 0.0
	for _, r := range s.rows[:g.drawn] {
		widest = max(widest, room(chartLine(r.label), f.size))
	}
	switch {
	case !f.narrow && !g.dense:
		g.left, g.right, g.pitch, g.bar = edge+min(widest, 230)+14, f.width-110, 26, 15
	case !f.narrow:
		g.left, g.right, g.pitch, g.bar, g.label = edge+min(widest, 180)+14, f.width-90, 15, 9, 11
	case !g.dense:
		g.left, g.right, g.pitch, g.bar, g.middle = edge+6, f.width-edge-18, 42, 14, 28
	default:
		g.left, g.right, g.pitch, g.bar, g.label = edge+min(widest, 84)+10, f.width-edge-6, 13, 8, 10
	}
	if g.middle == 0 {
		g.middle = math.Ceil(g.pitch / 2)
	}
	return g
}

func (g *grid) x(at time.Duration) float64 {
	return g.left + (g.right-g.left)*float64(min(max(at, 0), g.whole))/float64(g.whole)
}

// y is the middle of the bars of a row.
func (g *grid) y(lane int) float64 { return g.top + float64(lane)*g.pitch + g.middle }

func (s *stretch) draw(p *pen, f frame) float64 {
	if len(s.rows) == 0 {
		p.soft(edge, f.size+edge, "No lane yet.")
		return f.size + 3*edge
	}
	g := s.grid(f)
	bottom := g.top + float64(g.drawn)*g.pitch
	g.axis(p, bottom)
	chain := g.chain()
	g.joints(p, chain)
	g.labels(p)
	g.bars(p)
	g.outlines(p, chain)
	if g.drawn <= fewLanes {
		for i, r := range s.rows[:g.drawn] {
			p.add(`<rect class="hit" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>`, number(edge), number(g.top+float64(i)*g.pitch), number(f.width-2*edge), number(g.pitch), chartLine(r.words()))
		}
	}
	y := bottom + 8
	if g.drawn > fewLanes {
		y += f.size + 4 // the axis once more
	}
	if rest := len(s.rows) - g.drawn; rest > 0 {
		p.soft(edge, y+f.size, "and "+term.Plural(rest, "more lane")+", in the table")
		y += f.size + 10
	}
	return y + legend(p, f, y+4, g.keys()) + 4
}

// words is a row for those who point at it.
func (r laneRow) words() string {
	out := stateTimes(r.by)
	if ended(r.last) {
		out = append(out, string(r.last)+" after "+elapsed(r.to))
	}
	return chartLine(r.label) + ": " + strings.Join(out, ", ")
}

// axis draws the round times as lines with words above, below many rows once more, and
// the line where now is.
func (g *grid) axis(p *pen, bottom float64) {
	var lines track
	nowAt := g.x(g.at)
	taken := g.width
	if g.going {
		taken = nowAt - room("now", g.size)/2 - 6
	}
	step := clockStep(g.whole, g.right-g.left, g.size)
	var words pen
	for n := time.Duration(0); n <= g.whole/step; n++ {
		x, word := g.x(n*step), elapsed(n*step)
		lines.down(x, g.top-4, bottom)
		if half := room(word, g.size) / 2; x+half > min(taken, g.width-edge) || x-half < 0 {
			continue
		}
		words.text(x, g.top-9, word)
		if g.drawn > fewLanes {
			words.text(x, bottom+g.size+2, word)
		}
	}
	p.add(`<g class="axis" text-anchor="middle">{}</g>`, words.node())
	p.path("grid", &lines)
	if g.going {
		var now track
		now.down(nowAt, g.top-4, bottom)
		p.path("now", &now)
		half := room("now", g.size) / 2
		p.add(`<text x="{}" y="{}" class="now-word" text-anchor="middle">now</text>`, number(max(edge+half, min(nowAt, g.width-edge-half))), number(g.top-9))
	}
}

// labels draws the names of rows, and what became of them.
func (g *grid) labels(p *pen) {
	var done, failed track
	var names, times pen
	for i, r := range g.rows[:g.drawn] {
		y := math.Round(g.y(i) + g.label*0.36)
		width := g.left - 14 - edge
		if g.narrow && !g.dense {
			y = g.y(i) - g.bar/2 - 6
			width = g.right - 6 - edge - 10 - room(r.word(), g.label)
		}
		names.text(edge, y, fit(r.label, width, g.label))
	}
	p.add(`<g class="label" font-size="{}">{}</g>`, number(g.label), names.node())
	if g.narrow && g.dense {
		return
	}
	for i, r := range g.rows[:g.drawn] {
		x, y := g.width-edge-16, math.Round(g.y(i)+g.label*0.36)
		if g.narrow {
			x, y = g.right-6, g.y(i)-g.bar/2-6 // clear of the line where now is
		}
		times.text(x, y, r.word())
		switch r.last {
		case run.Done:
			tick(&done, g.width-edge-10, math.Round(y-g.label*0.36))
		case run.Failed:
			cross(&failed, g.width-edge-10, math.Round(y-g.label*0.36))
		}
	}
	p.add(`<g class="soft" text-anchor="end" font-size="{}">{}</g>`, number(g.label), times.node())
	p.path("tick", &done)
	p.path("cross", &failed)
}

// word is how long a row took so far.
func (r laneRow) word() string {
	if r.worked || ended(r.last) {
		return elapsed(r.took())
	}
	return "waits"
}

// tick and cross are ten units wide, and y is their middle.
func tick(t *track, x, y float64) {
	t.put('M', x, y)
	t.put('l', 3, 3.5, 6, -7.5)
}

func cross(t *track, x, y float64) {
	t.put('M', x+1, y-4)
	t.put('l', 8, 8)
	t.put('m', 0, -8)
	t.put('l', -8, 8)
}

// bars draws all bars of a state at once, and letters on those that have room.
func (g *grid) bars(p *pen) {
	for _, l := range looks {
		var bars track
		var xs, ys, letters []string
		for _, m := range g.marks {
			if m.state != l.state {
				continue
			}
			from, to := g.x(m.from), g.x(m.to)
			if to-from > 2.5 {
				to -= 0.8 // so that neighbours are two
			}
			to = max(to, min(from+0.8, g.right))
			from = min(from, to-0.8)
			if g.dense {
				from, to = math.Floor(from), math.Floor(from)+max(1, math.Round(to-from))
			}
			bars.bar(from, g.y(m.lane), to)
			if l.letter != "" && !g.dense && to-from > 14 {
				xs, ys = append(xs, number((from+to)/2)), append(ys, number(g.y(m.lane)+3.8))
				letters = append(letters, l.letter)
			}
		}
		p.bar(l, g.bar, &bars)
		if len(letters) > 0 {
			p.add(`<text class="letter {}" text-anchor="middle" font-size="10.5" x="{}" y="{}">{}</text>`, l.state, strings.Join(xs, " "), strings.Join(ys, " "), strings.Join(letters, ""))
		}
	}
}

// chain is the marks that the end waited for, neighbours as one, in the order of time.
func (g *grid) chain() []mark {
	var out []mark
	for _, m := range g.marks {
		if !m.critical {
			continue
		}
		if n := len(out) - 1; n >= 0 && out[n].lane == m.lane && g.x(m.from)-g.x(out[n].to) < 1 && m.from >= out[n].from {
			out[n].to = max(out[n].to, m.to)
		} else {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b mark) int { return cmp.Compare(a.from, b.from) })
	return out
}

// around is how far an outline is from the middle of its bar.
func (g *grid) around() float64 { return g.bar/2 + 2 }

// joints lead from lane to lane where the one waited for the other, behind the bars.
func (g *grid) joints(p *pen, chain []mark) {
	var out track
	for i := 1; i < len(chain); i++ {
		from, to := chain[i-1].lane, chain[i].lane
		switch half := g.around(); {
		case from < to:
			out.down(g.x(chain[i].from), g.y(from)+half, g.y(to)-half)
		case from > to:
			out.down(g.x(chain[i].from), g.y(from)-half, g.y(to)+half)
		}
	}
	p.path("critical", &out)
}

// outlines go around the bars that the end waited for.
func (g *grid) outlines(p *pen, chain []mark) {
	var out track
	for _, m := range chain {
		from, to := g.x(m.from)-1, g.x(m.to)+1
		out.rect(from, g.y(m.lane)-g.around(), to-from, 2*g.around())
	}
	p.path("critical", &out)
}

// keys are what the legend explains: the states that are there, and the critical path.
func (g *grid) keys() []key {
	var out []key
	for _, l := range looks {
		if !slices.ContainsFunc(g.marks, func(m mark) bool { return m.state == l.state }) {
			continue
		}
		name := string(l.state)
		if l.letter != "" {
			name += " (" + l.letter + ")"
		}
		out = append(out, key{name, func(p *pen, x, y float64) {
			var bar track
			bar.across(x, y+6, x+18)
			p.bar(l, 12, &bar)
		}})
	}
	if slices.ContainsFunc(g.marks, func(m mark) bool { return m.critical }) {
		out = append(out, key{"what the end waited for", func(p *pen, x, y float64) {
			var box track
			box.rect(x+1, y, 16, 12)
			p.path("critical", &box)
		}})
	}
	has := func(s run.State) bool {
		return slices.ContainsFunc(g.rows, func(r laneRow) bool { return r.last == s })
	}
	if has(run.Done) {
		out = append(out, key{"done", func(p *pen, x, y float64) { var t track; tick(&t, x+4, y+6); p.path("tick", &t) }})
	}
	if has(run.Failed) {
		out = append(out, key{"failed", func(p *pen, x, y float64) { var t track; cross(&t, x+4, y+6); p.path("cross", &t) }})
	}
	return out
}

// pen collects the parts of a picture.
type pen struct{ parts []h.Node }

func (p *pen) node() h.Node { return h.Join(p.parts...) }

func (p *pen) add(form h.Literal, values ...any) { p.parts = append(p.parts, h.Fill(form, values...)) }

// text is a label whose base line begins, has its middle or ends at a point, as the
// group around it says.
func (p *pen) text(x, y float64, s string) {
	p.add(`<text x="{}" y="{}">{}</text>`, number(x), number(y), chartLine(s))
}

func (p *pen) soft(x, y float64, s string) {
	p.add(`<text x="{}" y="{}" class="soft">{}</text>`, number(x), number(y), chartLine(s))
}

// path is a shape of straight lines; one of no lines is not written.
func (p *pen) path(class string, t *track) {
	if t.b.Len() > 0 {
		p.add(`<path class="{}" d="{}"/>`, class, t.b.String())
	}
}

// bar is the bars of a state, of which the tallest would be so high.
func (p *pen) bar(l look, high float64, t *track) {
	if t.b.Len() > 0 {
		p.add(`<path class="bar {}" stroke-width="{}" d="{}"/>`, l.state, number(high*l.height), t.b.String())
	}
}

// frame is the place that a picture is made for.
type frame struct {
	name   string
	width  float64
	size   float64 // of text
	narrow bool
}

var frames = []frame{
	{name: "wide", width: 760, size: 13},
	{name: "narrow", width: 360, size: 12, narrow: true},
}

// edge is kept free around every picture, so that no stroke is cut.
const edge = 4.0

// picture is two svg elements, of which the style sheet shows the one that fits.
func (s *stretch) picture(title string) h.Node {
	return h.Each(frames, func(f frame) h.Node {
		var p pen
		height := s.draw(&p, f)
		return h.Fill(`<svg class="{}" role="img" viewBox="0 0 {} {}" font-size="{}"><title>{}</title><desc>{}</desc>{}</svg>`,
			f.name, number(f.width), number(height), number(f.size), title, s.sentence(), p.node())
	})
}
