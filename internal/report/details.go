package report

import (
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// decisions lists what an investigator did about the reports, in its order.
func (b *book) decisions(ds []marchwarden.Decision) {
	const column = 12 // "dispatched" and two spaces
	b.part("Follow-up", len(ds))
	for _, d := range ds {
		runs := []term.Run{dim(term.Pad(term.Truncate(term.CleanLine(string(d.Action)), column-2), column, false))}
		if about := strings.ReplaceAll(plaintext.Fold(d.About), "_", " "); about != "" {
			runs = append(runs, dim(about+": "))
		}
		runs = append(runs, headed(d.Topic, d.Reason)...)
		switch from := "question " + term.Count(d.From); {
		case d.Rihla > 0:
			runs = append(runs, dim(" ("+from+" → "+term.Count(d.Rihla)+")"))
		case d.From > 0:
			runs = append(runs, dim(" ("+from+")"))
		}
		b.Text("  ", strings.Repeat(" ", 2+column), runs...)
	}
}

// headed is a bold head and what is said about it.
func headed(head, said string) []term.Run {
	head, said = term.CleanLine(head), term.CleanLine(said)
	if head == "" || said == "" {
		return []term.Run{normal(head + said)}
	}
	return []term.Run{bold(head), normal(" — " + said)}
}

func (b *book) contradictions() {
	for i, c := range b.v.Contradictions {
		if i == 0 {
			b.Section("Contradictions", term.Yellow)
		} else {
			b.Gap()
		}
		b.Text("  ", "  ", bold(c.About))
		if c.Detail != "" {
			b.Text("  ", "  ", normal(c.Detail))
		}
		b.side(c.Sides[0])
		b.Text("  ", "  ", dim("against"))
		b.side(c.Sides[1])
	}
}

func (b *book) side(s SideView) {
	var where []term.Run
	if s.Source > 0 {
		where = append(where, term.Run{Text: "[" + term.Count(s.Source) + "] ", Look: term.Tint})
	}
	if s.Heading != s.Locator {
		where = append(where, normal(s.Heading+" — "))
	}
	const bar = "  │ "
	b.Text(bar, bar, append(where, dim(s.Locator))...)
	b.Note(bar, s.Facts)
	for _, run := range []term.Run{bold(s.Value), normal(s.Excerpt)} {
		if strings.TrimSpace(run.Text) != "" {
			run.Text = term.CleanLine(run.Text)
			b.Text(bar, bar, run)
		}
	}
}

// part opens a part of the page that has something to say.
func (p screen) part(title string, things int) {
	if things > 0 {
		p.Section(title, term.Plain)
	}
}

func (p screen) gaps(title string, groups []GapGroup) {
	p.part(title, len(groups))
	for _, g := range groups {
		p.Text("  ", "  ", term.Run{Text: g.Words, Look: term.Italic})
		for _, x := range g.Gaps {
			p.Text("    • ", "      ", headed(x.Topic, x.Detail)...)
			for _, done := range x.Done {
				p.Text("      → ", "        ", dim(done))
			}
		}
	}
}

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
