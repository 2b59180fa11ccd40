package lexicon

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// opening is how a text goes on after a possible end of a sentence.
type opening struct {
	at      int    // where its first word begins
	r       rune   // the first rune of it
	word    string // its letters; "" if it begins otherwise
	bracket bool   // a bracket or quote opens before it
	lower   bool   // goes on in lower case
	upper   bool
	number  bool // a digit or an amount of money
	initial bool // a single capital and a full stop
	comma   bool // a comma follows the word
}

// opening reads how the text goes on at i.
func (c *cutter) opening(i int) opening {
	rest := strings.TrimLeft(c.s[i:], "\"'“‘([{«‹¿¡*_「『（")
	o := opening{at: len(c.s) - len(rest), r: firstRune(rest)}
	o.bracket = o.at > i
	o.word = rest[:min(len(rest), longestWord)]
	if n := strings.IndexFunc(o.word, func(r rune) bool { return !unicode.IsLetter(r) }); n >= 0 {
		o.word = o.word[:n]
	}
	end := o.at + len(o.word)
	o.upper = unicode.IsUpper(o.r) || unicode.IsTitle(o.r)
	o.lower = unicode.IsLower(o.r) && !mixedCase(o.word)
	o.number = unicode.IsDigit(o.r) || strings.ContainsRune("$£€¥#", o.r)
	o.initial = len(o.word) == 1 && o.upper && byteAt(c.s, end) == '.'
	o.comma = byteAt(c.s, end) == ','
	return o
}

// mixedCase reports whether a word begins in lower case but is a name: "iPhone",
// "mRNA", "pH".
func mixedCase(word string) bool {
	_, n := utf8.DecodeRuneInString(word)
	return strings.IndexFunc(word[n:], unicode.IsUpper) >= 0
}

// starter reports whether the text continues with a word that usually begins a sentence. Surnames
// like "He, X." are told by the comma.
func (o opening) starter() bool {
	return starters[o.word] && !o.initial && !(o.comma && len(o.word) <= 2)
}

// speaker is who said what was quoted: "Smith asked", "He wrote".
var speaker = regexp.MustCompile(`^(?:\p{Lu}\S*\s+){1,3}(?:` + strings.ReplaceAll(WordList("speech"), " ", "|") + `)\b`)

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// skipSpace returns the first place from i on that is no white space.
func skipSpace(s string, i int) int {
	return len(s) - len(strings.TrimLeftFunc(s[i:], unicode.IsSpace))
}

// trimSpaceLeft returns i less the white space before it, but not below low.
func trimSpaceLeft(s string, low, i int) int {
	return low + len(strings.TrimRightFunc(s[low:i], unicode.IsSpace))
}

func asciiSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// byteAt is s[i], or 0 beyond the end.
func byteAt(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}
