package term

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
)

// Run is a stretch of text in one look. Its text may come from outside: it is
// cleaned where runs become cells, which is the only way to the page.
type Run struct {
	Text string
	Look Look
}

// cell is one grapheme cluster as it is placed on a line.
type cell struct {
	text  string
	width int
	look  Look
	can   bool // the line may be broken after it
	must  bool // the line ends after it
}

type line []cell

func (l line) width() int {
	n := 0
	for _, c := range l {
		n += c.width
	}
	return n
}

var markerPattern = regexp.MustCompile(`\[[0-9]{1,4}\]`)

// addressPattern finds what is broken over two lines only when it must be.
var addressPattern = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s]+`)

// cells cleans the runs and cuts them into cells, with the places where a line
// may be broken (Unicode line breaking). A marker stays on the line of the word
// before it; one that names a citation, from 1 to cited, is tinted.
func cells(runs []Run, cited int) []cell {
	var text strings.Builder
	ends := make([]int, len(runs))
	for i, r := range runs {
		text.WriteString(strings.ReplaceAll(Clean(r.Text), "\t", " "))
		ends[i] = text.Len()
	}
	s := text.String()
	markers := markerPattern.FindAllStringIndex(s, -1)
	addresses := addressPattern.FindAllStringIndex(s, -1)

	out := make([]cell, 0, len(s))
	state, at, which := -1, 0, 0
	for rest := s; rest != ""; {
		var cluster string
		var bounds int
		cluster, rest, bounds, state = uniseg.StepString(rest, state)
		for which < len(ends)-1 && at >= ends[which] {
			which++
		}
		c := cell{text: cluster, width: bounds >> uniseg.ShiftWidth, look: runs[which].Look}
		switch bounds & uniseg.MaskLine {
		case uniseg.LineCanBreak:
			c.can = true
		case uniseg.LineMustBreak:
			c.must = cluster == "\n"
		}
		for len(addresses) > 0 && at+len(cluster) >= addresses[0][1] {
			addresses = addresses[1:]
		}
		if len(addresses) > 0 && at >= addresses[0][0] {
			c.can = false
		}
		for len(markers) > 0 && at >= markers[0][1] {
			markers = markers[1:]
		}
		if len(markers) > 0 && at >= markers[0][0] {
			if at == markers[0][0] {
				glue(out)
			}
			if names(s[markers[0][0]+1:markers[0][1]-1], cited) {
				c.look = c.look.And(Tint)
			}
		}
		at += len(cluster)
		out = append(out, c)
	}
	return out
}

// series is short facts in a row. Lines are broken between facts; within one only
// if it is too long to be sure of fitting on a line.
func series(facts []string, separator string, look Look) []cell {
	const sure = minText - 11 // beside the longest label
	var out []cell
	for i, f := range facts {
		if i < len(facts)-1 {
			f += separator
		}
		cs := cells([]Run{{f, look}}, 0)
		if line(cs).width() <= sure {
			for j := range cs {
				cs[j].can = false
			}
		}
		if i < len(facts)-1 && len(cs) > 0 {
			cs[len(cs)-1].can = true
		}
		out = append(out, cs...)
	}
	return out
}

// glue forbids a break between the last word and what comes next.
func glue(cs []cell) {
	for i := len(cs) - 1; i >= 0; i-- {
		cs[i].can = false
		if cs[i].text != " " {
			return
		}
	}
}

func names(digits string, cited int) bool {
	n, err := strconv.Atoi(digits)
	return err == nil && n >= 1 && n <= cited
}

// wrap breaks cells into lines: the first of at most first cells, the others of
// at most rest. A word that is too long for a line is cut between clusters.
func wrap(cs []cell, first, rest int) []line {
	var lines []line
	limit := max(first, 1)
	end := func(l []cell) {
		for len(l) > 0 && (l[len(l)-1].text == " " || l[len(l)-1].text == "\n") {
			l = l[:len(l)-1]
		}
		lines = append(lines, line(l))
		limit = max(rest, 1)
	}
	start, width, after := 0, 0, 0 // after is where the line can be broken, if beyond start
	for i := 0; i < len(cs); i++ {
		c := cs[i]
		if c.text != " " && !c.must && width+c.width > limit && i > start {
			cut := i
			if after > start {
				cut = after
			}
			end(cs[start:cut])
			start, width, after = cut, 0, 0
			i = cut - 1 // place what moved down again: the next line may be narrower
			continue
		}
		width += c.width
		if c.must {
			end(cs[start : i+1])
			start, width, after = i+1, 0, 0
		} else if c.can {
			after = i + 1
		}
	}
	if start < len(cs) {
		end(cs[start:])
	}
	return lines
}

func (st Style) render(l line) string {
	var b strings.Builder
	for i := 0; i < len(l); {
		j := i
		var part strings.Builder
		for ; j < len(l) && l[j].look == l[i].look; j++ {
			part.WriteString(l[j].text)
		}
		b.WriteString(st.Paint(l[i].look, part.String()))
		i = j
	}
	return b.String()
}
