package term

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

const (
	// whoCells is the most that a researcher's name takes of a line.
	whoCells = 12
	// barFrom is the width of a terminal from which there is a bar in a line.
	barFrom = 48
	// The cells of a bar: a fifth of the width within these.
	barLeast, barMost = 8, 30
)

// frame is the lines that are drawn now, smaller than the terminal. p.mu is held.
func (p *Progress) frame() []string {
	width, height := p.size()
	if p.cfg.Single {
		return []string{p.fit([]Run{{Prefix + describe(p.said[0]), Dim}}, width-1)}
	}
	b := p.board
	if b == nil {
		b = p.fold.Board()
	}
	x := axisOf(b, p.cfg.Now())
	var own run.Lane
	rest := b.Lanes
	if len(rest) > 0 {
		own, rest = rest[0], rest[1:]
	}
	out := []string{p.fit(p.head(b, own, x, len(rest) == 0, width), width-1)}
	shown, hidden := pick(rest, height-2) // one for the head, one for the cursor at the end
	if words := others(hidden, b.More); words != "" {
		out = append(out, p.fit([]Run{{"  … " + words, Dim}}, width-1))
	}
	names, digits := 0, 1
	for _, l := range shown {
		names, digits = max(names, Width(name(l))), max(digits, len(Count(l.Number)))
	}
	for _, l := range shown {
		out = append(out, p.fit(p.lane(l, x, names, digits, width), width-1))
	}
	return out[:max(1, min(len(out), height-1))]
}

func (p *Progress) head(b *run.Board, own run.Lane, x axis, alone bool, width int) []Run {
	words := laneWords(own)
	if e, ok := p.said[0]; ok && !over(own) {
		words = describe(e)
	}
	if b.Ended && b.Interrupted {
		words = strings.Join(nonEmpty("stopped", CleanLine(own.Doing)), " · ")
	}
	out := []Run{{Prefix + clock(x.now.Sub(x.from)) + " ", Dim}}
	if cells := barCells(width); alone && cells > 0 {
		out = append(append(out, x.bar(own, cells, p.cfg.ASCII)...), Run{" ", Plain})
	} else {
		out = append(out, Run{"· ", Dim})
	}
	look := Dim
	if own.State == run.Failed {
		look = Red
	}
	return append(out, Run{strings.Join(nonEmpty(rihlas(b), tokens(b), words), " · "), look})
}

// lane is the line of a rihla: number, researcher, time, bar, words.
func (p *Progress) lane(l run.Lane, x axis, names, digits, width int) []Run {
	took := ""
	if from := began(l); !from.IsZero() {
		end := x.now
		if over(l) {
			end = ended(l, from)
		}
		took = clock(end.Sub(from))
	}
	out := []Run{
		{"  " + Pad(Count(l.Number), digits, true) + " " + Pad(name(l), names, false), Plain},
		{"  " + Pad(took, 5, true) + "  ", Dim},
	}
	if cells := barCells(width); cells > 0 {
		out = append(append(out, x.bar(l, cells, p.cfg.ASCII)...), Run{"  ", Plain})
	}
	words, look := laneWords(l), Dim
	if e, ok := p.said[l.Number]; ok && !over(l) && l.State != run.Planned {
		words = describe(e)
	}
	if l.State == run.Failed {
		look = Red
	}
	return append(out, Run{words, look})
}

// barCells is how long a bar is on a terminal of a width; 0 for none.
func barCells(width int) int {
	if width < barFrom {
		return 0
	}
	return min(max(width/5, barLeast), barMost)
}

func name(l run.Lane) string { return Truncate(CleanLine(l.Researcher), whoCells) }

// fit paints the parts of a line, cut to so many cells.
func (p *Progress) fit(parts []Run, width int) string {
	var b strings.Builder
	left := max(width, 1)
	for _, s := range parts {
		if p.cfg.ASCII {
			s.Text = ascii(s.Text)
		}
		if w := Width(s.Text); w <= left {
			b.WriteString(p.cfg.Style.Paint(s.Look, s.Text))
			left -= w
			continue
		}
		if p.cfg.ASCII { // a cell a byte
			s.Text = s.Text[:max(0, left-2)] + ".."[:min(2, left)]
		} else {
			s.Text = Truncate(s.Text, left)
		}
		b.WriteString(p.cfg.Style.Paint(s.Look, s.Text))
		break
	}
	return b.String()
}

// ascii is text for a terminal that knows no more. What it cannot show is a question
// mark, so that nothing in it can be taken for a control code in another encoding.
func ascii(s string) string {
	s = ours.Replace(s)
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

var ours = strings.NewReplacer("·", "-", "…", "...", "—", "-")

// others says how many lanes have no line, by what they are at.
func others(hidden []run.Lane, more int) string {
	counts := map[string]int{"planned": more}
	for _, l := range hidden {
		switch {
		case over(l):
			counts[string(l.State)]++
		case l.State == run.Planned:
			counts["planned"]++
		default:
			counts["under way"]++
		}
	}
	var parts []string
	for _, what := range []string{"done", "failed", "under way", "planned"} {
		if n := counts[what]; n > 0 {
			parts = append(parts, Count(n)+" "+what)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return Plural(len(hidden)+more, "more rihla") + ": " + strings.Join(parts, ", ")
}

// pick chooses who has a line where there is room for so many: those at work before
// those that wait, and of those that are over the last ones. One line is needed to
// count the others.
func pick(all []run.Lane, room int) (shown, hidden []run.Lane) {
	if len(all) <= room {
		return all, nil
	}
	rank := func(l run.Lane) int {
		switch {
		case over(l):
			return 2
		case l.State == run.Planned:
			return 1
		}
		return 0
	}
	byRank := slices.Clone(all)
	slices.SortStableFunc(byRank, func(a, b run.Lane) int {
		if c := cmp.Compare(rank(a), rank(b)); c != 0 || rank(a) < 2 {
			return c
		}
		return cmp.Or(ended(b, time.Time{}).Compare(ended(a, time.Time{})), cmp.Compare(b.Number, a.Number))
	})
	room = max(0, room-1)
	shown, hidden = byRank[:room], byRank[room:]
	slices.SortStableFunc(shown, func(a, b run.Lane) int { return cmp.Compare(a.Number, b.Number) })
	return shown, hidden
}
