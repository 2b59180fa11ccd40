package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// tenth is a coordinate as it is written.
func tenth(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return math.Round(max(-1e6, min(1e6, v))*10)/10 + 0 // + 0 for -0
}

// number writes a coordinate.
func number(v float64) string { return strconv.FormatFloat(tenth(v), 'f', -1, 64) }

// room is how wide a text of a size is at most. It is the width in DejaVu Sans, which is
// wider than the other fonts that browsers take for an interface.
func room(s string, size float64) float64 {
	w := 0.0
	for _, r := range s {
		w += runeRoom(r)
	}
	return w * size
}

// ascii is how wide the characters from space to tilde are, in hundredths of the size.
var ascii = [95]float64{
	32, 41, 46, 84, 64, 96, 78, 28, 40, 40, 50, 84, 32, 37, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 54,
	100, 69, 69, 70, 78, 64, 58, 78, 76, 30, 30, 66, 56, 87, 75, 79, 61, 79, 70, 64, 62, 74, 69, 99, 69, 62, 69, 40, 34, 40, 84, 50,
	50, 62, 64, 55, 64, 62, 36, 64, 64, 28, 28, 58, 28, 98, 64, 62, 64, 64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84,
}

// runeRoom is for a text of size 1.
func runeRoom(r rune) float64 {
	switch {
	case r >= ' ' && r <= '~':
		return ascii[r-' '] / 100
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r == '·':
		return 0.32
	case r < 0x250 && unicode.IsLower(r):
		return 0.7
	case r >= 0xFDF0 && r <= 0xFDFF || r >= 0x12000 && r <= 0x123FF: // phrases in one character, and numbers in cuneiform
		return 4
	case r >= 0x1F000:
		return 1.4
	}
	return 1.1
}

// fit is as much of a text as has room, with an ellipsis for the rest.
func fit(s string, width, size float64) string {
	s = chartLine(s)
	if room(s, size) <= width {
		return s
	}
	left := width/size - runeRoom('…')
	for i, r := range s {
		if left -= runeRoom(r); left < 0 {
			return strings.TrimRight(s[:i], " ") + "…"
		}
	}
	return s
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

// clockStep is the smallest round step of at most so many in a time, whose labels have
// room side by side.
func clockStep(whole time.Duration, width, size float64) time.Duration {
	fits := func(step time.Duration) bool {
		each := width * float64(step) / float64(max(whole, 1))
		widest := 0.0
		for at := time.Duration(0); at <= whole && at >= 0; at += step {
			if widest = max(widest, room(elapsed(at), size)+16); each < widest {
				return false
			}
			if at > math.MaxInt64-step {
				break
			}
		}
		return true
	}
	for _, step := range clockSteps {
		if whole/step < 1000 && fits(step) {
			return step
		}
	}
	for step := oneDay; step < math.MaxInt64/20; {
		for _, m := range []time.Duration{1, 2, 5} {
			if whole/(m*step) < 1000 && fits(m*step) {
				return m * step
			}
		}
		step *= 10
	}
	return math.MaxInt64
}

// elapsed is a time in its two largest units, as people say it.
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

// key is one entry of a legend.
type key struct {
	name string
	draw func(p *pen, x, y float64) // a swatch of 18 by 12, its left upper corner at the point
}

// legend puts entries side by side, as many lines as it takes, and returns the height
// below y that they took.
func legend(p *pen, f frame, y float64, keys []key) float64 {
	const swatch, gap = 18.0, 18.0
	x, top := edge, y
	for _, k := range keys {
		name := fit(k.name, f.width-2*edge-swatch-6, f.size)
		width := swatch + 6 + room(name, f.size)
		if x > edge && x+width > f.width-edge {
			x, y = edge, y+f.size+8
		}
		k.draw(p, x, y+1)
		p.text(x+swatch+6, y+f.size-1, name)
		x += width + gap
	}
	return y - top + f.size + 8
}

// track is the data of a path.
type track struct {
	b    strings.Builder
	x, y float64 // where the last bar ended
}

func (t *track) put(command byte, values ...float64) {
	t.b.WriteByte(command)
	for i, v := range values {
		n := number(v)
		if i > 0 && n[0] != '-' {
			t.b.WriteByte(' ')
		}
		t.b.WriteString(n)
	}
}

// across and down are single lines along an axis.
func (t *track) across(x, y, to float64) { t.put('M', x, y); t.put('H', to) }
func (t *track) down(x, y, to float64)   { t.put('M', x, y); t.put('V', to) }

// bar is a line to the right, written in as few characters as it can be: many of them
// are most of a picture.
func (t *track) bar(x, y, to float64) {
	x, y, to = tenth(x), tenth(y), tenth(to)
	if t.b.Len() == 0 {
		t.put('M', x, y)
	} else {
		t.put('m', x-t.x, y-t.y)
	}
	t.put('h', to-x)
	t.x, t.y = to, y
}

// rect is a closed rectangle.
func (t *track) rect(x, y, w, h float64) {
	t.put('M', x, y)
	t.put('H', x+w)
	t.put('V', y+h)
	t.put('H', x)
	t.b.WriteByte('Z')
}
