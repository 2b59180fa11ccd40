package term

import (
	"strings"

	"github.com/rivo/uniseg"
)

// This part writes what has one line of a screen, however long it is.

// Line writes runs on one line, cut between words where it ends.
func (p *Page) Line(margin string, runs ...Run) {
	cs := cells(runs, p.Cited)
	for i := range cs {
		if cs[i].text == "\n" {
			cs[i].text, cs[i].must = " ", false
		}
	}
	p.line(margin, p.st.render(shortened(cs, p.st.textWidth()-uniseg.StringWidth(margin))))
}

// shortened is cells that fit a width, with an ellipsis where the rest was.
func shortened(cs []cell, width int) line {
	if line(cs).width() <= width {
		return line(cs)
	}
	end, words, used := 0, 0, 0
	for ; end < len(cs) && used+cs[end].width < width; end++ {
		used += cs[end].width
		if cs[end].can {
			words = end + 1
		}
	}
	if words > end/2 { // else it is one long word
		end = words
	}
	for end > 0 && cs[end-1].text == " " {
		end--
	}
	return append(line(cs[:end:end]), cell{text: "…", width: 1})
}

// Fit is clean one-line text on a terminal of a width, cut between words; 0 is no terminal.
func Fit(s string, width int) string {
	if width <= 0 {
		return s
	}
	return Style{}.render(shortened(cells([]Run{{s, Plain}}, 0), width))
}

// Entry writes a source on one line: its number, its title and its place, and leads to an
// address where the terminal can. On a terminal the line is cut to fit: the title at its end,
// the place at its beginning, where it says least. On a pipe it
// stays whole.
func (p *Page) Entry(number, title, place, address string) {
	title, place, number = CleanLine(title), CleanLine(place), CleanLine(number)+" "
	if title == "" {
		title, place = place, ""
	}
	named, at := cells([]Run{{title, Plain}}, 0), " · "
	if place == "" {
		at = ""
	}
	if room := p.st.textWidth() - Width(number+at); p.st.Width > 0 && line(named).width()+Width(place) > room {
		cut := truncateStart
		if strings.Contains(place, "://") { // the host says most
			cut = Truncate
		}
		place = cut(place, max(room-line(named).width(), room/2))
		named = shortened(named, room-Width(place))
	}
	text := p.st.Paint(Tint, number) + p.st.link(address, p.st.render(named))
	if place != "" {
		text += p.st.Paint(Dim, at) + p.st.link(address, p.st.Paint(Dim, place))
	}
	p.line("", text)
}

// truncateStart shortens clean one-line text to a number of cells at its beginning, a path
// between names.
func truncateStart(s string, width int) string {
	all := uniseg.StringWidth(s)
	if all <= width {
		return s
	}
	for state := -1; s != "" && all >= width; {
		var w int
		_, s, w, state = uniseg.FirstGraphemeClusterInString(s, state)
		all -= w
	}
	if i := strings.IndexAny(s, "/:"); i > 0 && i < len(s)-6 { // what is behind the last is a line
		s = strings.TrimPrefix(s[i:], ":")
	}
	return "…" + s
}

// maxAddress bounds the addresses that terminals are given; some take no more.
const maxAddress = 2000

// link makes painted text lead to an address that is made of nothing but visible ASCII.
func (st Style) link(address, painted string) string {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if !st.Links || address == "" || len(address) > maxAddress || strings.ContainsFunc(address, odd) {
		return painted
	}
	return "\x1b]8;;" + address + "\x1b\\" + painted + "\x1b]8;;\x1b\\"
}
