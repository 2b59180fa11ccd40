package report

import (
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// block writes a part of an answer. What is between brackets in it may be a marker.
func (p screen) block(res *marchwarden.Result, b marchwarden.Block) {
	p.Cited = len(res.Citations)
	defer func() { p.Cited = 0 }()
	switch b.Type {
	case marchwarden.Heading:
		p.Text("", "", dim(strings.Repeat("#", b.Level)+" "), bold(b.Text))
	case marchwarden.Paragraph:
		var said []string
		for _, c := range b.Claims {
			said = append(said, marked(c.Text, c.Citations))
		}
		p.Text("", "", normal(strings.Join(said, " ")))
	case marchwarden.List:
		for i, c := range b.Items {
			bullet := "• "
			if b.Ordered {
				bullet = term.Count(i+1) + ". "
			}
			p.Text(bullet, strings.Repeat(" ", term.Width(bullet)), normal(marked(c.Text, c.Citations)))
		}
	case marchwarden.Chart:
		p.block(res, verify.Figures(b))
	case marchwarden.TableBlock:
		rows := make([][]term.Run, 1, 1+len(b.Rows))
		for _, c := range b.Columns {
			rows[0] = append(rows[0], bold(c))
		}
		for _, row := range b.Rows {
			var cells []term.Run
			for _, c := range row {
				cells = append(cells, normal(marked(orNone(c), c.Citations)))
			}
			rows = append(rows, cells)
		}
		p.Grid(rows)
	case marchwarden.Quote:
		p.Text("│ ", "│ ", normal(marked(term.CleanLine(res.Citations[b.Citation-1].RawExcerpt), []int{b.Citation})))
	}
}

// marked is a text with its markers.
func marked(text string, cited []int) string {
	if len(cited) > 0 {
		text += " "
	}
	for _, n := range cited {
		text += "[" + strconv.Itoa(n) + "]"
	}
	return strings.TrimSpace(text)
}
