package chart

import (
	"html/template"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// constant is markup: the name of an element, an attribute or a class. A literal of
// the source becomes one by itself, a text from outside cannot.
type constant string

// attr is an attribute. Its value is escaped.
type attr struct {
	name  constant
	value string
}

func class(c constant) attr             { return attr{"class", string(c)} }
func num(name constant, v float64) attr { return attr{name, number(v)} }
func anchored(where constant) attr      { return attr{"text-anchor", string(where)} }

// pen writes elements. Text and values of attributes are escaped wherever they go.
type pen struct{ b strings.Builder }

// html is all that was written.
func (p *pen) html() template.HTML { return template.HTML(p.b.String()) }

// escapes are the characters that mean something in HTML or XML.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

func (p *pen) start(tag constant, attrs []attr) {
	p.b.WriteByte('<')
	p.b.WriteString(string(tag))
	for _, a := range attrs {
		p.b.WriteByte(' ')
		p.b.WriteString(string(a.name))
		p.b.WriteString(`="`)
		_, _ = escapes.WriteString(&p.b, a.value)
		p.b.WriteByte('"')
	}
}

// open begins an element with content.
func (p *pen) open(tag constant, attrs ...attr) {
	p.start(tag, attrs)
	p.b.WriteByte('>')
}

// group begins a group of a class.
func (p *pen) group(c constant, attrs ...attr) { p.open("g", append([]attr{class(c)}, attrs...)...) }

// close ends elements, the innermost first.
func (p *pen) close(tags ...constant) {
	for _, tag := range tags {
		p.b.WriteString("</")
		p.b.WriteString(string(tag))
		p.b.WriteByte('>')
	}
}

// shape is an element of a class without content, or with a word for those who point
// at it.
func (p *pen) shape(tag constant, said string, attrs ...attr) {
	p.start(tag, attrs)
	if said == "" {
		p.b.WriteString("/>")
		return
	}
	p.b.WriteByte('>')
	p.words("title", said)
	p.close(tag)
}

// longest is how many characters of a foreign text are ever written.
const longest = 400

// line is a foreign text as it may stand on a page: on one line, nothing hidden, bounded.
func line(s string) string { return plaintext.Line(s, longest) }

// words is an element with nothing but text.
func (p *pen) words(tag constant, s string, attrs ...attr) {
	p.open(tag, attrs...)
	_, _ = escapes.WriteString(&p.b, line(s))
	p.close(tag)
}

// text is a label whose base line begins, has its middle or ends at a point, as the
// group around it says or an attribute.
func (p *pen) text(x, y float64, s string, attrs ...attr) {
	p.words("text", s, append([]attr{num("x", x), num("y", y)}, attrs...)...)
}

// path is a shape of straight lines; one of no lines is not written.
func (p *pen) path(c constant, d *track) {
	if d.b.Len() > 0 {
		p.shape("path", "", class(c), attr{"d", d.b.String()})
	}
}

// box is a rectangle of a class, with a word for those who point at it.
func (p *pen) box(c constant, x, y, w, h float64, said string) {
	p.shape("rect", said, class(c), num("x", x), num("y", y), num("width", max(0, w)), num("height", max(0, h)))
}

// dot is a circle of a class.
func (p *pen) dot(c constant, x, y, r float64, said string) {
	p.shape("circle", said, class(c), num("cx", x), num("cy", y), num("r", max(0, r)))
}

// table is a table whose rows are named by their first cell.
func table(caption string, head []string, rows [][]string) template.HTML {
	var p pen
	p.open("table")
	p.words("caption", caption)
	p.open("thead")
	p.open("tr")
	for _, h := range head {
		p.words("th", h, attr{"scope", "col"})
	}
	p.close("tr", "thead")
	p.open("tbody")
	for i, row := range rows {
		if i == mostRows {
			p.open("tr")
			p.words("td", "and "+plural(len(rows)-i, "more row"), attr{"colspan", strconv.Itoa(len(head))})
			p.close("tr")
			break
		}
		p.open("tr")
		for j, cell := range row {
			if j == 0 {
				p.words("th", cell, attr{"scope", "row"})
			} else {
				p.words("td", cell)
			}
		}
		p.close("tr")
	}
	p.close("tbody", "table")
	return p.html()
}

// mostRows is how many rows a table has at most; one more says how many there are.
const mostRows = 1000

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

func (t *track) move(x, y float64) { t.put('M', x, y) }
func (t *track) to(x, y float64)   { t.put('L', x, y) }

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

// hatch fills a rectangle with lines, so many units apart. Rising lines go up to the
// right, falling ones down; level ones are neither.
func (t *track) hatch(kind texture, x, y, w, h, apart float64) {
	switch kind {
	case rising, falling, crossed:
		if kind == crossed {
			t.hatch(falling, x, y, w, h, apart)
		}
		for c := apart / 2; c < w+h; c += apart {
			// the line x+y = c within the rectangle, from its lower to its upper end
			x1, y1 := max(0, c-h), min(h, c)
			x2, y2 := min(w, c), max(0, c-w)
			if kind == falling {
				y1, y2 = h-y1, h-y2
			}
			if x2-x1 > 0.5 {
				t.move(x+x1, y+y1)
				t.to(x+x2, y+y2)
			}
		}
	case level:
		for c := apart / 2; c < h; c += apart {
			t.across(x, y+c, x+w)
		}
	case upright:
		for c := apart / 2; c < w; c += apart {
			t.down(x+c, y, y+h)
		}
	}
}

// texture is what tells areas apart besides their colour.
type texture int

const (
	plain texture = iota
	rising
	level
	falling
	upright
	crossed
)
