package lexicon

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
