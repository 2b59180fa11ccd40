package page

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// allowed are the elements and attributes that a chart may have.
var (
	allowedElements = strings.Fields("root svg title desc g rect line text tspan table caption thead tbody tr th td figure details summary div ul li p span")
	allowedAttrs    = strings.Fields("class role font-size text-anchor x y x1 x2 y1 y2 width height stroke-width scope colspan tabindex aria-label aria-hidden")
)

// canvas is an svg element: where it begins, how wide it is, and how high the picture is.
type canvas struct{ x, y, width, height float64 }

// length is an attribute in units of the picture, of which a part may be given in percent.
func (c canvas) length(e xml.StartElement, name string) (float64, error) {
	text := attrOf(e, name, "0")
	part, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(part, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%s of %s is %q", name, e.Name.Local, text)
	}
	if percent {
		v = v / 100 * c.width
	}
	return v, nil
}

// holds fails unless an element lies in the picture.
func (c canvas) holds(e xml.StartElement, width float64) error {
	var at [6]float64
	for i, name := range []string{"x", "y", "x1", "y1", "x2", "y2"} {
		v, err := c.length(e, name)
		if err != nil {
			return err
		}
		at[i] = v
	}
	wide, err := c.length(e, "width")
	if err != nil {
		return err
	}
	high, err := c.length(e, "height")
	if err != nil {
		return err
	}
	const touch = 0.1
	for _, x := range []float64{at[0], at[0] + wide, at[2], at[4]} {
		if x += c.x; x < -touch || x > width+touch {
			return fmt.Errorf("%v is at %g of %g", e, x, width)
		}
	}
	for _, y := range []float64{at[1], at[1] + high, at[3], at[5]} {
		if y += c.y; y < 0 || c.height > 0 && y > c.height+touch {
			return fmt.Errorf("%v is at %g of %g below the top", e, y, c.height)
		}
	}
	return nil
}

// within is an svg element in another one.
func (c canvas) within(e xml.StartElement) (canvas, error) {
	x, err := c.length(e, "x")
	if err != nil {
		return c, err
	}
	y, err := c.length(e, "y")
	if err != nil {
		return c, err
	}
	width, err := c.length(e, "width")
	if err != nil {
		return c, err
	}
	height := c.height
	if height == 0 {
		height, err = c.length(e, "height")
	}
	return canvas{c.x + x, c.y + y, width, height}, err
}

// walk reads a chart of a width and fails if it is not well formed, or has what it must not have.
func walk(html string, width float64) error {
	stack := []canvas{{width: width}}
	dec := xml.NewDecoder(strings.NewReader("<root>" + html + "</root>"))
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch e := token.(type) {
		case xml.StartElement:
			if err := permitted(e); err != nil {
				return err
			}
			now := stack[len(stack)-1]
			if slices.Contains([]string{"rect", "line", "text", "svg"}, e.Name.Local) {
				if err := now.holds(e, width); err != nil {
					return err
				}
			}
			if e.Name.Local == "svg" {
				if now, err = now.within(e); err != nil {
					return err
				}
			}
			stack = append(stack, now)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.Comment, xml.ProcInst, xml.Directive:
			return fmt.Errorf("a %T", token)
		}
	}
}

func permitted(e xml.StartElement) error {
	if !slices.Contains(allowedElements, e.Name.Local) {
		return fmt.Errorf("an element %s", e.Name.Local)
	}
	for _, a := range e.Attr {
		if !slices.Contains(allowedAttrs, a.Name.Local) {
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

// pictureFaults are what is wrong with a chart, in words, on a phone and on a desk.
func pictureFaults(html string) []string {
	var out []string
	for _, width := range []float64{340, 900} {
		if err := walk(html, width); err != nil {
			out = append(out, err.Error())
		}
	}
	return out
}
