package verify

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// Basis is what a draft is held to beside its evidence.
type Basis struct {
	Rules  string        // of the run
	Asked  []string      // the question and what was asked on the way: words that headings and tables may have
	Reader reader.Reader // helps to judge cells; may be nil
	Charts bool          // numbers that a database grouped are drawn
}

const (
	maxHeading      = 80 // characters
	maxHeadingWords = 12
	deepestLevel    = 3
)

// lay grounds the claims of a draft in their blocks, and makes the answer of them. Claims that are in no block are
// paragraphs, and come last.
func (g *gate) lay(d reason.Draft) error {
	placed := make([]bool, len(d.Claims))
	for _, b := range d.Blocks {
		if err := g.block(d, b, placed); err != nil {
			return err
		}
	}
	for i, c := range d.Claims {
		before := len(g.out.Blocks)
		if err := g.block(d, reason.Block{Type: marchwarden.Paragraph, Claims: []int{i}}, placed); err != nil {
			return err
		}
		if !c.Paragraph && before > 0 && len(g.out.Blocks) > before && g.out.Blocks[before-1].Type == marchwarden.Paragraph {
			last := &g.out.Blocks[before-1]
			last.Claims, g.out.Blocks = append(last.Claims, g.out.Blocks[before].Claims...), g.out.Blocks[:before]
		}
	}
	if err := g.charts(); err != nil {
		return err
	}
	g.headings()
	g.out.Answer = Markdown(g.out.Blocks, g.out.Citations)
	if Earlier(g.Rules) {
		g.out.Blocks = nil
	}
	return nil
}

// block grounds one block. A claim is said once.
func (g *gate) block(d reason.Draft, b reason.Block, placed []bool) error {
	add := func(b marchwarden.Block) { g.out.Blocks = append(g.out.Blocks, b) }
	switch b.Type {
	case marchwarden.Heading:
		add(marchwarden.Block{Type: b.Type, Level: min(max(b.Level, 2), deepestLevel), Text: g.heading(b)})
	case marchwarden.Paragraph, marchwarden.List:
		first := len(g.out.Claims)
		for _, i := range b.Claims {
			if i < 0 || i >= len(placed) || placed[i] {
				continue
			}
			placed[i] = true
			if err := g.claim(d.Claims[i]); err != nil {
				return err
			}
		}
		claims := slices.Clone(g.out.Claims[first:])
		switch {
		case len(claims) == 0:
		case b.Type == marchwarden.List:
			add(marchwarden.Block{Type: b.Type, Ordered: b.Ordered, Items: claims})
		default:
			add(marchwarden.Block{Type: b.Type, Claims: claims})
		}
	case marchwarden.TableBlock:
		t, err := g.table(b)
		if err != nil || t == nil {
			return err
		}
		add(*t)
	case marchwarden.Quote:
		src, passage, ok := g.set.Passage(b.Passage)
		if !ok {
			g.out.UnknownIDs++
			return nil
		}
		n, err := g.cite(src, passage.Span, marchwarden.Quoted)
		if err != nil || n == 0 {
			return err
		}
		add(marchwarden.Block{Type: b.Type, Citation: n})
	}
	return nil
}

// headings takes out those with nothing below them, and those whose words stand nowhere or state something. Where a
// question can stand in, a heading has words of what was asked and names alone.
func (g *gate) headings() {
	asked := lexicon.TermSet(strings.Join(g.Asked, "\n"))
	var out []marchwarden.Block
	last := ""
	for i, b := range g.out.Blocks {
		if b.Type == marchwarden.Heading {
			below := g.out.Blocks[i+1:]
			if end := slices.IndexFunc(below, func(o marchwarden.Block) bool { return o.Type == marchwarden.Heading && o.Level <= b.Level }); end >= 0 {
				below = below[:end]
			}
			known, named := maps.Clone(asked), maps.Clone(asked)
			text, asks, _ := strings.Cut(b.Text, "\n")
			said, title := false, false
			for _, n := range citedBy(below) {
				c := g.out.Citations[n-1]
				said, title = true, title || lexicon.Plain(c.Title) == lexicon.Plain(text)
				maps.Copy(known, lexicon.TermSet(c.Title+"\n"+c.RawExcerpt))
				maps.Copy(named, lexicon.TermSet(strings.Join(lexicon.Names(c.RawExcerpt), "\n")))
			}
			b.Text = text
			switch {
			case title && isHeading(text, known): // a source is called as it is
			case asks == "" && (states(text) || !isHeading(text, known)):
				continue
			case asks != "" && (states(text) || !isHeading(text, named)):
				b.Text = asks
			}
			if !said || !isHeading(b.Text, known) || b.Text == last {
				continue
			}
			last = b.Text
		}
		out = append(out, b)
	}
	g.out.Blocks = out
}

// heading is a heading as it was drafted and, on a second line, the question that stands in where it may not.
func (g *gate) heading(b reason.Block) string {
	text := strings.TrimRight(unlinked(b.Text), " .:;!")
	if at := slices.IndexFunc(g.Asked, func(q string) bool { return lexicon.Plain(q) == lexicon.Plain(b.Asks) }); b.Asks != "" && at >= 0 {
		text += "\n" + plaintext.Line(plainSentence(g.Asked[at]), maxHeading)
	}
	return text
}

// isHeading reports whether a text names something in known words, and says nothing about it: what follows a name of
// something and a verb is a claim. A question states nothing.
func isHeading(text string, known map[string]bool) bool {
	toks := lexicon.Tokens(text)
	if len(toks) == 0 || len(toks) > maxHeadingWords && !strings.HasSuffix(text, "?") || utf8.RuneCountInString(text) > maxHeading {
		return false
	}
	for _, t := range toks {
		if !t.Stop && !known[t.Stem] {
			return false
		}
		if !strings.HasSuffix(text, "?") && (auxiliaries[strings.ToLower(t.Text)] || t.Contracted() || forces[t.Stem]&(denies|causes) != 0) {
			return false
		}
	}
	return true
}

// states reports a text with a word that has the form of a verb and its place: after a noun it is "kills" before another
// one or an article, "killed" before anything, and "vaccines" before "kill". A compound such as "sales figures" looks the
// same, and is taken for it.
func states(text string) bool {
	toks := lexicon.Tokens(text)
	for i, t := range toks {
		word := strings.ToLower(t.Text)
		after := i > 0 && !toks[i-1].Stop && text[toks[i-1].End:t.Start] == " "
		before := i+1 < len(toks) && text[t.End:toks[i+1].Start] == " "
		switch {
		case t.Stop || strings.HasSuffix(text, "?"):
		case strings.HasSuffix(word, "ed") && !strings.HasSuffix(word, "eed") && after:
			return true
		case before && plural.MatchString(word) && (!toks[i+1].Stop && toks[i+1].Text[0] > '9' || after && determiners[strings.ToLower(toks[i+1].Text)]):
			return true
		}
	}
	return false
}

// plural is a word in the form that nouns have for many, and verbs for one.
var plural = regexp.MustCompile(`[^su'’i]s$`)

// auxiliaries are the words that make a sentence of a few others; determiners are those that begin an object.
var auxiliaries, determiners = lexicon.WordSet("auxiliaries"), lexicon.WordSet("determiners")

// citedBy are the numbers of the citations that blocks rest on, as they come.
func citedBy(blocks []marchwarden.Block) []int {
	var out []int
	for _, b := range blocks {
		for _, c := range slices.Concat(b.Claims, b.Items) {
			out = append(out, c.Citations...)
		}
		for _, c := range slices.Concat(b.Rows...) {
			out = append(out, c.Citations...)
		}
		if b.Citation > 0 {
			out = append(out, b.Citation)
		}
	}
	return out
}

// Markdown is the answer that blocks make. Nothing in it can be loaded, followed or formatted but what the blocks say.
func Markdown(blocks []marchwarden.Block, citations []marchwarden.Citation) string {
	parts := make([]string, 0, len(blocks))
	for _, b := range blocks {
		var lines []string
		switch b.Type {
		case marchwarden.Heading:
			lines = []string{strings.Repeat("#", b.Level) + " " + escapeMarkdown(b.Text)}
		case marchwarden.Paragraph:
			var said []string
			for _, c := range b.Claims {
				said = append(said, marked(c.Text, c.Citations))
			}
			lines = []string{strings.Join(said, " ")}
		case marchwarden.List:
			for i, c := range b.Items {
				mark := "- "
				if b.Ordered {
					mark = fmt.Sprintf("%d. ", i+1)
				}
				lines = append(lines, mark+marked(c.Text, c.Citations))
			}
		case marchwarden.TableBlock:
			lines = []string{tableRow(b.Columns, escapeMarkdown), strings.Repeat("|---", len(b.Columns)) + "|"}
			for _, row := range b.Rows {
				lines = append(lines, tableRow(row, func(c marchwarden.Cell) string { return marked(c.Text, c.Citations) }))
			}
		case marchwarden.Chart:
			lines = []string{Markdown([]marchwarden.Block{Figures(b)}, nil)}
		case marchwarden.Quote:
			if b.Citation > 0 && b.Citation <= len(citations) {
				lines = []string{"> " + marked(plainSentence(citations[b.Citation-1].RawExcerpt), []int{b.Citation})}
			}
		}
		parts = append(parts, strings.Join(lines, "\n"))
	}
	return strings.Join(parts, "\n\n")
}

// marked is a text with the markers of what it rests on.
func marked(text string, citations []int) string {
	text = escapeMarkdown(text)
	for i, n := range citations {
		if i == 0 {
			text += " "
		}
		text += fmt.Sprintf("[%d]", n)
	}
	return text
}

func tableRow[T any](cells []T, say func(T) string) string {
	line := "|"
	for _, c := range cells {
		line += " " + strings.ReplaceAll(say(c), "|", `\|`) + " |"
	}
	return line
}

// blocks says what is wrong with the blocks of a result: they have its claims, their cells stand in what they
// cite, and they make its answer.
func (c *checker) blocks() []string {
	var bad []string
	var claims []marchwarden.Claim
	for i, b := range c.res.Blocks {
		claims = slices.Concat(claims, b.Claims, b.Items)
		if why := c.block(b); why != "" {
			bad = append(bad, fmt.Sprintf("block %d, a %s, does not stand: %s", i+1, clip(string(b.Type)), why))
		}
	}
	if len(claims)+len(c.res.Claims) > 0 && !reflect.DeepEqual(claims, c.res.Claims) {
		bad = append(bad, "the claims of the blocks are not the claims of the result")
	}
	if c.res.Answer != Markdown(c.res.Blocks, c.res.Citations) {
		bad = append(bad, "the answer is not what its blocks say")
	}
	return bad
}

func (c *checker) block(b marchwarden.Block) string {
	if problem := c.cites(citedBy([]marchwarden.Block{b})); problem != "" {
		return problem
	}
	switch b.Type {
	case marchwarden.Heading:
		if n := utf8.RuneCountInString(b.Text); n == 0 || n > maxHeading+1 || strings.ContainsAny(b.Text, "\r\n") || b.Level < 1 || b.Level > deepestLevel {
			return fmt.Sprintf("a heading is one line of 1 to %d characters", maxHeading+1)
		}
	case marchwarden.Paragraph, marchwarden.List, marchwarden.Quote:
	case marchwarden.TableBlock:
		return c.table(b)
	case marchwarden.Chart:
		return c.chart(b)
	default:
		return "there is no such block"
	}
	return ""
}

// table finds the words of each cell in the documents that it cites. What a row is called needs no citation.
func (c *checker) table(b marchwarden.Block) string {
	words := map[string]map[string]bool{} // of each document, once
	for _, row := range b.Rows {
		if len(row) != len(b.Columns) {
			return "its rows are not as long as its head"
		}
		for k, cell := range row {
			if cell.Text != "" && len(cell.Citations) == 0 && k > 0 {
				return fmt.Sprintf("the cell %q cites nothing", clip(cell.Text))
			}
			var known []map[string]bool
			for _, n := range cell.Citations {
				cited := c.res.Citations[n-1]
				if words[cited.ContentHash] == nil {
					text, err := c.text(cited.ContentHash)
					if err != nil {
						return err.Error()
					}
					words[cited.ContentHash] = lexicon.TermSet(text)
				}
				known = append(known, words[cited.ContentHash], lexicon.TermSet(cited.Title))
			}
			lacks := func(w string) bool {
				return !slices.ContainsFunc(known, func(words map[string]bool) bool { return words[w] })
			}
			if len(cell.Citations) > 0 && slices.ContainsFunc(lexicon.Terms(cell.Text), lacks) {
				return fmt.Sprintf("the words of the cell %q are not in what it cites", clip(cell.Text))
			}
		}
	}
	return ""
}
