package report

import (
	"fmt"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// This part is a report as a document that is handed on: the answer with its citations, what is to be
// known about it, references, and the excerpts as an appendix. Papers print it.

// paper is a form of the document. Texts are on one line, but for excerpts.
type paper interface {
	heading(level int, text string)
	paragraph(s ...span)
	// item is an entry of a list: number is from one, or 0 for a bullet. The asides say more about it.
	item(number int, asides []string, s ...span)
	// table has its head as first row.
	table(rows [][][]span)
	quote(text string, s ...span)
}

// span is a piece of text: as it is, bold, as code, as a link, or with citations behind it. Between
// two there is a space.
type span struct {
	text       string
	bold, mono bool
	link       string
	notes      []int // citations, from one
}

func text(s string) span   { return span{text: s} }
func strong(s string) span { return span{text: s, bold: true} }

// document is a report that is being printed.
type document struct {
	paper
	*View
	r *Report
}

func (r *Report) print(to paper) {
	d := document{to, r.View(), r}
	if len(d.Notices) > 0 {
		d.paragraph(strong("Take note:"))
		for _, n := range d.Notices {
			d.item(0, nil, text(n))
		}
	}
	d.heading(1, "Answer")
	if d.Lead != "" {
		d.paragraph(span{text: d.Lead, bold: true, notes: existing([]int{d.LeadsTo}, len(r.Result.Citations))})
	}
	d.answer()
	if d.Missing {
		d.gaps(whatIsMissing)
	}
	d.closest()
	d.heading(1, "Confidence")
	d.facts(append([]Fact{{"Confidence", d.Confidence}}, d.Factors...))
	d.claims()
	d.contradictions()
	if !d.Missing {
		d.gaps("Gaps")
	}
	d.items("Discoveries", 0, d.Discoveries, ": ")
	d.items("Open questions", 0, d.Questions, "")
	d.items("Researchers asked", 1, d.Rihlas, " — ")
	d.references()
	d.heading(1, "Cost")
	d.facts(d.Cost)
	d.heading(1, "How to check this report")
	d.facts(d.Provenance)
	if len(d.Commands) > 0 {
		d.paragraph(text(checking))
		for _, c := range d.Commands {
			d.paragraph(span{text: c, mono: true})
		}
	}
	d.appendix()
}

// part opens a part of the document that has something to say.
func (d document) part(title string, things int) {
	if things > 0 {
		d.heading(1, title)
	}
}

func (d document) facts(fs []Fact) {
	for _, f := range fs {
		d.item(0, nil, text(f.Label+": "+f.Value))
	}
}

func (d document) answer() {
	all := Blocks(d.r.Result)
	if len(all) == 0 {
		d.paragraph(text(None))
	}
	for _, b := range all {
		switch b.Type {
		case marchwarden.Heading:
			d.heading(max(b.Level, 2), b.Text)
		case marchwarden.Paragraph:
			var said []span
			for _, c := range b.Claims {
				said = append(said, claimed(c)...)
			}
			d.paragraph(said...)
		case marchwarden.List:
			for i, c := range b.Items {
				number := 0
				if b.Ordered {
					number = i + 1
				}
				d.item(number, nil, claimed(c)...)
			}
		case marchwarden.Quote:
			d.quote(d.r.Result.Citations[b.Citation-1].RawExcerpt, span{notes: []int{b.Citation}})
		case marchwarden.Chart:
			d.grid(verify.Figures(b))
		case marchwarden.TableBlock:
			d.grid(b)
		}
	}
}

// claimed is a sentence with its footnotes and, unless it stands, its verdict.
func claimed(c marchwarden.Claim) []span {
	out := []span{{text: c.Text, notes: c.Citations}}
	if c.Support != "" && !c.Support.Stands() {
		out = append(out, text("("+string(c.Support)+")"))
	}
	return out
}

func (d document) grid(b marchwarden.Block) {
	rows := make([][][]span, 1, 1+len(b.Rows))
	for _, c := range b.Columns {
		rows[0] = append(rows[0], []span{text(c)})
	}
	for _, row := range b.Rows {
		var cells [][]span
		for _, c := range row {
			cells = append(cells, []span{{text: orNone(c), notes: c.Citations}})
		}
		rows = append(rows, cells)
	}
	d.table(rows)
}

func (d document) closest() {
	d.part(notAnAnswer, len(d.Closest))
	for i, s := range d.Closest {
		d.paragraph(strong(s.Heading))
		d.place(nearest(d.r.Result)[i].Locator)
		d.quote(s.Excerpt)
		if len(s.Facts) > 0 {
			d.paragraph(text(strings.Join(s.Facts, " · ")))
		}
	}
}

// place is a locator, as a link if it leads to the web.
func (d document) place(at string) {
	to := webAddress(at)
	switch {
	case to == "":
		d.paragraph(span{text: at, mono: true})
	case to == at:
		d.paragraph(span{text: to, link: to})
	default:
		d.paragraph(span{text: at, mono: true}, span{text: to, link: to})
	}
}

func (d document) claims() {
	d.part("Claims", len(d.Claims))
	for _, c := range d.Claims {
		d.item(c.Number, nil, strong(c.Verdict), text("— "+marked(c.Text, c.Sources)))
	}
}

func (d document) contradictions() {
	d.part("Contradictions", len(d.Contradictions))
	for i, c := range d.Contradictions {
		d.paragraph(strong(c.About))
		if c.Detail != "" {
			d.paragraph(text(c.Detail))
		}
		rows := [][][]span{{{text(oneSide)}, {text(otherSide)}}}
		whole := d.r.Result.Contradictions[i]
		a, b := sideCells(c.Sides[0], whole.A), sideCells(c.Sides[1], whole.B)
		for row := range a {
			if a[row].text != "" || b[row].text != "" {
				rows = append(rows, [][]span{{a[row]}, {b[row]}})
			}
		}
		d.table(rows)
	}
}

func sideCells(v SideView, s marchwarden.Side) [4]span {
	where := span{text: joined(" — ", s.Title, s.Locator)}
	if v.Source > 0 {
		where.notes = []int{v.Source}
	}
	return [4]span{where, text(strings.Join(v.Facts, " · ")), text(v.Value), text("“" + v.Excerpt + "”")}
}

func (d document) gaps(title string) {
	d.part(title, len(d.Gaps))
	for _, g := range d.Gaps {
		d.heading(2, g.Words)
		for _, x := range g.Gaps {
			d.item(0, x.Done, text(joined(" — ", x.Topic, x.Detail)))
		}
	}
}

// items writes a list, if there is any, that counts from first, or with 0 has bullets.
func (d document) items(title string, first int, all []Item, between string) {
	d.part(title, len(all))
	for i, x := range all {
		var facts []string
		if len(x.Facts) > 0 {
			facts = []string{strings.Join(x.Facts, " · ")}
		}
		d.item(first*(i+1), facts, text(x.Head+between+x.Text))
	}
}

func (d document) references() {
	all := d.r.references()
	d.part("References", len(all))
	for _, ref := range all {
		d.paragraph(text(marked("", ref.cited)+" "+ref.text), span{text: ref.address, link: ref.address})
	}
}

// appendix has the excerpts, each as it was cut from the stored text.
func (d document) appendix() {
	d.heading(1, "Appendix: excerpts")
	if len(d.Sources) == 0 {
		d.paragraph(text("None cited."))
	}
	for i, s := range d.Sources {
		c := d.r.Result.Citations[i]
		d.heading(2, fmt.Sprintf("Source %d", s.Number))
		d.paragraph(strong(s.Heading))
		d.place(c.Locator)
		d.quote(c.RawExcerpt)
		for _, p := range s.Problems {
			d.paragraph(strong(p))
		}
		d.facts(s.Facts)
		for _, n := range s.Claims {
			claim := d.Claims[n-1]
			d.item(0, nil, text("cited for claim "+strconv.Itoa(n)+" ("+claim.Verdict+"): "+claim.Text))
		}
	}
}
