package report

// This part is an answer as blocks, of which every form of it is printed. A result
// without blocks, of an earlier version or of another's researcher, has Markdown: what
// is in it is read as headings, lists, tables and paragraphs of sentences, and all other
// markup is undone. Text stays text: no link, image or tag of an answer survives.

import (
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// None is said where there is no answer.
const None = "No answer."

// What is shown of a table or a chart.
const (
	maxColumns = 24
	maxCells   = 6000
)

// Blocks are the parts of an answer, ready to be printed: texts are on one line and without
// markers, citations are those that exist, rows have a cell a column, and a chart's
// numbers have labels. Text that is no claim has no Support.
func Blocks(res *marchwarden.Result) []marchwarden.Block {
	if len(res.Blocks) == 0 {
		return readMarkdown(res)
	}
	var out []marchwarden.Block
	for _, b := range res.Blocks {
		if b, ok := tidy(b, len(res.Citations)); ok {
			out = append(out, b)
		}
	}
	return out
}

// tidy is a block as Blocks has it; false if there is nothing to print.
func tidy(b marchwarden.Block, citations int) (out marchwarden.Block, ok bool) {
	switch out.Type = b.Type; b.Type {
	case marchwarden.Heading:
		out.Level, out.Text = min(max(b.Level, 1), 3), plaintext.Fold(b.Text)
		return out, out.Text != ""
	case marchwarden.Paragraph:
		out.Claims = tidyClaims(b.Claims, citations)
		return out, len(out.Claims) > 0
	case marchwarden.List:
		out.Ordered, out.Items = b.Ordered, tidyClaims(b.Items, citations)
		return out, len(out.Items) > 0
	case marchwarden.TableBlock:
		for _, c := range b.Columns[:min(len(b.Columns), maxColumns)] {
			out.Columns = append(out.Columns, plaintext.Fold(c))
		}
		for _, row := range b.Rows[:min(len(b.Rows), maxCells/max(len(out.Columns), 1))] {
			cells := make([]marchwarden.Cell, len(out.Columns))
			for i := range min(len(row), len(cells)) {
				cells[i] = marchwarden.Cell{Text: plaintext.Fold(row[i].Text), Citations: existing(row[i].Citations, citations)}
			}
			out.Rows = append(out.Rows, cells)
		}
		return out, len(out.Columns) > 0
	case marchwarden.Quote, marchwarden.Chart:
		if out.Citation = b.Citation; b.Citation < 1 || b.Citation > citations {
			out.Citation = 0
		}
		if b.Type == marchwarden.Quote {
			return out, out.Citation > 0
		}
		for _, s := range b.Series[:min(len(b.Series), maxColumns-1)] {
			n := min(len(s.Labels), len(s.Values), maxCells/maxColumns)
			labels := make([]string, n)
			for i := range labels {
				labels[i] = plaintext.Fold(s.Labels[i])
			}
			if n > 0 {
				out.Series = append(out.Series, marchwarden.Series{Name: plaintext.Fold(s.Name), Labels: labels, Values: s.Values[:n]})
			}
		}
		return out, len(out.Series) > 0
	}
	return out, false
}

func tidyClaims(all []marchwarden.Claim, citations int) []marchwarden.Claim {
	var out []marchwarden.Claim
	for _, c := range all {
		if c.Text = plaintext.Fold(c.Text); c.Text != "" {
			c.Citations, c.Support = existing(c.Citations, citations), marchwarden.Support(Verdict(c.Support))
			out = append(out, c)
		}
	}
	return out
}

// existing are the numbers that citations have, each once.
func existing(numbers []int, citations int) []int {
	var out []int
	for _, n := range numbers {
		if n >= 1 && n <= citations && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// markdownReader makes blocks of Markdown, line by line.
type markdownReader struct {
	res    *marchwarden.Result
	claims map[string]marchwarden.Claim // by their texts
	out    []marchwarden.Block
	held   []string // lines of a paragraph, or of an item of the list that comes last
	item   bool
}

var (
	headingLine = regexp.MustCompile(`^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*$`)
	itemLine    = regexp.MustCompile(`^\s*(?:[-*+]|(\d{1,9}[.)]))\s+(.*)$`)
	ruleLine    = regexp.MustCompile(`^\s*(?:=+|(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$`)
	splitLine   = regexp.MustCompile(`^[ \t|:]*-[- \t|:]*$`)
	fenceLine   = regexp.MustCompile("^ {0,3}(?:```|~~~)")
	quoteMarks  = regexp.MustCompile(`^\s*(?:>\s?)+`)
)

func readMarkdown(res *marchwarden.Result) []marchwarden.Block {
	r := &markdownReader{res: res, claims: map[string]marchwarden.Claim{}}
	for _, c := range res.Claims {
		r.claims[plaintext.Fold(c.Text)] = c
	}
	lines := strings.Split(res.Answer, "\n")
	code := false
	for i := 0; i < len(lines); i++ {
		line := quoteMarks.ReplaceAllString(strings.TrimRight(lines[i], " \t\r"), "")
		if fenceLine.MatchString(line) {
			r.end()
			code = !code
			continue
		}
		heading, item := headingLine.FindStringSubmatch(line), itemLine.FindStringSubmatch(line)
		switch {
		case code:
			r.held = append(r.held, line)
		case strings.TrimSpace(line) == "":
			r.end()
		case heading != nil:
			r.heading(len(heading[1]), heading[2])
		case ruleLine.MatchString(line):
			if len(r.held) == 1 && !r.item && strings.Trim(line, "=- ") == "" { // under a heading
				title := r.held[0]
				r.held = nil
				r.heading(2, title)
			}
			r.end()
		case item != nil:
			r.begin(item[1] != "")
			r.held = []string{item[2]}
		case strings.Contains(line, "|") && i+1 < len(lines) && splitLine.MatchString(lines[i+1]) && strings.Contains(lines[i+1], "|"):
			i = r.table(lines, i)
		default:
			r.held = append(r.held, line)
		}
	}
	r.end()
	return r.out
}

func (r *markdownReader) heading(level int, markdown string) {
	r.end()
	var said []string
	for _, c := range r.sentences(markdown) {
		said = append(said, c.Text)
	}
	if text := strings.Join(said, " "); text != "" {
		r.out = append(r.out, marchwarden.Block{Type: marchwarden.Heading, Level: min(level, 3), Text: text})
	}
}

// begin starts an item of a list, which is the last block if it is of the same kind.
func (r *markdownReader) begin(ordered bool) {
	r.end()
	if n := len(r.out); n == 0 || r.out[n-1].Type != marchwarden.List || r.out[n-1].Ordered != ordered {
		r.out = append(r.out, marchwarden.Block{Type: marchwarden.List, Ordered: ordered})
	}
	r.item = true
}

// end makes a paragraph or an item of the lines that are held.
func (r *markdownReader) end() {
	claims := r.sentences(strings.Join(r.held, "\n"))
	switch list := len(r.out) - 1; {
	case len(claims) == 0:
	case r.item:
		r.out[list].Items = append(r.out[list].Items, joinedClaims(claims))
	default:
		r.out = append(r.out, marchwarden.Block{Type: marchwarden.Paragraph, Claims: claims})
	}
	r.held, r.item = nil, false
}

// joinedClaims is several sentences as one, with the verdict of the first that does not stand.
func joinedClaims(all []marchwarden.Claim) marchwarden.Claim {
	out := all[0]
	for _, c := range all[1:] {
		out.Text = strings.TrimSpace(out.Text + " " + c.Text)
		out.Citations = append(out.Citations, c.Citations...)
		if out.Support == "" || out.Support.Stands() && c.Support != "" {
			out.Support = c.Support
		}
	}
	return out
}

var cellEnd = regexp.MustCompile(`(?:^|[^\\])\|`)

// table reads a table whose head is a line, and is the number of its last line.
func (r *markdownReader) table(lines []string, at int) int {
	r.end()
	cells := func(line string) []marchwarden.Cell {
		line = strings.Trim(cellEnd.ReplaceAllStringFunc(line, func(m string) string { return strings.TrimSuffix(m, "|") + "\x00" }), " \t\r\x00")
		var out []marchwarden.Cell
		for part := range strings.SplitSeq(line, "\x00") {
			cell := marchwarden.Cell{}
			if claims := r.sentences(part); len(claims) > 0 {
				c := joinedClaims(claims)
				cell = marchwarden.Cell{Text: c.Text, Citations: c.Citations}
			}
			out = append(out, cell)
		}
		return out
	}
	b := marchwarden.Block{Type: marchwarden.TableBlock}
	for _, c := range cells(lines[at]) {
		b.Columns = append(b.Columns, c.Text)
	}
	for at += 2; at < len(lines) && strings.Contains(lines[at], "|"); at++ {
		b.Rows = append(b.Rows, cells(lines[at]))
	}
	if b, ok := tidy(b, len(r.res.Citations)); ok {
		r.out = append(r.out, b)
	}
	return at - 1
}

// token is what a text is read by: an escaped character, a marker, a link or an image, code, an
// address, and what makes emphasis.
var token = regexp.MustCompile("(\\\\[!-/:-@\\[-`{-~])" + `|\[(\d{1,9})\]|(!?)\[([^\[\]]*)\]\(\s*<?([^\s()<>]*)>?[^()]*\)` + "|`+([^`]*)`+" + `|<(https?://[^\s<>]+)>|(\*+|\b_+|_+\b|~~)`)

// sentences are those of a paragraph. One ends where text comes after a marker; what looks like
// a marker and has no citation is text. A claim reads as its result has it, also where
// Markdown would make something else of it.
func (r *markdownReader) sentences(markdown string) []marchwarden.Claim {
	var out []marchwarden.Claim
	var written, shown strings.Builder
	var cited []int
	end := func() {
		c := marchwarden.Claim{Text: plaintext.Fold(shown.String()), Citations: existing(cited, len(r.res.Citations))}
		known, claimed := r.claims[plaintext.Fold(written.String())]
		if !claimed {
			known, claimed = r.claims[c.Text]
		}
		if claimed {
			c.Text, c.Support, c.Judge = plaintext.Fold(known.Text), marchwarden.Support(Verdict(known.Support)), known.Judge
			if len(c.Citations) == 0 {
				c.Citations = existing(known.Citations, len(r.res.Citations))
			}
		}
		if c.Text != "" || len(c.Citations) > 0 {
			out = append(out, c)
		}
		written.Reset()
		shown.Reset()
		cited = nil
	}
	say := func(as, text string) {
		if len(cited) > 0 && strings.TrimSpace(as) != "" {
			end()
		}
		written.WriteString(as)
		shown.WriteString(text)
	}
	at, emphasis := 0, strings.Count(markdown, "*")+strings.Count(markdown, "_")+strings.Count(markdown, "~~")
	for _, m := range token.FindAllStringSubmatchIndex(markdown, -1) {
		group := func(i int) string { return markdown[max(m[2*i], 0):max(m[2*i+1], 0)] }
		say(markdown[at:m[0]], html.UnescapeString(markdown[at:m[0]]))
		at = m[1]
		whole := markdown[m[0]:m[1]]
		n, _ := strconv.Atoi(group(2)) // nine digits at most
		switch {
		case group(1) != "":
			say(whole[1:], whole[1:])
		case n >= 1 && n <= len(r.res.Citations):
			cited = append(cited, n)
		case group(3) != "":
			say(whole, "[image: "+group(4)+"]")
		case group(5) != "" && group(5) != group(4):
			say(whole, group(4)+" ("+group(5)+")")
		case m[8] >= 0:
			say(whole, group(4))
		case group(6) != "":
			say(whole, group(6))
		case group(7) != "":
			say(whole, group(7))
		case group(8) != "" && emphasis > 1 && strings.TrimSpace(markdown[max(m[0]-1, 0):min(m[1]+1, len(markdown))]) != group(8):
			say(whole, "")
		default:
			say(whole, whole)
		}
	}
	say(markdown[at:], html.UnescapeString(markdown[at:]))
	end()
	return out
}

// Verdict is a verdict of the contract; what is none was not checked.
func Verdict(s marchwarden.Support) string {
	switch s {
	case marchwarden.Supported, marchwarden.Quoted, marchwarden.Partial, marchwarden.Unsupported:
		return string(s)
	}
	return string(marchwarden.Unchecked)
}
