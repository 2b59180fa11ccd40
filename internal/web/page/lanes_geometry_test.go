package page

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// area is where something lies in a picture.
type area struct {
	what       string
	l, t, r, b float64
}

func (a area) overlaps(b area) bool {
	const touch = 0.3
	return a.l < b.r-touch && b.l < a.r-touch && a.t < b.b-touch && b.t < a.b-touch
}

// read is an svg element as a reader of XML sees it.
type read struct {
	width, height float64
	shapes        []area
	labels        []area // text but for letters on bars
	elements      int
}

// allowed are the elements and attributes that a chart may have.
var (
	allowedElements = strings.Fields("root svg title desc g rect circle path text table caption thead tbody tr th td figure details summary div")
	allowedAttrs    = strings.Fields("class role viewBox font-size text-anchor x y width height cx cy r d stroke-width transform scope colspan tabindex aria-label")
)

// walk reads a chart and fails if it is not well formed, or has what it must not have.
func walk(html string) ([]*read, error) {
	var out []*read
	var now *read
	type inherited struct{ anchor, size string }
	stack := []inherited{{"start", "13"}}
	var text *strings.Builder
	var start xml.StartElement
	dec := xml.NewDecoder(strings.NewReader("<root>" + html + "</root>"))
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		switch e := token.(type) {
		case xml.StartElement:
			if err := permitted(e); err != nil {
				return nil, err
			}
			in := stack[len(stack)-1]
			in.anchor, in.size = attrOf(e, "text-anchor", in.anchor), attrOf(e, "font-size", in.size)
			stack = append(stack, in)
			switch name := e.Name.Local; {
			case name == "svg":
				now = &read{}
				if _, err := fmt.Sscanf(attrOf(e, "viewBox", ""), "0 0 %g %g", &now.width, &now.height); err != nil {
					return nil, err
				}
				out = append(out, now)
			case name == "text":
				text, start = &strings.Builder{}, e.Copy()
			case now != nil:
				if err := now.shape(e); err != nil {
					return nil, err
				}
			}
			if now != nil {
				now.elements++
			}
		case xml.CharData:
			if text != nil {
				text.Write(e)
			}
		case xml.EndElement:
			if e.Name.Local == "text" {
				in := stack[len(stack)-1]
				if err := now.text(start, text.String(), in.anchor, in.size); err != nil {
					return nil, err
				}
				text = nil
			}
			if e.Name.Local == "svg" {
				now = nil
			}
			stack = stack[:len(stack)-1]
		case xml.Comment, xml.ProcInst, xml.Directive:
			return nil, fmt.Errorf("a %T", token)
		}
	}
}

func permitted(e xml.StartElement) error {
	if !strings.Contains(" "+strings.Join(allowedElements, " ")+" ", " "+e.Name.Local+" ") {
		return fmt.Errorf("an element %s", e.Name.Local)
	}
	for _, a := range e.Attr {
		if !strings.Contains(" "+strings.Join(allowedAttrs, " ")+" ", " "+a.Name.Local+" ") {
			return fmt.Errorf("an attribute %s", a.Name.Local)
		}
	}
	return nil
}

func attrOf(e xml.StartElement, name, otherwise string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return otherwise
}

func numbersOf(e xml.StartElement, names ...string) ([]float64, error) {
	var out []float64
	for _, name := range names {
		v, err := strconv.ParseFloat(attrOf(e, name, "none"), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%s of %s is %q", name, e.Name.Local, attrOf(e, name, "none"))
		}
		out = append(out, v)
	}
	return out, nil
}

func (r *read) shape(e xml.StartElement) error {
	what := e.Name.Local + " " + attrOf(e, "class", "")
	switch e.Name.Local {
	case "rect":
		v, err := numbersOf(e, "x", "y", "width", "height")
		if err != nil {
			return err
		}
		r.shapes = append(r.shapes, area{what, v[0], v[1], v[0] + v[2], v[1] + v[3]})
	case "circle":
		v, err := numbersOf(e, "cx", "cy", "r")
		if err != nil {
			return err
		}
		r.shapes = append(r.shapes, area{what, v[0] - v[2], v[1] - v[2], v[0] + v[2], v[1] + v[2]})
	case "path":
		width, err := strconv.ParseFloat(attrOf(e, "stroke-width", "0"), 64)
		if err != nil {
			return err
		}
		a, err := extent(attrOf(e, "d", ""))
		if err != nil {
			return err
		}
		r.shapes = append(r.shapes, area{what, a.l, a.t - width/2, a.r, a.b + width/2})
	}
	return nil
}

var pathPart = regexp.MustCompile(`[MLHVZmlh]|-?[0-9]+(?:\.[0-9]+)?`)

// extent is where a path of M, L, H, V and Z goes, or of m, l and h.
func extent(d string) (area, error) {
	a := area{l: math.Inf(1), t: math.Inf(1), r: math.Inf(-1), b: math.Inf(-1)}
	if rest := strings.TrimSpace(pathPart.ReplaceAllString(d, "")); rest != "" {
		return a, fmt.Errorf("%q in a path", rest)
	}
	var command byte
	var v []float64
	var x, y float64
	for _, part := range pathPart.FindAllString(d, -1) {
		if strings.Contains("MLHVZmlh", part) {
			if len(v) > 0 {
				return a, fmt.Errorf("%v left over in a path", v)
			}
			command = part[0]
			continue
		}
		n, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return a, err
		}
		v = append(v, n)
		switch {
		case command == 'H':
			x = v[0]
		case command == 'V':
			y = v[0]
		case command == 'h':
			x += v[0]
		case len(v) < 2:
			continue
		case command == 'M' || command == 'L':
			x, y = v[0], v[1]
		case command == 'm' || command == 'l':
			x, y = x+v[0], y+v[1]
		default:
			return a, fmt.Errorf("%c with %v in a path", command, v)
		}
		v = v[:0]
		a.l, a.r, a.t, a.b = min(a.l, x), max(a.r, x), min(a.t, y), max(a.b, y)
	}
	return a, nil
}

func (r *read) text(e xml.StartElement, s, anchor, size string) error {
	letters := strings.Contains(attrOf(e, "class", ""), "letter")
	high, err := strconv.ParseFloat(size, 64)
	if err != nil {
		return err
	}
	xs, ys := strings.Fields(attrOf(e, "x", "")), strings.Fields(attrOf(e, "y", ""))
	pieces := []string{s}
	if letters {
		pieces = strings.Split(s, "")
	}
	if len(xs) != len(pieces) || len(ys) != len(pieces) {
		return fmt.Errorf("%d places for %q", len(xs), s)
	}
	for i, piece := range pieces {
		x, err1 := strconv.ParseFloat(xs[i], 64)
		y, err2 := strconv.ParseFloat(ys[i], 64)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("text at %q, %q", xs[i], ys[i])
		}
		wide := room(piece, high)
		switch anchor {
		case "middle":
			x -= wide / 2
		case "end":
			x -= wide
		}
		a := area{"text " + piece, x, y - 0.75*high, x + wide, y + 0.2*high}
		if attrOf(e, "transform", "") != "" { // upright, its middle at the point
			middle, base := x+wide/2, y
			a = area{"text " + piece, middle - 0.75*high, base - wide/2, middle + 0.2*high, base + wide/2}
		}
		if letters {
			r.shapes = append(r.shapes, a)
		} else {
			r.labels = append(r.labels, a)
		}
	}
	return nil
}

// pictureFaults are what is wrong with a chart, in words.
func pictureFaults(html string) []string {
	pictures, err := walk(html)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for i, p := range pictures {
		if !(p.width > 0 && p.height > 0 && p.height < 1e5) {
			out = append(out, fmt.Sprintf("picture %d is %g by %g", i, p.width, p.height))
		}
		for _, a := range append(p.shapes, p.labels...) {
			if !(a.l >= 0 && a.t >= 0 && a.r <= p.width && a.b <= p.height) && a.l <= a.r {
				out = append(out, fmt.Sprintf("picture %d of %g by %g: %v is outside", i, p.width, p.height, a))
			}
		}
		for j, a := range p.labels {
			for _, b := range p.labels[:j] {
				if a.overlaps(b) {
					out = append(out, fmt.Sprintf("picture %d: %v and %v overlap", i, a, b))
				}
			}
		}
	}
	return out
}
