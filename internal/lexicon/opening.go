package lexicon

import (
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

// starter reports whether the text goes on with a word that usually begins a
// sentence. Surnames like "He, X." are told by the comma.
func (o opening) starter() bool {
	return starters[o.word] && !o.initial && !(o.comma && len(o.word) <= 2)
}

// speaks reports whether the text goes on with who said what was quoted: "Smith
// asked", "He wrote".
func (o opening) speaks(s string) bool {
	rest := s[o.at:min(len(s), o.at+64)]
	for i, word := range strings.Fields(rest) {
		if speech[strings.TrimRight(word, ",.:;")] {
			return i > 0
		}
		if i > 2 || !unicode.IsUpper(firstRune(word)) {
			return false
		}
	}
	return false
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// closer returns the length of the closing quote or bracket s begins with, or 0.
func closer(s string) int {
	switch r, n := utf8.DecodeRuneInString(s); {
	case r == '*' || r == '_':
		return len(s) - len(strings.TrimLeft(s, s[:1]))
	case strings.ContainsRune(`"')]}”’»›″」』）】》〉〕`, r):
		return n
	}
	return 0
}

// longestNote is the most bytes a note mark in brackets has.
const longestNote = 24

// noteMark returns the length of the note mark s begins with, or 0: "[12]",
// "[a]", "[citation needed]", ":12–13", superscript figures, daggers.
func noteMark(s string) int {
	switch r, n := utf8.DecodeRuneInString(s); {
	case r == '[':
		end := strings.IndexByte(s[:min(len(s), longestNote)], ']')
		if end < 2 || strings.ContainsAny(s[1:end], "[.\n") {
			return 0
		}
		return end + 1
	case r == ':' && isDigit(byteAt(s, 1)): // pages of a note
		return len(s) - len(strings.TrimLeft(s, "0123456789:-–"))
	case strings.ContainsRune("¹²³⁰⁴⁵⁶⁷⁸⁹†‡", r):
		return n
	}
	return 0
}

// numericNote is noteMark for numbers in brackets only, which are notes even
// after a space.
func numericNote(s string) int {
	if s[0] != '[' {
		return 0
	}
	n := noteMark(s)
	if n > 0 && strings.Trim(s[1:n-1], "0123456789,-– ") == "" {
		return n
	}
	return 0
}

// strayCloser returns the length of the closing quotes or brackets s begins with
// if white space follows them, or 0: a text cut into words has them set apart.
func strayCloser(s string) int {
	n := 0
	for n < len(s) && (s[n] == '"' || s[n] == '\'' || s[n] == ')') {
		n++
	}
	if n < len(s) && !asciiSpace(s[n]) {
		return 0
	}
	return n
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
