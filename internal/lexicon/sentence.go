package lexicon

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentences returns the spans of the sentences of s, in order and trimmed. They
// do not overlap, and every byte that is not white space lies in exactly one. A
// full stop ends a sentence unless it belongs to an abbreviation, an initial or
// a number; quotes, brackets and note marks after it belong to the sentence. A
// blank line, a heading and an item of a list end a sentence too; a line break
// inside a wrapped paragraph does not.
func Sentences(s string) []Span {
	var spans []Span
	for _, p := range Paragraphs(s) {
		spans = append(spans, p.Sentences...)
	}
	return spans
}

// sentences cuts the trimmed stretch p of s into sentences. The first skip bytes
// are a list marker, where no sentence ends.
func sentences(s string, p Span, skip int) []Span {
	c := cutter{s: s[:p.End], start: p.Start}
	c.caseless = strings.IndexFunc(s[p.Start:p.End], unicode.IsUpper) < 0
	var spans []Span
	for i := p.Start + skip; i < p.End; {
		if r, n := utf8.DecodeRuneInString(s[i:p.End]); !terminator(r) {
			i += n
			continue
		}
		st := c.stop(i)
		if st.next < p.End && c.ends(st) {
			spans = append(spans, Span{c.start, st.end})
			c.start = st.next
		}
		i = st.end
	}
	return append(spans, Span{c.start, p.End})
}

// cutter decides where the sentences of one paragraph end.
type cutter struct {
	s        string // the text up to the end of the paragraph
	start    int    // of the sentence being read
	caseless bool   // the paragraph has no capitals, so case says nothing
}

// stop is a place where a sentence might end.
type stop struct {
	at     int  // the first terminator
	end    int  // after the last one and the quotes, brackets and notes that belong to it
	next   int  // where the next text begins
	dots   int  // how many dots among them; an ellipsis counts as three
	bang   bool // a question or exclamation mark among them
	wide   bool // an ideographic full stop among them
	quote  bool // a closing quote among them
	noted  bool // a note mark follows: a sure sign of an end
	spaced bool // white space follows
}

func terminator(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '.' || r == '!' || r == '?'
	}
	return strings.ContainsRune(terminators, r)
}

// What may stand where a sentence ends.
const (
	terminators = ".!?…。！？｡‼⁇⁈⁉؟۔।॥።"
	closers     = `])"'}”’»›″」』）】》〉〕*_`
	note        = `\[[^\[\].\n]{1,22}\]|:\d[\d:–-]*|[¹²³⁰⁴⁵⁶⁷⁸⁹†‡]` // "[12]", "[citation needed]", ":12–13"
)

var (
	stopMarks = regexp.MustCompile(`^(?:[` + closers + terminators + `]|` + note + `| \.(?:\B|$))+`)
	// setApart are numbers of notes, and quotes in a text cut into words.
	setApart = regexp.MustCompile(`^(\[[\d,–\- ]+\]|["')]+)(?:[\t-\r ]|$)`)
)

// stop reads the terminators at i and what belongs to them.
func (c *cutter) stop(i int) stop {
	marks := stopMarks.FindString(c.s[i:])
	st := stop{at: i, end: i + len(marks), dots: strings.Count(marks, ".") + 3*strings.Count(marks, "…")}
	st.bang = strings.ContainsAny(marks, "!?‼⁇⁈⁉؟")
	st.wide = strings.ContainsAny(marks, "。！？｡۔।॥።")
	st.quote = strings.ContainsAny(marks, `"'”’»」』`)
	st.noted = strings.ContainsAny(marks, "[:¹²³⁰⁴⁵⁶⁷⁸⁹†‡")
	c.after(&st)
	return st
}

// after finds where the next text begins, taking notes and stray quotes that are
// set off by a space into the sentence that ended.
func (c *cutter) after(st *stop) {
	st.next = skipSpace(c.s, st.end)
	if strings.Contains(c.s[st.end:st.next], "\n") {
		st.next = skipSpace(c.s, skipQuoted(c.s, st.next))
	}
	st.spaced = st.next > st.end
	for st.spaced && st.next < len(c.s) && !asciiWord(c.s[st.next]) {
		m := setApart.FindStringSubmatch(c.s[st.next:])
		if m == nil {
			break
		}
		st.end = st.next + len(m[1])
		st.next = skipSpace(c.s, st.end)
	}
}

func (c *cutter) ends(st stop) bool {
	if !st.spaced {
		return c.endsUnspaced(st)
	}
	if c.bareMarker(st) {
		return false
	}
	next := c.opening(st.next)
	switch {
	case st.wide:
		return true
	case next.lower && !c.caseless && !next.bracket:
		return false
	case st.bang:
		return c.endsBang(st, next)
	case st.noted:
		return true
	case st.dots > 1 && !(st.dots == 2 && dottedWord(c.before(st.at))):
		return !next.lower || c.caseless
	case next.r == ',' || next.r == ';' || next.r == ':':
		return false
	}
	return c.endsDot(st, next)
}

func (c *cutter) endsBang(st stop, next opening) bool {
	if st.quote && speaker.MatchString(c.s[next.at:min(len(c.s), next.at+64)]) {
		return false
	}
	if c.s[st.at] == '!' && exclaimed[strings.ToLower(c.before(st.at))] {
		return next.starter()
	}
	return true
}

// endsDot decides after a single full stop that white space follows.
func (c *cutter) endsDot(st stop, next opening) bool {
	word := c.before(st.at)
	low := strings.ToLower(word)
	known := func(set map[string]bool) bool { return set[low] || set[word] }
	switch {
	case word == "" || asciiSpace(c.s[st.at-1]): // set apart, it is no part of an abbreviation
		return true
	case low == "a.m" || low == "p.m" || low == "am" || low == "pm":
		return !next.number && !zones[next.word] && !months[next.word] && !weekdays[next.word]
	case len(word) == 1 && isUpper(word[0]):
		if labels[strings.ToLower(c.before(c.wordStart(st.at)))] {
			return !next.initial
		}
		return next.starter()
	case known(joining):
		return false
	case next.number && known(counting):
		return false
	case len(word) == 1 && isLower(word[0]):
		return next.starter() || !counting[word]
	case known(ending), dottedWord(word):
		return next.starter()
	}
	return true
}

// endsUnspaced decides where no white space follows: after an ideographic stop,
// and where the space was lost.
func (c *cutter) endsUnspaced(st stop) bool {
	next := c.opening(st.end)
	switch {
	case st.wide:
		return !(st.quote && unicode.Is(unicode.Hiragana, next.r))
	case c.bareMarker(st):
		return false
	case st.noted:
		return next.upper && next.at == st.end
	case st.dots != 1 || st.bang:
		return false
	}
	word := c.before(st.at)
	if len(word) < 3 || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") != "" {
		return false
	}
	return next.at == st.end && next.starter() && len(next.word) > 1 && asciiSpace(byteAt(c.s, next.at+len(next.word)))
}

// bareMarker reports whether the sentence so far is nothing but a number or letter of
// a list, "1.", "b.", "iv.", "2.1.", or the terminators stand alone in brackets:
// "[...]", "(?)".
func (c *cutter) bareMarker(st stop) bool {
	before := c.s[c.start:st.at]
	if strings.HasSuffix(before, "[") || strings.HasSuffix(before, "(") {
		return true
	}
	m := strings.Trim(before, "([ ")
	return st.dots == 1 && !st.bang && m != "" && len(m) <= 5 && bareMark.MatchString(m)
}

var bareMark = regexp.MustCompile(`^(?:\d{0,3}(?:\.[\d.]*)?|[A-HJ-Za-z]|[ivx]+|[IVX]{2,})$`)

// before returns the word that ends at i, dots inside it included.
func (c *cutter) before(i int) string {
	i = trimSpaceLeft(c.s, c.start, i)
	return strings.TrimLeft(c.s[c.wordStart(i):i], ".'’")
}

// longestWord is how far back a word is looked for; abbreviations are shorter.
const longestWord = 24

// wordStart returns where the word that ends at i begins.
func (c *cutter) wordStart(i int) int {
	low := max(c.start, i-longestWord)
	return low + len(strings.TrimRightFunc(c.s[low:i], func(r rune) bool { return wordRune(r) || r == '.' || r == '\'' || r == '’' }))
}

// dottedWord reports whether word is an acronym without its last dot. A decimal
// number is none.
func dottedWord(word string) bool {
	return strings.Contains(word, ".") && acronym.MatchString(word) && strings.ContainsFunc(word, unicode.IsLetter)
}

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

func skipSpace(s string, i int) int {
	return len(s) - len(strings.TrimLeftFunc(s[i:], unicode.IsSpace))
}

// trimSpaceLeft returns i less the white space before it, but not below low.
func trimSpaceLeft(s string, low, i int) int {
	return low + len(strings.TrimRightFunc(s[low:i], unicode.IsSpace))
}

func asciiSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func byteAt(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}
