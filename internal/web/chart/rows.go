package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"time"
)

// Stage is what one stage of the work took. Critical is the part of its time that the
// end waited for.
type Stage struct {
	Name           string
	Tokens         int
	Time, Critical time.Duration
}

// mostStages is how many stages are drawn.
const mostStages = 24

// stages is what all stages took.
type stages struct {
	all            []Stage
	tokens         float64
	time, critical time.Duration
}

// Share is where tokens and time went, by stage in the given order. The part of the time
// that the end waited for is hatched: the rest of it ran besides.
func Share(title string, in []Stage) Chart {
	var s stages
	for _, g := range in {
		g.Tokens, g.Time = max(0, g.Tokens), min(max(0, g.Time), math.MaxInt64/(1<<20))
		g.Critical = min(max(0, g.Critical), g.Time)
		g.Name = cmp.Or(line(g.Name), "other")
		s.all = append(s.all, g)
		s.tokens += float64(g.Tokens)
		s.time = min(s.time, math.MaxInt64/2) + g.Time
		s.critical = min(s.critical, math.MaxInt64/2) + g.Critical
	}
	title = cmp.Or(line(title), "Tokens and time by stage")
	said := fmt.Sprintf("%s tokens and %s in %s, of which the end waited for %s.", short(s.tokens), elapsed(s.time), plural(len(in), "stage"), elapsed(s.critical))
	return Chart{Picture: picture(title, said, s.draw), Table: s.table(title)}
}

func (s *stages) table(title string) template.HTML {
	var rows [][]string
	for _, g := range s.all {
		rows = append(rows, []string{g.Name, whole(g.Tokens), percent(float64(g.Tokens), s.tokens), elapsed(g.Time), percent(float64(g.Time), float64(s.time)), elapsed(g.Critical)})
	}
	return table(title, []string{"Stage", "Tokens", "of all tokens", "Time", "of all time", "Time on the critical path"}, rows)
}

// panel is one of the two measures.
type panel struct {
	head        string
	left, right float64 // of the bars; their words stand to the right of them
	most        float64
}

func (s *stages) draw(p *pen, f frame) float64 {
	if len(s.all) == 0 {
		p.text(edge, f.size+edge, "Nothing measured yet.", class("soft"))
		return f.size + 3*edge
	}
	drawn := s.all[:min(len(s.all), mostStages)]
	tokens, time := panel{head: "Tokens"}, panel{head: "Time"}
	names, words, times := 0.0, 0.0, 0.0
	for _, g := range drawn {
		names = max(names, room(line(g.Name), f.size))
		words = max(words, room(s.tokenWords(g), f.size))
		times = max(times, room(s.timeWords(g), f.size))
		tokens.most, time.most = max(tokens.most, float64(g.Tokens)), max(time.most, float64(g.Time))
	}
	y, pitch := f.size+14, 28.0
	if f.narrow {
		tokens.left, tokens.right = edge, f.width-edge-8-max(words, times)
		time.left, time.right = tokens.left, tokens.right
		pitch, y = 66, edge
	} else {
		tokens.left = edge + min(names, 150) + 14
		half := (f.width - edge - tokens.left) / 2
		tokens.right = tokens.left + half - 28 - words
		time.left, time.right = tokens.left+half, f.width-edge-8-times
		p.text(tokens.left, f.size+2, tokens.head, class("head"))
		p.text(time.left, f.size+2, time.head, class("head"))
	}
	for _, g := range drawn {
		at := y + 6
		if f.narrow {
			p.text(edge, at+f.size-4, fit(g.Name, f.width-2*edge, f.size), class("label"))
			at += f.size + 3
		} else {
			p.text(edge, at+8+f.size*0.36, fit(g.Name, tokens.left-14-edge, f.size), class("label"))
		}
		tokens.bar(p, f, at, "fill a", float64(g.Tokens), 0, s.tokenWords(g))
		if f.narrow {
			at += 21
		}
		time.bar(p, f, at, "fill c", float64(g.Time), float64(g.Critical), s.timeWords(g))
		y += pitch
	}
	y += 8
	if rest := len(s.all) - len(drawn); rest > 0 {
		p.text(edge, y+f.size, "and "+plural(rest, "more stage")+", in the table", class("soft"))
		y += f.size + 10
	}
	return y + legend(p, f, y, s.keys()) + 4
}

func (s *stages) tokenWords(g Stage) string {
	return short(float64(g.Tokens)) + " · " + percent(float64(g.Tokens), s.tokens)
}

func (s *stages) timeWords(g Stage) string {
	return elapsed(g.Time) + " · " + percent(float64(g.Time), float64(s.time))
}

// bar draws a value, and its first part hatched, with words after it.
func (n panel) bar(p *pen, f frame, y float64, c constant, value, marked float64, words string) {
	const high = 16.0
	length := func(v float64) float64 {
		if n.most <= 0 || v <= 0 {
			return 0
		}
		return max(1, (n.right-n.left)*v/n.most)
	}
	w, m := length(value), length(marked)
	p.box("rail", n.left, y, n.right-n.left, high, "")
	if w > 0 {
		p.box(c, n.left, y, w, high, "")
	}
	if m > 0 {
		var over, box track
		over.hatch(rising, n.left, y, m, high, 6)
		p.path("texture", &over)
		box.rect(n.left, y, m, high)
		p.path("critical", &box)
	}
	p.text(n.right+8, y+high/2+f.size*0.36, words, class("soft"))
}

func (s *stages) keys() []key {
	swatch := func(c constant, marked bool) func(p *pen, x, y float64) {
		return func(p *pen, x, y float64) {
			p.box(c, x, y, 18, 12, "")
			if marked {
				var over, box track
				over.hatch(rising, x, y, 18, 12, 6)
				p.path("texture", &over)
				box.rect(x, y, 18, 12)
				p.path("critical", &box)
			}
		}
	}
	return []key{{"tokens", swatch("fill a", false)}, {"time", swatch("fill c", false)}, {"time that the end waited for", swatch("fill c", true)}}
}

// Budget is what one run used of what it was allowed. Allowed is 0 for no bound.
type Budget struct {
	Label         string
	Used, Allowed int
}

const (
	mostBudgets = 30   // that are drawn one by one; more are drawn as a histogram
	beyond      = 1.25 // times what was allowed is the most that is drawn
)

// budgets is the use of all runs.
type budgets struct {
	all    []Budget
	counts [12]int // by tenths of what was allowed, over it, and without a bound
	over   int
}

// Use is how much of their budgets runs used: a row for each run, or, of many, how many
// used how much.
func Use(title string, in []Budget) Chart {
	var b budgets
	for _, r := range in {
		r.Used, r.Allowed = max(0, r.Used), max(0, r.Allowed)
		b.all = append(b.all, r)
		switch {
		case r.Allowed == 0:
			b.counts[11]++
		case r.Used > r.Allowed:
			b.counts[10]++
			b.over++
		default:
			b.counts[max(0, int(math.Ceil(10*float64(r.Used)/float64(r.Allowed)))-1)]++
		}
	}
	title = cmp.Or(line(title), "Budget use")
	said := plural(len(in), "run") + "; " + strconv.Itoa(b.over) + " used more than allowed."
	draw := b.draw
	if len(in) > mostBudgets {
		draw = b.histogram
	}
	return Chart{Picture: picture(title, said, draw), Table: b.table(title)}
}

func (b *budgets) table(title string) template.HTML {
	var rows [][]string
	for _, r := range b.all {
		allowed := whole(r.Allowed)
		if r.Allowed == 0 {
			allowed = "no bound"
		}
		rows = append(rows, []string{r.Label, whole(r.Used), allowed, percent(float64(r.Used), float64(r.Allowed))})
	}
	return table(title, []string{"Run", "Used", "Allowed", "Part"}, rows)
}

func (r Budget) words() string {
	if r.Allowed == 0 {
		return short(float64(r.Used)) + ", no bound"
	}
	return short(float64(r.Used)) + " of " + short(float64(r.Allowed)) + " · " + percent(float64(r.Used), float64(r.Allowed))
}

// draw has all that was allowed equally long. What was used beyond it goes on, up to a
// quarter more.
func (b *budgets) draw(p *pen, f frame) float64 {
	if len(b.all) == 0 {
		p.text(edge, f.size+edge, "No run yet.", class("soft"))
		return f.size + 3*edge
	}
	names, words := 0.0, 0.0
	for _, r := range b.all {
		names, words = max(names, room(line(r.Label), f.size)), max(words, room(r.words(), f.size))
	}
	left, right, pitch, y := edge+min(names, 260)+14, f.width-edge-8-words, 26.0, edge
	if f.narrow {
		left, right, pitch = edge, f.width-edge-2, 42
	}
	long := right - left // what was allowed
	if b.over > 0 {
		long /= beyond
	}
	var bounds track
	for _, r := range b.all {
		at := y
		if f.narrow {
			p.text(edge, at+f.size, fit(r.Label, f.width-3*edge-words-8, f.size), class("label"))
			p.text(f.width-edge, at+f.size, r.words(), class("soft"), anchored("end"))
			at += f.size + 5
		} else {
			p.text(edge, at+8+f.size*0.36, fit(r.Label, left-14-edge, f.size), class("label"))
			p.text(right+8, at+8+f.size*0.36, r.words(), class("soft"))
		}
		if r.Allowed > 0 {
			b.bar(p, r, left, at, long)
			bounds.down(left+long, at-2, at+18)
		}
		y += pitch
	}
	p.path("bound", &bounds)
	return y + legend(p, f, y+4, b.keys()) + 4
}

func (b *budgets) bar(p *pen, r Budget, x, y, long float64) {
	part := min(float64(r.Used)/float64(r.Allowed), beyond)
	p.box("rail", x, y, long, 16, "")
	if part > 0 {
		p.box("fill a", x, y, max(1, min(part, 1)*long), 16, "")
	}
	if part > 1 {
		var over track
		p.box("over", x+long, y, (part-1)*long, 16, "")
		over.hatch(rising, x+long, y, (part-1)*long, 16, 5)
		p.path("texture", &over)
	}
}

func (b *budgets) keys() []key {
	out := []key{{"used", func(p *pen, x, y float64) { p.box("fill a", x, y, 18, 12, "") }},
		{"allowed", func(p *pen, x, y float64) {
			var t track
			p.box("rail", x, y, 15, 12, "")
			t.down(x+15, y-1, y+13)
			p.path("bound", &t)
		}}}
	if b.over > 0 {
		out = append(out, key{"beyond it", func(p *pen, x, y float64) {
			var over track
			p.box("over", x, y, 18, 12, "")
			over.hatch(rising, x, y, 18, 12, 5)
			p.path("texture", &over)
		}})
	}
	return out
}

// histogram is how many runs used how much, by tenths.
func (b *budgets) histogram(p *pen, f frame) float64 {
	var names [12]string
	for i := range 10 {
		names[i] = strconv.Itoa(10*(i+1)) + " %"
	}
	names[10], names[11] = "over", "no bound"
	rows, top := 11, 0
	if b.counts[11] > 0 {
		rows = 12
	}
	for _, n := range b.counts {
		top = max(top, n)
	}
	n := panel{left: edge + room("no bound", f.size) + 14, right: f.width - edge - 8 - room(plural(top, "run")+" · 100 %", f.size), most: float64(top)}
	p.text(edge, f.size+2, "Runs that used up to so much of their budget", class("head"))
	y := f.size + 12
	for i := range rows {
		c := constant("fill a")
		if i == 10 {
			c = "over"
		}
		p.text(n.left-12, y+8+f.size*0.36, names[i], class("label"), anchored("end"))
		n.bar(p, f, y, c, float64(b.counts[i]), 0, plural(b.counts[i], "run")+" · "+percent(float64(b.counts[i]), float64(len(b.all))))
		y += 23
	}
	return y + 4
}
