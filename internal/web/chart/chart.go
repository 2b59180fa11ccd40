// Package chart draws numbers: how a run went, what runs cost, where tokens and time
// went, how well confidence is calibrated and how much of a budget was used. It owns
// the pictures as SVG, the same numbers as tables for those who hear the page, and
// the style sheet of both. Where the numbers come from and what stands around a
// picture on a page is its callers' affair.
//
// All charts are pure functions: the same numbers give the same bytes. They take any
// numbers. What is not finite or below zero counts as nothing or as unknown, times that
// run backwards take no time, and what is too much to be drawn is counted and stays in
// the table. Foreign text is put on one line, clipped to its room and escaped; nothing
// but this package's own constants is ever markup. No chart has an inline style, an id,
// a script or a link, so a page may have any number of them under the strictest policy.
//
// Every picture is made twice, for a wide place and for a narrow one such as a phone,
// and the style sheet shows the one that fits, so that text is never scaled to where
// it cannot be read. Colour is never alone: states differ in height and rhythm of
// their bars, too, models in texture, and whatever is marked is marked by a shape.
//
//	chart.go        a chart, and how it stands on a page
//	pen.go          SVG and tables in which only constants are markup
//	scale.go        room for text, round steps, numbers as words
//	lanes.go        a run on one axis of time, measured; lanesdraw.go draws it
//	bars.go         cost by day and model
//	rows.go         tokens and time by stage, and what was used of a budget
//	reliability.go  what was said against what was right
package chart

import (
	_ "embed"
	"html/template"
)

// Style is the style sheet of the charts. It needs no other one: light and dark follow
// the reader's system, or the attribute data-theme ("light" or "dark") of an element
// around the chart.
//
//go:embed chart.css
var Style string

// Chart is a picture and its numbers. Both are safe HTML.
type Chart struct {
	Picture template.HTML // two svg elements, of which Style shows the one that fits
	Table   template.HTML // a table element with a caption
}

// Figure is the whole chart as a figure element, its table folded away below it.
func (c Chart) Figure() template.HTML {
	var p pen
	p.open("figure", class("chart"))
	p.b.WriteString(string(c.Picture))
	p.open("details")
	p.words("summary", "The same as numbers")
	p.open("div", class("chart-table"), attr{"tabindex", "0"}, attr{"role", "group"}, attr{"aria-label", "The same as numbers"})
	p.b.WriteString(string(c.Table))
	p.close("div", "details", "figure")
	return p.html()
}

// frame is the place that a picture is made for.
type frame struct {
	name   constant
	width  float64
	size   float64 // of text
	narrow bool
}

var frames = [...]frame{
	{name: "wide", width: 760, size: 13},
	{name: "narrow", width: 360, size: 12, narrow: true},
}

// edge is kept free around every picture, so that no stroke is cut.
const edge = 4.0

// picture draws twice. The function returns the height that it took.
func picture(title, description string, draw func(p *pen, f frame) (height float64)) template.HTML {
	var all pen
	for _, f := range frames {
		var p pen
		height := draw(&p, f)
		all.open("svg", class(f.name), attr{"role", "img"}, attr{"viewBox", "0 0 " + number(f.width) + " " + number(height)}, num("font-size", f.size))
		all.words("title", title)
		all.words("desc", description)
		all.b.WriteString(p.b.String())
		all.close("svg")
	}
	return all.html()
}
