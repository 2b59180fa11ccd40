package verify

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// Bounds of a table.
const (
	maxColumns   = 8
	maxRows      = 24
	maxCellChars = 160
	maxNameChars = 80 // of a column, and of a row
	leastRows    = 2  // a comparison has two sides
	leastColumns = 2
)

// plainNames are names that a column may have, whatever the sources call it. They state nothing.
var plainNames = lexicon.TermSet("name year date place number amount kind type source when where what how many who")

// held is a cell whose words stand in passages.
type held struct {
	text string
	ids  []evidence.ID
}

// table grounds a table, or drops it. Its rows are what is compared, named in their first cells. A cell stands if its
// words do in a passage that it cites, and that passage speaks of its row; what does not stand is empty.
func (g *gate) table(b reason.Block) (*marchwarden.Block, error) {
	columns := b.Columns[:min(len(b.Columns), maxColumns)]
	var rows [][]held
	var labels []string
	drafted := b.Rows[:min(len(b.Rows), maxRows)]
	for _, row := range drafted {
		labels = append(labels, cellText(row, 0, maxNameChars))
	}
	asked := lexicon.TermSet(strings.Join(g.Asked, "\n"))
	said := 0 // cells with words
	for r, row := range drafted {
		cells := make([]held, len(columns))
		for k := 1; k < len(columns); k++ {
			text := cellText(row, k, maxCellChars)
			if text == "" {
				continue
			}
			said++
			if ids := g.holders(labels, r, columns[k], text, row[k].Passages); len(ids) > 0 {
				cells[k] = held{text, ids}
			}
		}
		if kept([][]held{cells}) == 0 {
			continue
		}
		var ok bool
		if cells[0], ok = g.label(labels[r], row[0].Passages, cells, asked); ok {
			rows = append(rows, cells)
		} else {
			g.out.DroppedCells++
		}
	}
	columns, rows = g.columns(columns, rows, asked)
	n := kept(rows)
	if len(rows) < leastRows || len(columns) < leastColumns || 2*n < len(rows)*(len(columns)-1) {
		g.out.DroppedCells += said
		return nil, nil
	}
	g.out.DroppedCells += said - n
	return g.citeTable(columns, rows)
}

// kept counts the cells that say something of their row.
func kept(rows [][]held) int {
	n := 0
	for _, row := range rows {
		for k, c := range row {
			if k > 0 && c.text != "" {
				n++
			}
		}
	}
	return n
}

// emphasis is Markdown that models put around the words of a cell.
var emphasis = strings.NewReplacer("**", "", "__", "", "`", "")

// cellText is what a cell says, as a table may show it: one short line without markers and addresses.
func cellText(row []reason.Cell, k, most int) string {
	if k >= len(row) {
		return ""
	}
	text := unlinked(emphasis.Replace(row[k].Text))
	if utf8.RuneCountInString(text) > most || strings.Contains(text, Removed) {
		return ""
	}
	return text
}

// excerpt is a passage with what stands above it, and the whole text of its document.
func (g *gate) excerpt(id evidence.ID) (x Excerpt, document string, ok bool) {
	src, p, ok := g.set.Passage(id)
	if !ok || src.Page.Unchecked { // there is a stranger's word only
		return x, "", false
	}
	return Excerpt{Heading: strings.Trim(src.Page.Title+" › "+p.Path, " ›"), Text: p.Text}, src.Text, true
}

// holders are the passages that a cell of a row stands in: those that have its words and speak of the row, or, where
// the judge finds row, column and cell supported by them, all.
func (g *gate) holders(labels []string, row int, column, text string, ids []evidence.ID) []evidence.ID {
	var out, known []evidence.ID
	var all []Excerpt
	for _, id := range ids {
		x, document, ok := g.excerpt(id)
		if !ok {
			g.out.UnknownIDs++
			continue
		}
		if known, all = append(known, id), append(all, x); holdsCell(labels, row, text, x, document) {
			out = append(out, id)
		}
	}
	if len(out) > 0 || len(all) == 0 || labels[row] == "" {
		return out
	}
	o, err := NewJudge(g.Reader).Judge(g.ctx, labels[row]+", "+plaintext.Line(column, maxNameChars)+": "+text, all)
	if err != nil || o.Verdict != VerdictSupported {
		return nil
	}
	return known
}

// holdsCell reports whether a sentence of an excerpt has the words of a cell, and is about its row and no other. An
// excerpt that names no row is about the row that its document names.
func holdsCell(labels []string, row int, text string, x Excerpt, document string) bool {
	about := func(label, where string) bool {
		terms := lexicon.Terms(label)
		return len(terms) > 0 && hasAll(lexicon.TermSet(where), terms)
	}
	another := func(where string) bool {
		return slices.ContainsFunc(labels, func(o string) bool { return o != labels[row] && !about(o, labels[row]) && about(o, where) })
	}
	here := about(labels[row], x.Heading+"\n"+x.Text) || about(labels[row], document) && !another(x.Heading+"\n"+x.Text)
	if !here {
		return false
	}
	for _, at := range lexicon.Sentences(x.Text) {
		s := x.Text[at.Start:at.End]
		if hasWords(text, s, x.Heading) && !another(s) {
			return true
		}
	}
	return false
}

// hasWords reports whether a sentence has the words of a cell as they stand or, with its heading, all of them with
// their numbers and signs; and denies something only if the cell does.
func hasWords(text, in, heading string) bool {
	cell, s := readSentence(text), readSentence(in)
	if len(cell.tokens) == 0 || cell.force()&denies != s.force()&denies {
		return false
	}
	if at, ok := evidence.Locate(strings.ToLower(in), strings.ToLower(text)); ok && evidence.WholeWords(strings.ToLower(in), at) {
		return true
	}
	words := lexicon.TermSet(heading)
	own := false
	for _, w := range cell.words {
		if own = own || s.holds[w]; !s.holds[w] && !words[w] {
			return false
		}
	}
	sign := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(" .,;:()'’-–/&", r) && !strings.ContainsRune(in, r)
	}
	return own && len(numbersOf(in, heading).lacked(text)) == 0 && !strings.ContainsFunc(text, sign)
}

// label is what a row is called: words of a passage that the row cites, or of what was asked.
func (g *gate) label(text string, own []evidence.ID, cells []held, asked map[string]bool) (held, bool) {
	terms := lexicon.Terms(text)
	if len(terms) == 0 {
		return held{}, false
	}
	for _, c := range cells {
		own = append(slices.Clone(own), c.ids...)
	}
	for _, id := range own {
		if x, _, ok := g.excerpt(id); ok && hasAll(x.words(), terms) {
			return held{text, []evidence.ID{id}}, true
		}
	}
	return held{text: text}, hasAll(asked, terms)
}

// columns takes out the columns that say nothing, and those whose names stand neither in what they cite nor in what was
// asked. The first may be without a name.
func (g *gate) columns(names []string, rows [][]held, asked map[string]bool) ([]string, [][]held) {
	var out []string
	known := maps.Clone(asked)
	maps.Copy(known, plainNames)
	cut := make([][]held, len(rows))
	for k, name := range names {
		name = plaintext.Line(unlinked(name), maxNameChars)
		words := maps.Clone(known)
		said := false
		for _, row := range rows {
			said = said || row[k].text != ""
			for _, id := range row[k].ids {
				x, _, _ := g.excerpt(id)
				maps.Copy(words, x.words())
			}
		}
		terms := lexicon.Terms(name)
		isName := len(terms) > 0 && hasAll(words, terms)
		switch {
		case k == 0 && !isName:
			name = ""
		case !said || !isName:
			continue
		}
		out = append(out, name)
		for r := range rows {
			cut[r] = append(cut[r], rows[r][k])
		}
	}
	said := func(row []held) bool { return kept([][]held{row}) == 0 }
	return out, slices.DeleteFunc(cut, said)
}

// citeTable cites what the cells of a table rest on.
func (g *gate) citeTable(columns []string, rows [][]held) (*marchwarden.Block, error) {
	out := &marchwarden.Block{Type: marchwarden.TableBlock, Columns: columns}
	for _, row := range rows {
		cells := make([]marchwarden.Cell, len(row))
		for k, c := range row {
			cells[k].Text = c.text
			for _, id := range c.ids {
				src, p, _ := g.set.Passage(id)
				n, err := g.cite(src, p.Span, marchwarden.Supported)
				if err != nil {
					return nil, err
				}
				if n > 0 && !slices.Contains(cells[k].Citations, n) {
					cells[k].Citations = append(cells[k].Citations, n)
				}
			}
		}
		out.Rows = append(out.Rows, cells)
	}
	return out, nil
}
