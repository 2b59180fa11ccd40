// Package lexicon reads English: tokens, stems, sentences, quantities, names and negation
// of a text, and what a question asks for. It owns all lists of words, which are data in
// the folder words, and the rules that go by them. It knows no documents: every function
// is deterministic and safe for concurrent use, and takes any bytes without panicking,
// invalid UTF-8 included.
//
// Offsets are byte offsets into the text that was passed in, and always lie on
// rune boundaries of it.
package lexicon

import (
	"hash/maphash"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"
)

// Span is a range of bytes: Start is the first one, End is after the last.
type Span struct{ Start, End int }

// EstimateTokens is a conservative estimate of how many model tokens s costs: a
// token for every four bytes begun. It is 0 for the empty string only.
func EstimateTokens(s string) int { return (len(s) + 3) / 4 }

// Stem returns the form under which a word is looked up: NFC, lower case,
// without possessive ending, reduced by the Snowball English stemmer. Dots of an
// abbreviation and commas of a number are dropped ("U.S." is "us", "6,000" is
// "6000"). What holds digits or letters beyond a-z is not reduced any further.
func Stem(word string) string { return stem(normalise(word)) }

func stem(w string) string {
	if strings.ContainsFunc(w, func(r rune) bool { return (r < 'a' || r > 'z') && r != '\'' }) {
		return w
	}
	slot := &stemmed[maphash.String(seed, w)%uint64(len(stemmed))]
	if known := slot.Load(); known != nil && known.word == w {
		return known.stem
	}
	known := &stemPair{word: strings.Clone(w), stem: english.Stem(w, false)}
	slot.Store(known)
	return known.stem
}

// stemmed remembers the stems of words met lately, one word to a slot: stemming
// takes most of the time of reading a text, and texts repeat their words.
var (
	stemmed [8192]atomic.Pointer[stemPair]
	seed    = maphash.MakeSeed()
)

type stemPair struct{ word, stem string }

// normalise brings a word into the spelling that stop words and stems are
// looked up by.
func normalise(word string) string {
	if !strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return word
	}
	w := strings.ToLower(word)
	if !norm.NFC.IsNormalString(w) {
		w = norm.NFC.String(w)
	}
	w = strings.ReplaceAll(w, "’", "'")
	w = strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "'")
	if len(w) > 1 && w[0] == 'v' && isDigit(w[1]) { // v2.37 is 2.37
		w = w[1:]
	}
	if w != "" && isDigit(w[0]) {
		return strings.ReplaceAll(w, ",", "")
	}
	if strings.Contains(w, ".") && acronym.MatchString(w) {
		return strings.ReplaceAll(w, ".", "")
	}
	return w
}

// acronym is single letters with dots between them, and perhaps one after the last.
var acronym = regexp.MustCompile(`^.(?:\..)+\.?$`)

// IsStop reports whether a word is too common to say what a text is about:
// articles, pronouns, prepositions, auxiliaries, question words. "US" in capitals
// is a country, not a pronoun.
func IsStop(word string) bool { return isStop(word, normalise(word)) }

func isStop(word, normal string) bool {
	switch word {
	case "US", "IT", "WHO", "U.S.", "U.S", "I.T.", "W.H.O.":
		return false
	}
	return stopWords[normal]
}

// Terms returns the stems of the words of s that are no stop words, in order and
// with repetitions.
func Terms(s string) []string {
	var terms []string
	for t := range eachToken(s) {
		if !t.Stop {
			terms = append(terms, t.Stem)
		}
	}
	return terms
}

// TermSet is the set of the terms of s.
func TermSet(s string) map[string]bool {
	set := map[string]bool{}
	for _, stem := range Terms(s) {
		set[stem] = true
	}
	return set
}

// SameWords is a key that texts of the same words share, in whatever order.
func SameWords(s string) string {
	stems := Terms(s)
	if len(stems) == 0 {
		return strings.ToLower(s)
	}
	slices.Sort(stems)
	return strings.Join(slices.Compact(stems), " ")
}

// Token is one word or number of a text. Text is text[Start:End], without a
// possessive ending.
type Token struct {
	Text       string
	Stem       string // see Stem
	Start, End int
	Stop       bool // see IsStop
	Number     bool // begins with a digit
	Capital    bool // begins with an upper-case letter
}

// Year is the year that a token names, also as "1990s", or 0.
func (t Token) Year() int {
	d := strings.TrimSuffix(t.Text, "s")
	y, err := strconv.Atoi(d)
	if len(d) != 4 || err != nil || y < 1000 || y > 2100 {
		return 0
	}
	return y
}

// Tokens returns the words and numbers of s in order. "6,000", "3.5", "1990s",
// "COVID-19", "U.S.", "AT&T" and "don't" are one token each; "well-known" and
// "1990-2000" are two. A Chinese or Japanese character is a token by itself.
func Tokens(s string) []Token { return slices.Collect(eachToken(s)) }

// Words yields the words and numbers of s as they stand there: the texts of its tokens.
func Words(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for start, end := range spans(s) {
			if !yield(s[start:end]) {
				return
			}
		}
	}
}

func eachToken(s string) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		for start, end := range spans(s) {
			if !yield(newToken(s, start, end)) {
				return
			}
		}
	}
}

func spans(s string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		for i := 0; i < len(s); {
			r, n := utf8.DecodeRuneInString(s[i:])
			if !wordRune(r) || n > 1 && unicode.Is(unicode.M, r) {
				i += n
				continue
			}
			end, next := tokenEnd(s, i)
			if !yield(i, end) {
				return
			}
			i = next
		}
	}
}

func newToken(s string, start, end int) Token {
	text := s[start:end]
	normal := normalise(text)
	r, _ := utf8.DecodeRuneInString(text)
	return Token{
		Text: text, Stem: stem(normal), Start: start, End: end,
		Stop:    isStop(text, normal),
		Number:  normal != "" && isDigit(normal[0]),
		Capital: unicode.IsUpper(r),
	}
}

// tokenEnd returns where the token that starts at i ends, and where to look for
// the next one: a possessive ending lies between the two.
func tokenEnd(s string, i int) (end, next int) {
	r, n := utf8.DecodeRuneInString(s[i:])
	if ideograph(r) {
		return i + n, i + n
	}
	j := i
	if byteAt(s, i+1) == '.' {
		if dots := dotted.FindString(s[i:min(len(s), i+longestWord)]); !wordAt(s, i+len(dots)) {
			j += len(dots)
		}
	}
	for j < len(s) {
		j = runEnd(s, j)
		glue := joins(s, i, j)
		if glue == 0 {
			break
		}
		j += glue
	}
	if j-i == 1 && (strings.HasPrefix(s[j:], "++") || strings.HasPrefix(s[j:], "#")) && !wordAt(s, j+1) {
		j += strings.IndexFunc(s[j:]+" ", func(r rune) bool { return r != '+' && r != '#' })
	}
	end = j
	for _, mark := range possessive {
		if last := s[j-1]; (last == 's' || last == 'S') && strings.HasSuffix(s[i:j-1], mark) {
			end -= len(mark) + 1
		}
	}
	return end, j
}

var (
	dotted     = regexp.MustCompile(`^[A-Za-z](?:\.[A-Za-z])+\.?`) // "U.S.", "e.g"
	possessive = []string{"'", "’"}                                // before the s
)

// runEnd returns the end of the run of letters and digits at i.
func runEnd(s string, i int) int {
	for i < len(s) && asciiWord(s[i]) {
		i++
	}
	if i == len(s) || s[i] < utf8.RuneSelf {
		return i
	}
	return len(s) - len(strings.TrimLeftFunc(s[i:], func(r rune) bool { return wordRune(r) && !ideograph(r) }))
}

// joins returns the length of the mark at j if it holds the token that began at
// start together with what follows, else 0.
func joins(s string, start, j int) int {
	if j == len(s) || s[j] == ' ' { // as after most words
		return 0
	}
	_, n := utf8.DecodeRuneInString(s[j:])
	if !wordAt(s, j+n) {
		return 0
	}
	before, after, rest := s[j-1], s[j+n], digits(s[j+n:])
	joined := false
	switch s[j : j+n] {
	case "'", "’":
		joined = true
	case "&":
		joined = isUpper(before) && isUpper(after)
	case ".":
		joined = isDigit(before) && rest > 0
	case ",":
		joined = isDigit(before) && rest == 3 && strings.Trim(s[start:j], "0123456789,") == ""
	case "-": // in "pre-1990" the year is a word of its own
		joined = !isDigit(before) && rest > 0 && rest < 4 && !strings.ContainsAny(s[start:j], "-0123456789")
	}
	if !joined {
		return 0
	}
	return n
}

func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

func wordAt(s string, i int) bool {
	return i < len(s) && wordRune(firstRune(s[i:]))
}

func wordRune(r rune) bool {
	return r < utf8.RuneSelf && asciiWord(byte(r)) || r >= utf8.RuneSelf && unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl)
}

// ideograph reports whether r is written without spaces between words.
func ideograph(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

func asciiWord(c byte) bool { return isUpper(c) || isLower(c) || isDigit(c) }
func isUpper(c byte) bool   { return c >= 'A' && c <= 'Z' }
func isLower(c byte) bool   { return c >= 'a' && c <= 'z' }
func isDigit(c byte) bool   { return c >= '0' && c <= '9' }
