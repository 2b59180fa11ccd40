package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// This part writes an answer with the texts that it rests on, for people who want
// to look: each sentence, then every excerpt that it cites, at its place in the stored
// text. An excerpt is told from what is around it also where there are no colours: its
// lines stand behind a heavy bar, which no text can have, between » and «.

// readChars is how many characters of a stored text are shown on each side of an excerpt,
// and readLines how many of its lines.
const (
	readChars = 240
	readLines = 3
)

// Reading writes the page in one write and returns its error. Neither r nor what it holds
// is changed. All text is cleaned.
func Reading(w io.Writer, st term.Style, r *Report, o Options) error {
	b := &book{screen: screen{st.NewPage()}, r: r, v: r.View(), o: o, shown: map[int]bool{}}
	b.title()
	b.answer()
	if b.v.Missing {
		b.gaps(whatIsMissing, b.v.Gaps)
	}
	b.closest()
	b.others()
	b.contradictions()
	if !b.v.Missing {
		b.gaps("Gaps", b.v.Gaps)
	}
	b.items("Discoveries", b.v.Discoveries)
	b.items("Open questions", b.v.Questions)
	b.part("Who was asked", len(b.v.Rihlas))
	b.asked("asked ", b.v.Rihlas)
	if o.Verbose {
		b.decisions(r.Result.Decisions)
	}
	b.table("Confidence", append([]Fact{{Label: "Score", Value: b.v.Confidence}}, b.v.Factors...))
	cost := b.v.Cost
	if o.Cost != "" {
		cost = append(slices.Clone(cost), Fact{Label: "Price", Value: o.Cost})
	}
	b.table("Cost", cost)
	b.checking()
	if len(o.Hints) > 0 {
		b.Gap()
	}
	for _, hint := range o.Hints {
		b.Text("", "  ", dim(term.CleanLine(hint)))
	}
	_, err := b.WriteTo(w)
	return err
}

// book is a page that is being written.
type book struct {
	screen
	r     *Report
	v     *View
	o     Options
	shown map[int]bool // citations that were shown at their place, from one
}

func (b *book) title() {
	for _, t := range b.r.Turns {
		b.Text("", "  ", dim("after "+t.TraceID.String()[:18]+" "), normal(term.CleanLine(cmp.Or(t.Question, t.Asked))))
	}
	b.Text("", "", bold(b.v.Title))
	b.Note("", b.v.About)
	if where := term.CleanLine(b.o.Searched); where != "" {
		b.Text("", "  ", dim("searched: "), normal(where))
	}
	for _, n := range append(slices.Clone(b.o.Notices), b.v.Notices...) {
		b.Text("", "  ", term.Run{Text: "notice: ", Look: term.Yellow}, normal(n))
	}
}

func (b *book) answer() {
	if b.v.Lead != "" {
		b.Gap()
		b.Text("", "", bold(b.v.Lead))
	}
	all := Blocks(b.r.Result)
	if len(all) == 0 {
		b.Gap()
		b.Text("", "", term.Run{Text: None, Look: term.Italic})
	}
	for _, part := range all {
		for _, c := range append(part.Claims, part.Items...) {
			b.Gap()
			b.sentence(c)
		}
		if part.Claims == nil && part.Items == nil {
			b.Gap()
			b.block(b.r.Result, part)
			b.cited(part)
		}
	}
}

// cited writes the sources of a table, a chart or a quote that were not shown yet.
func (b *book) cited(part marchwarden.Block) {
	for _, row := range append(part.Rows, []marchwarden.Cell{{Citations: existing([]int{part.Citation}, part.Citation)}}) {
		for _, cell := range row {
			for _, n := range cell.Citations {
				if !b.shown[n] {
					b.source(n)
				}
			}
		}
	}
}

func (b *book) sentence(c marchwarden.Claim) {
	b.Cited = len(b.r.Result.Citations)
	b.Text("", "", bold(marked(c.Text, c.Citations)))
	b.Cited = 0
	switch {
	case len(c.Citations) == 0:
		b.Text("  ", "  ", dim("cites nothing"))
	case c.Support == "":
		b.Text("  ", "  ", dim(string(marchwarden.Unchecked)+": rests on what follows"))
	default:
		b.Text("  ", "  ", verdict(string(c.Support)))
	}
	for _, n := range c.Citations {
		b.source(n)
	}
}

func (b *book) closest() {
	for i, s := range b.v.Closest {
		if i == 0 {
			b.Section(notAnAnswer, term.Plain)
		} else {
			b.Gap()
		}
		b.Text("  • ", "    ", bold(s.Heading))
		b.Note("    ", append([]string{s.Locator}, s.Facts...))
		b.placed("    ", Window{Excerpt: s.Excerpt}, false)
	}
}

func verdict(v string) term.Run {
	switch marchwarden.Support(v) {
	case marchwarden.Supported:
		return term.Run{Text: "supported by what follows", Look: term.Green}
	case marchwarden.Quoted:
		return normal("quoted: copied from what follows")
	case marchwarden.Partial:
		return term.Run{Text: "supported in part by what follows", Look: term.Yellow}
	case marchwarden.Unsupported:
		return term.Run{Text: "not supported by what follows", Look: term.Red}
	}
	return dim("unchecked: whether what follows supports it was not judged")
}

func (b *book) others() {
	b.part("Other sources", len(b.v.Sources)-len(b.shown))
	for n := range b.v.Sources {
		if !b.shown[n+1] {
			b.source(n + 1)
		}
	}
}

// source writes a source with its excerpt: at first at its place in the stored text, later by itself.
func (b *book) source(n int) {
	s := b.v.Sources[n-1]
	b.Gap()
	locator := s.Locator
	if locator == s.Heading {
		locator = ""
	}
	indent := b.SourceHead("["+term.Count(n)+"]", s.Heading, locator)
	again := b.shown[n]
	b.shown[n] = true
	if again {
		b.Note(indent, []string{"shown above at its place"})
		b.placed(indent, Window{Excerpt: s.Excerpt}, false)
		return
	}
	b.Note(indent, b.facts(s))
	for _, p := range s.Problems {
		b.Text(indent, indent, term.Run{Text: p, Look: term.Yellow})
	}
	window, ok := b.r.Excerpt(n-1, readChars)
	b.placed(indent, window, ok)
}

var brief = []string{"Kind", "Author", "Published", "Fetched", "Authority"}

func (b *book) facts(s SourceView) []string {
	var out []string
	all := s.Facts
	if b.o.Verbose {
		all = append(slices.Clone(all), s.Got...)
	}
	for _, f := range all {
		switch {
		case f.Label == "Kind":
			out = append(out, f.Value)
		case b.o.Verbose || slices.Contains(brief, f.Label):
			out = append(out, strings.ToLower(f.Label)+" "+f.Value)
		}
	}
	return out
}

// placed writes an excerpt between what stands before and after it.
func (b *book) placed(indent string, w Window, inText bool) {
	if strings.TrimSpace(w.Excerpt) == "" {
		return
	}
	if w.Excerpt == marchwarden.ExcerptNonText {
		b.Text(indent, indent, dim("it is no text, and nothing of it can be shown"))
		return
	}
	light, heavy := indent+"│ ", indent+term.ExcerptBar+" "
	beside := func(lines []string) {
		for _, l := range lines {
			b.Text(light, light, dim(l))
		}
	}
	if inText {
		lines := textLines(w.Before)
		from := max(0, len(lines)-readLines)
		beside(continued(lines[from:], from > 0 || w.Earlier > 0, 0, "… %s"))
	}
	b.Text(heavy, heavy, term.Run{Text: "» ", Look: term.Tint}, bold(strings.Join(textLines(w.Excerpt), "\n")), term.Run{Text: " «", Look: term.Tint})
	if inText {
		lines := textLines(w.After)
		to := min(len(lines), readLines)
		beside(continued(lines[:to], to < len(lines) || w.Later > 0, to-1, "%s …"))
	}
}

func textLines(s string) []string {
	var out []string
	for l := range strings.SplitSeq(term.Clean(s), "\n") {
		if l = strings.TrimSpace(strings.ReplaceAll(l, "\t", " ")); l != "" {
			out = append(out, l)
		}
	}
	return out
}

// continued marks in a line that there is more of a text, if there is, that is not shown.
func continued(all []string, more bool, at int, form string) []string {
	switch {
	case !more:
	case len(all) == 0:
		return []string{"…"}
	default:
		all[at] = fmt.Sprintf(form, all[at])
	}
	return all
}

func (b *book) items(title string, all []Item) {
	b.part(title, len(all))
	for _, i := range all {
		b.Text("  • ", "    ", headed(i.Head, i.Text)...)
		b.Note("    ", i.Facts)
	}
}

// asked writes who is asked what, by numbers that decisions name.
func (p screen) asked(verb string, all []Item) {
	for i, r := range all {
		head := "  " + term.Pad(term.Count(i+1), len(term.Count(len(all))), true) + " "
		indent := strings.Repeat(" ", len(head))
		p.Text(head, indent, normal(verb), bold(r.Head), normal(": "+r.Text))
		p.Note(indent, r.Facts)
	}
}

func (b *book) table(title string, facts []Fact) {
	b.Section(title, term.Plain)
	column := 0
	for _, f := range facts {
		column = max(column, term.Width(f.Label)+2)
	}
	for _, f := range facts {
		label := "  " + term.Pad(term.CleanLine(f.Label), column, false)
		b.Text(label, strings.Repeat(" ", term.Width(label)), normal(term.CleanLine(f.Value)))
	}
}

func (b *book) checking() {
	// The id stands in the commands, where it is not broken.
	facts := slices.DeleteFunc(slices.Clone(b.v.Provenance), func(f Fact) bool { return f.Label == "Trace" && len(b.v.Commands) > 0 })
	b.table("Record", facts)
	for _, c := range b.v.Commands {
		b.Unbroken("  ", c, term.Plain)
	}
}
