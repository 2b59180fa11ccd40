package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"time"
)

// Cost is what one run cost. USD is nil where it is unknown; a sum that is not a number counts as
// unknown, too.
type Cost struct {
	Day   time.Time // its date counts, in its own zone
	Model string
	USD   *float64
}

const (
	mostColumns = 62 // that are drawn; more days are put together
	mostSeries  = 6  // that are told apart, the last one for all others
)

// column is the cost of a day, or of a longer time.
type column struct {
	from    time.Time
	by      []float64 // by series
	total   float64
	unknown int // runs
}

// spending is costs put together.
type spending struct {
	unit    *unit
	series  []string
	columns []column
	runs    int
	total   float64
	unknown int
	earlier int // columns that are not drawn
}

// unit is a time that costs are put together by.
type unit struct {
	name  string // of a column in the table
	of    func(time.Time) time.Time
	next  func(time.Time) time.Time
	label string
}

func date(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(min(max(y, 1), 9999), m, d, 0, 0, 0, 0, time.UTC)
}

var units = []unit{
	{"Day", date, func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }, "2 Jan"},
	{"Week from", func(t time.Time) time.Time { t = date(t); return t.AddDate(0, 0, -(int(t.Weekday())+6)%7) }, func(t time.Time) time.Time { return t.AddDate(0, 0, 7) }, "2 Jan"},
	{"Month", func(t time.Time) time.Time { t = date(t); return t.AddDate(0, 0, 1-t.Day()) }, func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }, "Jan 2006"},
	{"Year", func(t time.Time) time.Time { t = date(t); return t.AddDate(0, 0, 1-t.YearDay()) }, func(t time.Time) time.Time { return t.AddDate(1, 0, 0) }, "2006"},
}

// Bars is what runs cost by day, stacked by model. Days without a run are there, empty;
// a column whose runs did not all have a known cost is marked as being larger than it
// is drawn. Many days are put together by week, month or year.
func Bars(title string, costs []Cost) Chart {
	s := spent(costs)
	title = cmp.Or(line(title), "Cost by day and model")
	return Chart{Picture: picture(title, s.sentence(), s.draw), Table: s.table(title)}
}

func spent(costs []Cost) *spending {
	s := &spending{runs: len(costs)}
	by := map[string]float64{}
	for _, c := range costs {
		if usd, ok := c.known(); ok {
			by[line(c.Model)] += usd
		} else if _, ok := by[line(c.Model)]; !ok {
			by[line(c.Model)] = 0
		}
	}
	for name := range by {
		s.series = append(s.series, name)
	}
	slices.SortFunc(s.series, func(a, b string) int { return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b)) })
	place := map[string]int{}
	for i, name := range s.series {
		place[name] = min(i, mostSeries-1)
		if len(s.series) <= mostSeries {
			place[name] = i
		}
	}
	if n := len(s.series); n > mostSeries {
		s.series = append(s.series[:mostSeries-1:mostSeries-1], plural(n-mostSeries+1, "other model"))
	}
	s.arrange(costs)
	index := map[time.Time]int{}
	for i, c := range s.columns {
		index[c.from] = i
	}
	for _, c := range costs {
		usd, known := c.known()
		s.total = min(s.total+usd, most)
		if !known {
			s.unknown++
		}
		i, drawn := index[s.unit.of(c.Day)]
		if !drawn {
			continue
		}
		col := &s.columns[i]
		if !known {
			col.unknown++
			continue
		}
		col.by[place[line(c.Model)]] += usd
		col.total = min(col.total+usd, most)
	}
	return s
}

// known is the cost, if it is a sum that can have been paid.
func (c Cost) known() (float64, bool) {
	if c.USD == nil || math.IsNaN(*c.USD) || math.IsInf(*c.USD, 0) || *c.USD < 0 {
		return 0, false
	}
	return min(*c.USD, 1e9), true
}

// arrange chooses the unit and makes the columns, from the first to the last one, or
// the newest of them if there are too many even by year.
func (s *spending) arrange(costs []Cost) {
	s.unit = &units[0]
	if len(costs) == 0 {
		return
	}
	for i := range units {
		s.unit = &units[i]
		first, last := s.unit.of(costs[0].Day), s.unit.of(costs[0].Day)
		for _, c := range costs {
			at := s.unit.of(c.Day)
			if at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
		s.columns = s.columns[:0]
		for at := first; !at.After(last); at = s.unit.next(at) {
			if s.columns = append(s.columns, column{from: at, by: make([]float64, len(s.series))}); len(s.columns) > mostColumns && i < len(units)-1 {
				break
			}
		}
		if len(s.columns) <= mostColumns {
			return
		}
	}
	s.earlier = len(s.columns) - mostColumns
	s.columns = s.columns[s.earlier:]
}

func (s *spending) sentence() string {
	out := fmt.Sprintf("%s cost %s", plural(s.runs, "run"), dollars(s.total))
	if s.unknown > 0 {
		out += fmt.Sprintf(" and what %s of unknown cost took", plural(s.unknown, "run"))
	}
	top := -1
	for i, c := range s.columns {
		if c.total > 0 && (top < 0 || c.total > s.columns[top].total) {
			top = i
		}
	}
	if top >= 0 {
		out += "; the most, " + dollars(s.columns[top].total) + ", fell on " + s.columns[top].from.Format("2 January 2006")
	}
	return out + "."
}

func (s *spending) table(title string) template.HTML {
	head := append([]string{s.unit.name}, s.series...)
	for i, h := range head {
		head[i] = cmp.Or(h, "no model")
	}
	head = append(head, "Together", "Runs of unknown cost")
	var rows [][]string
	for _, c := range s.columns {
		cells := []string{c.from.Format("2006-01-02")}
		for _, v := range c.by {
			cells = append(cells, dollars(v))
		}
		rows = append(rows, append(cells, dollars(c.total), strconv.Itoa(c.unknown)))
	}
	return table(title, head, rows)
}

// fills are the classes of the series, textures what tells them apart besides.
var (
	fills    = [mostSeries]constant{"fill a", "fill b", "fill c", "fill d", "fill e", "fill f"}
	textures = [mostSeries]texture{plain, rising, level, falling, crossed, upright}
)

func (s *spending) draw(p *pen, f frame) float64 {
	if len(s.columns) == 0 {
		p.text(edge, f.size+edge, "No run yet.", class("soft"))
		return f.size + 3*edge
	}
	top := 0.0
	for _, c := range s.columns {
		top = max(top, c.total)
	}
	if top == 0 { // an axis of nothing would say less
		p.text(edge, f.size+edge, s.nothing(), class("soft"))
		return f.size + 3*edge
	}
	height := 200.0
	if f.narrow {
		height = 160
	}
	v := values{frame: f, top: 34, bottom: 34 + height, step: 1}
	v.scale(top, 4, dollars)
	v.lines(p)
	wide := (f.width - edge - v.left) / float64(len(s.columns))
	bar := max(1.5, min(wide*0.72, 44))
	x := func(i int) float64 { return v.left + (float64(i)+0.5)*wide - bar/2 }
	areas, over := make([]track, len(s.series)), make([]track, len(s.series))
	for i, c := range s.columns {
		y := v.bottom
		for j, part := range c.by {
			if part <= 0 {
				continue
			}
			h := max(0.6, v.bottom-v.y(part))
			h = min(h, y-v.top)
			areas[j].rect(x(i), y-h, bar, h)
			if h > 3 && bar > 3 {
				over[j].hatch(textures[j], x(i), y-h, bar, h, 5)
			}
			y -= h
		}
	}
	for j := range areas {
		p.path(fills[j], &areas[j])
		p.path("texture", &over[j])
	}
	s.above(p, &v, x, bar, wide)
	for i, c := range s.columns {
		p.box("hit", x(i), v.top-30, bar, v.bottom-v.top+30, s.words(c))
	}
	s.dates(p, &v, wide)
	return v.bottom + f.size + 14 + legend(p, f, v.bottom+f.size+14, s.keys()) + 4
}

// nothing says that nothing was spent, as far as it is known.
func (s *spending) nothing() string {
	free := plural(s.runs-s.unknown, "run") + " cost nothing"
	switch {
	case s.unknown == 0:
		return free + "."
	case s.unknown == s.runs:
		return "What " + plural(s.runs, "run") + " cost is not known."
	}
	return free + "; what " + plural(s.unknown, "other") + " cost is not known."
}

// words is a column for those who point at it.
func (s *spending) words(c column) string {
	out := c.from.Format(s.unit.label) + ": " + dollars(c.total)
	if c.unknown > 0 {
		out += ", and " + plural(c.unknown, "run") + " of unknown cost"
	}
	return out
}

// above draws what stands on a column: the mark of unknown costs, and the sum where all
// sums have room.
func (s *spending) above(p *pen, v *values, x func(int) float64, bar, wide float64) {
	widest := 0.0
	for _, c := range s.columns {
		widest = max(widest, room(dollars(c.total), v.size))
	}
	var open track
	p.group("soft", anchored("middle"))
	for i, c := range s.columns {
		y := v.y(c.total)
		if c.unknown > 0 {
			if bar >= 12 {
				p.text(x(i)+bar/2, y-3, "?", class("unknown-word"))
			}
			open.rect(x(i)+0.5, y-15, bar-1, 14)
			y -= 16
		}
		if widest+4 <= wide && c.total > 0 {
			p.text(x(i)+bar/2, y-4, dollars(c.total))
		}
	}
	p.close("g")
	p.path("unknown", &open)
}

// dates draws as many dates as have room below the axis.
func (s *spending) dates(p *pen, v *values, wide float64) {
	widest := 0.0
	for _, c := range s.columns {
		widest = max(widest, room(c.from.Format(s.unit.label), v.size))
	}
	every := int(math.Ceil((widest + 10) / wide))
	p.group("axis", anchored("middle"))
	for i := 0; i < len(s.columns); i += max(every, 1) {
		word := s.columns[i].from.Format(s.unit.label)
		half := room(word, v.size) / 2
		at := min(max(v.left+(float64(i)+0.5)*wide, edge+half), v.width-edge-half)
		if i > 0 && at < v.left+(float64(i)+0.5)*wide {
			break // it would come too near to the one before
		}
		p.text(at, v.bottom+v.size+4, word)
	}
	p.close("g")
}

func (s *spending) keys() []key {
	var out []key
	for j, name := range s.series {
		out = append(out, key{cmp.Or(name, "no model"), func(p *pen, x, y float64) {
			var area, over track
			area.rect(x, y, 18, 12)
			over.hatch(textures[j], x, y, 18, 12, 5)
			p.path(fills[j], &area)
			p.path("texture", &over)
		}})
	}
	if s.unknown > 0 {
		out = append(out, key{"and runs of unknown cost", func(p *pen, x, y float64) {
			var box track
			box.rect(x+0.5, y, 17, 12)
			p.path("unknown", &box)
		}})
	}
	if s.earlier > 0 {
		out = append(out, key{plural(s.earlier, "earlier year") + " not drawn", func(*pen, float64, float64) {}})
	}
	return out
}

// values is an upright axis from zero.
type values struct {
	frame
	left, top, bottom float64
	step, most        float64
	word              func(float64) string
}

// scale makes room for values up to a number, with about so many round steps.
func (v *values) scale(most, steps float64, word func(float64) string) {
	v.step = round(max(most, 1e-4) / steps)
	v.most, v.word = max(most, v.step), word
	for n := 0.0; n*v.step <= v.most*(1+1e-9); n++ {
		v.left = max(v.left, edge+room(word(n*v.step), v.size)+8)
	}
}

func (v *values) y(value float64) float64 {
	return v.bottom - (v.bottom-v.top)*min(value, v.most)/v.most
}

// lines draws the steps and their words.
func (v *values) lines(p *pen) {
	var lines track
	p.group("axis", anchored("end"))
	for n := 0.0; n*v.step <= v.most*(1+1e-9); n++ {
		y := v.y(n * v.step)
		lines.across(v.left, y, v.width-edge)
		p.text(v.left-8, y+v.size*0.36, v.word(n*v.step))
	}
	p.close("g")
	p.path("grid", &lines)
}
