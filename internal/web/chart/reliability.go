package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
)

// Calibration is how what was said about answers compares with how many of them were
// right: before a curve was applied to the scores, and after. Any of the three may be
// missing.
type Calibration struct {
	Title         string
	Before, After []stat.Bin
	Curve         []Point // which probability a score becomes, by rising score
}

// Point is a score and the probability that it stands for, both from 0 to 1.
type Point struct{ Score, Probability float64 }

// mostBins is how many intervals and points are drawn.
const mostBins = 50

// Reliability is the reliability diagram: what was said to the right, what was right
// upwards, before as rings and after as discs, the larger the more answers; below it how
// many answers each interval has. On the diagonal the two agree.
func Reliability(c Calibration) Chart {
	c.Before, c.After = bins(c.Before), bins(c.After)
	title := cmp.Or(line(c.Title), "What was said against what was right")
	return Chart{Picture: picture(title, c.sentence(), c.draw), Table: c.table(title)}
}

// bins are those with answers, all within the unit square.
func bins(in []stat.Bin) []stat.Bin {
	var out []stat.Bin
	for _, b := range in {
		if b.N > 0 && len(out) < mostBins {
			out = append(out, stat.Bin{Low: part(b.Low), High: max(part(b.Low), part(b.High)), N: b.N, Said: part(b.Said), True: part(b.True)})
		}
	}
	return out
}

// part is a number from 0 to 1.
func part(v float64) float64 { return min(amount(v), 1) }

// sum is how many answers there are, and how far they lie from the diagonal on average.
func sum(bs []stat.Bin) (answers, distance float64) {
	for _, b := range bs {
		answers += float64(b.N)
		distance += float64(b.N) * math.Abs(b.Said-b.True)
	}
	return answers, distance / max(answers, 1)
}

func (c Calibration) sentence() string {
	out := "The diagonal is where what was said is right."
	for _, s := range []struct {
		when string
		bins []stat.Bin
	}{{"before", c.Before}, {"after", c.After}} {
		if n, distance := sum(s.bins); n > 0 {
			out += fmt.Sprintf(" Calibration %s: %s answers, on average %.3f away from it.", s.when, short(n), distance)
		}
	}
	return out
}

func (c Calibration) table(title string) template.HTML {
	var rows [][]string
	for _, s := range []struct {
		when string
		bins []stat.Bin
	}{{"before", c.Before}, {"after", c.After}} {
		for _, b := range s.bins {
			rows = append(rows, []string{fmt.Sprintf("%s, %.2f to %.2f", s.when, b.Low, b.High), whole(b.N), fmt.Sprintf("%.3f", b.Said), fmt.Sprintf("%.3f", b.True)})
		}
	}
	for i, p := range c.Curve {
		if i == mostBins {
			break
		}
		rows = append(rows, []string{fmt.Sprintf("curve at %.3f", part(p.Score)), "–", fmt.Sprintf("%.3f", part(p.Score)), fmt.Sprintf("%.3f", part(p.Probability))})
	}
	return table(title, []string{"Answers", "How many", "Said", "Right"}, rows)
}

// square is the unit square in a picture.
type square struct {
	frame
	left, top, side float64
}

func (q square) x(v float64) float64 { return q.left + v*q.side }
func (q square) y(v float64) float64 { return q.top + (1-v)*q.side }

func (c Calibration) draw(p *pen, f frame) float64 {
	q := square{frame: f, left: edge + f.size + 40, top: 12, side: 330}
	if f.narrow {
		q.side = f.width - q.left - 14
	}
	q.axes(p)
	var curve track
	for i, at := range c.Curve {
		if x, y := q.x(part(at.Score)), q.y(part(at.Probability)); i == 0 {
			curve.move(x, y)
		} else if i < mostBins {
			curve.to(x, y)
		}
	}
	p.path("curve", &curve)
	q.dots(p, c.Before, "ring", "before")
	q.dots(p, c.After, "disc", "after")
	if f.narrow {
		y := q.counts(p, c.shown(), edge, q.y(0)+3*f.size+26, f.width-2*edge)
		return y + legend(p, f, y+4, c.keys()) + 4
	}
	// beside the square, where a wide picture has room
	left := q.x(1) + 40
	rows := q.counts(p, c.shown(), left, q.top+f.size, f.width-edge-left)
	bottom := max(rows, q.y(0)+2*f.size+14)
	return bottom + legend(p, f, bottom+4, c.keys()) + 4
}

// shown is what the counts are of: those after, or those before if there are no others.
func (c Calibration) shown() []stat.Bin {
	if len(c.After) > 0 {
		return c.After
	}
	return c.Before
}

func (q square) axes(p *pen) {
	var lines, diagonal track
	p.group("axis", anchored("end"))
	for i := 0; i <= 10; i += 2 {
		v := float64(i) / 10
		lines.down(q.x(v), q.y(1), q.y(0))
		lines.across(q.x(0), q.y(v), q.x(1))
		p.text(q.left-8, q.y(v)+q.size*0.36, fmt.Sprintf("%.1f", v))
	}
	p.close("g")
	p.group("axis", anchored("middle"))
	for i := 0; i <= 10; i += 2 {
		p.text(q.x(float64(i)/10), q.y(0)+q.size+5, fmt.Sprintf("%.1f", float64(i)/10))
	}
	p.text(q.x(0.5), q.y(0)+2*q.size+10, "said", class("head"))
	at := number(q.top + q.side/2)
	p.text(edge+q.size, q.top+q.side/2, "right", class("head"), attr{"transform", "rotate(-90 " + number(edge+q.size) + " " + at + ")"})
	p.close("g")
	p.path("grid", &lines)
	diagonal.move(q.x(0), q.y(0))
	diagonal.to(q.x(1), q.y(1))
	p.path("diagonal", &diagonal)
	p.text(q.x(0.04), q.y(0.93), "says too little", class("soft"))
	p.text(q.x(0.96), q.y(0.04), "says too much", class("soft"), anchored("end"))
}

// dots draws intervals, the large ones first, so that they hide no small one.
func (q square) dots(p *pen, bs []stat.Bin, c constant, when string) {
	answers, _ := sum(bs)
	var joined track
	for i, b := range bs {
		if i == 0 {
			joined.move(q.x(b.Said), q.y(b.True))
		} else {
			joined.to(q.x(b.Said), q.y(b.True))
		}
	}
	if c == "disc" {
		p.path("joined", &joined)
	}
	bs = slices.SortedStableFunc(slices.Values(bs), func(a, b stat.Bin) int { return cmp.Compare(b.N, a.N) })
	for _, b := range bs {
		radius := 2.5 + 8*math.Sqrt(float64(b.N)/answers)
		p.dot(c, q.x(b.Said), q.y(b.True), radius, fmt.Sprintf("%s: %s, said %.3f, right %.3f", when, plural(b.N, "answer"), b.Said, b.True))
	}
}

// counts draws how many answers each interval has, as rows, and returns where it ends.
func (q square) counts(p *pen, bs []stat.Bin, left, top, width float64) float64 {
	if len(bs) == 0 {
		return top - q.size
	}
	most, words := 0.0, 0.0
	for _, b := range bs {
		most, words = max(most, float64(b.N)), max(words, room(whole(b.N), q.size))
	}
	names := room("0.00 – 0.00", q.size)
	pitch := 24.0
	if len(bs) > 12 {
		pitch = q.size + 3
	}
	p.text(left, top, "Answers by what was said", class("head"))
	y := top + 12
	for _, b := range bs {
		p.text(left, y+7+q.size*0.36, fmt.Sprintf("%.2f – %.2f", b.Low, b.High), class("label"))
		x := left + names + 8
		p.box("fill a", x, y, max(1, (width-names-words-20)*float64(b.N)/most), min(14, pitch-3), "")
		p.text(left+width, y+7+q.size*0.36, whole(b.N), class("soft"), anchored("end"))
		y += pitch
	}
	return y
}

func (c Calibration) keys() []key {
	out := []key{{"calibrated", func(p *pen, x, y float64) {
		var t track
		t.move(x, y+12)
		t.to(x+18, y)
		p.path("diagonal", &t)
	}}}
	if len(c.Before) > 0 {
		out = append(out, key{"before", func(p *pen, x, y float64) { p.dot("ring", x+9, y+6, 5, "") }})
	}
	if len(c.After) > 0 {
		out = append(out, key{"after", func(p *pen, x, y float64) { p.dot("disc", x+9, y+6, 5, "") }})
	}
	if len(c.Curve) > 1 {
		out = append(out, key{"the curve in use", func(p *pen, x, y float64) {
			var t track
			t.across(x, y+6, x+18)
			p.path("curve", &t)
		}})
	}
	return out
}
