package lexicon

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind says what a paragraph is.
type Kind int

// The kinds of paragraph.
const (
	Prose   Kind = iota // running text
	Heading             // a short line without terminal punctuation above other text, or with a line drawn under it, which belongs to it
	Item                // an item of a list, or a row of a table
	Line                // a line among others that do not run on: a menu, verse, an address
)

// Paragraph is a stretch of text that belongs together: trimmed, and made of
// whole sentences. Block numbers the stretches without a blank line, from 0;
// a list or wrapped text under its heading may be one block.
type Paragraph struct {
	Span
	Kind      Kind
	Block     int
	Sentences []Span
}

// Paragraphs returns the paragraphs of s in order. They do not overlap, and every
// byte that is not white space lies in exactly one. Lines of a wrapped paragraph
// are put together; a line that starts a list item, a table row, a heading, or
// that does not fill the width of its neighbours, starts a new one.
func Paragraphs(s string) []Paragraph {
	lines := splitLines(s)
	out := make([]Paragraph, 0, len(lines)/4)
	for i, block := 0, 0; i < len(lines); block++ {
		end := i + 1
		for end < len(lines) && !lines[end].apart {
			end++
		}
		out = appendBlock(out, s, lines[i:end], block)
		i = end
	}
	markHeadings(s, out)
	for i := range out {
		p := &out[i]
		if p.Kind == Heading {
			p.Sentences = []Span{p.Span}
		} else {
			p.Sentences = sentences(s, p.Span, marker(s[p.Start:p.End]))
		}
	}
	return out
}

// line is a line of text that is not blank.
type line struct {
	Span       // trimmed
	chars  int // its length in characters
	indent int
	apart  bool // begins the text or stands after a blank line
}

// splitLines returns the lines of s that are not blank. The signs that mark a line
// of a mail as quoted are no part of it.
func splitLines(s string) []line {
	lines := make([]line, 0, strings.Count(s, "\n")+1)
	apart := true
	for i := 0; i < len(s); {
		end, next := len(s), len(s)
		if n := strings.IndexFunc(s[i:], endsLine); n >= 0 {
			_, size := utf8.DecodeRuneInString(s[i+n:])
			end, next = i+n, i+n+size
		}
		start := skipSpace(s[:end], skipQuoted(s[:end], i))
		if start == end {
			apart = true
		} else {
			l := line{Span: Span{start, trimSpaceLeft(s, start, end)}, indent: start - i, apart: apart}
			l.chars = utf8.RuneCountInString(s[l.Start:l.End])
			lines = append(lines, l)
			apart = strings.ContainsAny(s[end:next], "\f\u2029") // a break of paragraphs or pages
		}
		i = next
	}
	return lines
}

func endsLine(r rune) bool {
	return r >= '\n' && r <= '\f' || r == '\u2028' || r == '\u2029'
}

// quoteSigns are the signs before a line of a quoted mail.
var quoteSigns = regexp.MustCompile(`^ {0,3}>[> ]{0,15}`)

// skipQuoted returns where the line at i goes on after the signs of a quoted mail.
// A lone sign before a number compares: "> 5 %".
func skipQuoted(s string, i int) int {
	if !strings.Contains(s[i:min(len(s), i+4)], ">") {
		return i
	}
	signs := quoteSigns.FindString(s[i:])
	rest := s[i+len(signs):]
	if strings.Count(signs, ">") == 1 && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
		return i
	}
	return i + len(signs)
}

func appendBlock(out []Paragraph, s string, lines []line, block int) []Paragraph {
	b := newBlock(s, lines)
	first := len(out)
	for i := 0; i < len(lines); {
		end := i
		for end+1 < len(lines) && b.runsOn(end) {
			end++
		}
		p := Paragraph{Span: Span{lines[i].Start, lines[end].End}, Block: block}
		if i == end && b.underlined(i) {
			end++
			p.Kind, p.End = Heading, lines[end].End
		} else if b.starts[i] {
			p.Kind = Item
		} else if i == end && !ended(s[p.Start:p.End]) && len(lines) > 1 {
			p.Kind = Line
		}
		out = append(out, p)
		i = end + 1
	}
	if len(out)-first == 1 && out[first].Kind == Line {
		out[first].Kind = Prose
	}
	return out
}

func markHeadings(s string, ps []Paragraph) {
	chain := 0 // how many paragraphs before this one look like headings as well
	for i := range ps {
		p := &ps[i]
		text := s[p.Start:p.End]
		if p.Kind == Heading || atx(text) {
			p.Kind = Heading
			continue
		}
		if i+1 == len(ps) || !headingLike(p.Kind, text) {
			chain = 0
			continue
		}
		next := &ps[i+1]
		following := s[next.Start:next.End]
		switch {
		case p.Kind == Item && (numbered(s, next) || i > 0 && numbered(s, &ps[i-1])):
			chain = 0 // a list, perhaps with blank lines between its items
		case next.Block == p.Block:
			if next.Kind == Item || next.Kind == Prose && (ended(following) || len(following) > 2*len(text)) {
				p.Kind = Heading
			}
			chain = 0
		case i > 0 && ps[i-1].Block == p.Block:
			chain = 0 // the last line of an unpunctuated block
		case headingLike(next.Kind, following) && chain+headingRun(s, ps[i:]) > 3:
			chain++
			p.Kind = Line
		default:
			chain++
			p.Kind = Heading
		}
	}
}

func numbered(s string, p *Paragraph) bool { return p.Kind == Item && isDigit(s[p.Start]) }

// headingRun returns how many paragraphs look like headings from the first on,
// up to four.
func headingRun(s string, ps []Paragraph) int {
	n := 0
	for n < len(ps) && n < 4 && headingLike(ps[n].Kind, s[ps[n].Start:ps[n].End]) {
		n++
	}
	return n
}

// The size of a heading.
const (
	headingChars = 100
	headingWords = 14
	colonWords   = 6 // "Crops by season:" is one, a clause that leads to a list is not
)

// headingLike reports whether a paragraph could be a heading by its looks: a
// short line that does not end like a sentence.
func headingLike(kind Kind, text string) bool {
	if utf8.RuneCountInString(text) > headingChars || strings.ContainsAny(text, "\n\r|") {
		return false
	}
	if kind == Item && !isDigit(text[0]) {
		return false
	}
	words := len(strings.Fields(text))
	if words > headingWords || stamped.MatchString(text) || strings.Contains(text, ". ") && words > colonWords {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(text)
	if ended(text) || strings.ContainsRune(",;，；、", last) || strings.ContainsRune(":：", last) && words > colonWords {
		return false
	}
	letter := strings.IndexFunc(text, unicode.IsLetter)
	return letter >= 0 && !unicode.IsLower(firstRune(text[letter:]))
}

// stamped is a line that begins with a date or a time, such as a message of a chat or
// an entry of a log, and goes on in words: "[02/03/2025, 18:20] Joss: …".
var stamped = regexp.MustCompile(`^[\[(]*(?:\d{2,}[:/.-]\d|\d[:/.-]\d{2})\S*(?:\s+\S+){3}`)

// atx reports whether a line is a heading by Markdown's sign.
func atx(s string) bool {
	t := strings.TrimLeft(s, "#")
	return len(t) < len(s) && len(s)-len(t) <= 6 && t != "" && t[0] == ' ' && !strings.Contains(s, "\n")
}

// ended reports whether a text ends like a sentence: with a terminator, and
// after it nothing but closing quotes, brackets and notes.
func ended(s string) bool {
	last, _ := utf8.DecodeLastRuneInString(s)
	return terminator(last) || !wordRune(last) && endMarks.MatchString(s[max(0, len(s)-longestEnd):])
}

var endMarks = regexp.MustCompile(`[` + terminators + `](?:[` + closers + `]|` + note + `)*$`)

// longestEnd is how many bytes of a text are looked at for its end.
const longestEnd = 80

// block is lines without a blank line between them.
type block struct {
	s       string
	lines   []line
	starts  []bool // the line starts a list item or is a table row
	width   int    // characters of the longest line
	wrapped bool   // its lines are broken at a width, not at a meaning
}

// The widths at which people wrap text.
const (
	narrowest = 40
	widest    = 180
)

func newBlock(s string, lines []line) *block {
	b := &block{s: s, lines: lines, starts: make([]bool, len(lines))}
	for _, l := range lines {
		b.width = max(b.width, l.chars)
	}
	for i := range lines {
		b.starts[i] = b.startsItem(i)
	}
	if len(lines) < 2 || b.width < narrowest || b.width > widest {
		return b
	}
	breaks, full, goesOn := 0, 0, 0
	for i := range lines[1:] {
		if b.starts[i+1] || atx(b.text(i)) || atx(b.text(i+1)) {
			continue
		}
		breaks++
		if b.full(i) {
			full++
		}
		if r := firstRune(b.text(i + 1)); !unicode.IsUpper(r) || ended(b.text(i)) {
			goesOn++
		}
	}
	b.wrapped = breaks > 0 && full*10 >= breaks*6 && (goesOn*10 >= breaks*3 || breaks == 1 && b.width >= 60)
	return b
}

func (b *block) text(i int) string { return b.s[b.lines[i].Start:b.lines[i].End] }

// full reports whether the first word of the next line would not have fitted at
// the end of line i.
func (b *block) full(i int) bool {
	word := b.text(i + 1)
	if at := strings.IndexFunc(word, unicode.IsSpace); at >= 0 {
		word = word[:at]
	}
	slack := b.width / 12 // justified print has lines of uneven length
	return b.lines[i].chars+1+utf8.RuneCountInString(word) > b.width-slack
}

// runsOn reports whether the paragraph of line i goes on in the next line.
func (b *block) runsOn(i int) bool {
	here, next := b.text(i), b.text(i+1)
	if m := marker(here); m > 0 && m == len(here) && !b.starts[i+1] {
		return true
	}
	if b.starts[i+1] || row(here) || atx(here) || atx(next) || ruler(here) || ruler(next) {
		return false
	}
	if b.wrapped && b.full(i) {
		return true
	}
	if ended(here) {
		return false
	}
	if b.lines[i].chars >= 20 && dangling[here[strings.LastIndexByte(here, ' ')+1:]] {
		return true // no sentence and no heading ends with such a word
	}
	if !unicode.IsLower(firstRune(next)) {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(here)
	if b.starts[i] && b.lines[i+1].indent > b.lines[i].indent {
		return true
	}
	return last == ',' || b.lines[i].chars >= 25 && b.lines[i].indent == b.lines[i+1].indent &&
		(wordRune(last) || strings.ContainsRune(closers+"-", last))
}

// startsItem reports whether line i begins an item of a list or is a row of a
// table. A dash or a number may also stand at the beginning of a line because
// the text was wrapped there.
func (b *block) startsItem(i int) bool {
	here := b.text(i)
	if row(here) {
		return true
	}
	if marker(here) == 0 {
		return false
	}
	if i == 0 || strings.ContainsRune("•◦▪‣●○■□·", firstRune(here)) {
		return true
	}
	before := b.text(i - 1)
	last, _ := utf8.DecodeLastRuneInString(before)
	if ended(before) || strings.ContainsRune(":;,", last) || b.lines[i-1].chars < narrowest {
		return true
	}
	if slices.Contains(b.starts[max(0, i-4):i], true) {
		return true // an earlier item, its further lines in between
	}
	return i+1 < len(b.lines) && marker(b.text(i+1)) > 0
}

func row(s string) bool {
	return s[0] == '|' || strings.Count(s, " | ") > 0 || strings.Count(s, "\t") > 1
}

// ruler reports whether a line is drawn, not written.
func ruler(s string) bool {
	return len(s) > 2 && strings.Trim(s, "=-_*~#+ ") == ""
}

// underlined reports whether line i is a heading by the line of = or - that is drawn under
// it, about as long as itself.
func (b *block) underlined(i int) bool {
	if i+1 >= len(b.lines) || b.lines[i].chars > headingChars || ruler(b.text(i)) || row(b.text(i)) {
		return false
	}
	drawn := b.text(i + 1)
	return len(drawn) > 2 && 2*len(drawn) > b.lines[i].chars && strings.Trim(drawn, drawn[:1]) == "" && strings.Contains("=-", drawn[:1])
}

// markers are what an item of a list begins with. A capital with a full stop is an
// initial, not a marker.
var markers = regexp.MustCompile(`^(?:[-*+–—•◦▪‣●○■□·]|(?:\d{1,3}|[a-z]|[ivx]{2,4})[.)]|\((?:\d{1,3}|[a-zA-Z]|[ivx]{2,4})\)|[A-Z]\))(?:[\t-\r ]|$)`)

// marker returns the length of the list marker a line begins with, the white
// space after it included, or 0: "- ", "• ", "3. ", "(b) ", "iv) ".
func marker(s string) int {
	at := markers.FindStringIndex(s[:min(len(s), 8)]) // the longest is shorter
	if at == nil {
		return 0
	}
	return skipSpace(s, at[1])
}
