package llm

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Overheads of a request that no text shows, in tokens, as TestEstimateAgainstProviders measures them.
const (
	callOverhead = 96  // roles and separators of a call, and what a model's chat template adds
	toolOverhead = 24  // the frame of one tool
	toolsPrompt  = 420 // what a provider tells its model about tools, when there are any
	schemaPrompt = 64  // what it tells it about a schema
)

// longWord is the length from which a run of letters is a key or a hash, which takes twice the tokens of words.
const longWord = 16

// Hundredths of a letter to a token. Of words that are not English, tokenizers know fragments only.
const (
	englishLetters = 400
	foreignLetters = 240
)

// Shares of common English words, in ten thousandths, from which a line is English and up to which it is not.
const (
	englishShare = 1400
	foreignShare = 500
)

// common are frequent words of English that other languages with the same letters
// do not have, or seldom: "a", "in", "on", "at" and "an" are left out.
var common = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq("the of and to is was for with as by that it from are be this or which were have has had not but " +
		"they their his its can will would been who when than these into other about more") {
		m[w] = true
	}
	return m
})

// EstimateText counts the tokens of a text, on the high side, line by line: the count of lines is the
// sum of their counts and one for every line end.
//
// A word counts one token for each four letters begun where the line reads like English, down to each
// 2.4 where it has no common word of English; capitals count half as much again, letters with marks
// twice, keys and hashes one for two or fewer. Every digit pair and mark counts one; letters of other
// scripts one to three. Tokenizers in use stay below it, so that a reservation holds.
func EstimateText(s string) int {
	return (&tally{adapt: true}).count(s)
}

// estimateEnglish is EstimateText for the program's own texts, which are English or JSON.
func estimateEnglish(s string) int {
	return new(tally).count(s)
}

// Estimate counts the input tokens of a call, on the high side. System, Tools and
// Schema are taken for English.
func Estimate(c Call) int {
	n := callOverhead + estimateEnglish(c.System) + EstimateText(c.Shared) + EstimateText(c.Input)
	if len(c.Schema) > 0 {
		n += schemaPrompt + estimateEnglish(string(c.Schema))
	}
	for _, t := range c.Tools {
		n += toolOverhead + estimateEnglish(t.Name) + estimateEnglish(t.Description) + estimateEnglish(string(t.Schema))
	}
	if len(c.Tools) > 0 {
		n += toolsPrompt
	}
	return n
}

type tally struct {
	adapt  bool // to the language of each line
	tokens int

	// The line: pieces of words by their letters, which are counted at its end,
	// and how many of its words are common.
	pieces        [longWord + 1]int
	words, common int

	// The run of letters and digits, and its piece of one kind.
	run, joints               int
	letters, capitals, digits int
	name                      []byte // the word in lower case
}

func (t *tally) count(s string) int {
	lower := false // the letter before was a small one
	for _, r := range s {
		small := r >= 'a' && r <= 'z'
		switch {
		case small || r >= 'A' && r <= 'Z':
			if t.digits > 0 || lower && !small {
				t.joint()
			}
			t.letters++
			t.run++
			if !small {
				t.capitals++
				r |= 0x20
			}
			t.name = append(t.name, byte(r))
		case r >= '0' && r <= '9':
			if t.letters > 0 {
				t.joint()
			}
			t.word()
			t.run++
			t.digits++
		case r == '\n':
			t.line()
			t.tokens++
		case r == ' ':
			t.end()
		case r < 0x80:
			t.end()
			t.tokens++
		case r < 0x250 && unicode.IsLetter(r): // Latin with marks: two letters' worth
			t.letters += 2
			t.run++
			t.name = utf8.AppendRune(t.name, r)
		default:
			t.end()
			t.tokens += foreign(r)
		}
		lower = small
	}
	t.line()
	return t.tokens
}

// foreign is what a character outside ASCII and Latin counts: more where a script is written less.
func foreign(r rune) int {
	switch {
	case r < 0x800: // Greek, Cyrillic, Hebrew, Arabic…
		return 1
	case r >= 0xF00 && r < 0x1E00, r >= 0x10000: // Tibetan, Burmese, Georgian, Ethiopic, Khmer…; emoji
		return 3
	}
	return 2 // Indic, Thai, CJK, Korean, punctuation
}

// piece ends a piece of letters or of digits.
func (t *tally) piece() {
	n := t.letters
	if t.capitals == n {
		n += n / 2
	}
	if n > 0 {
		short := min(n, longWord)
		t.pieces[short]++
		t.tokens += (n - short + 1) / 2
	}
	t.tokens += (t.digits + 1) / 2
	t.letters, t.capitals, t.digits = 0, 0, 0
}

func (t *tally) joint() {
	t.piece()
	t.joints++
}

func (t *tally) word() {
	if len(t.name) == 0 {
		return
	}
	t.words++
	if common()[string(t.name)] {
		t.common++
	}
	t.name = t.name[:0]
}

// end ends a run. One that changes its kind again and again is a key or a hash: two tokens for three characters.
func (t *tally) end() {
	if t.run == 0 {
		return
	}
	t.piece()
	t.word()
	if t.joints >= 3 {
		t.tokens += max(0, t.run*2/3-t.joints-1)
	}
	t.run, t.joints = 0, 0
}

func (t *tally) line() {
	t.end()
	per := englishLetters
	if t.adapt && t.words > 0 {
		// A few words say little: they are taken for English, mostly.
		share := (10_000*t.common + 12_000) / (t.words + 8)
		share = min(max(share, foreignShare), englishShare)
		per = foreignLetters + (englishLetters-foreignLetters)*(share-foreignShare)/(englishShare-foreignShare)
	}
	for n, count := range t.pieces {
		t.tokens += count * ((100*n + per - 1) / per)
	}
	t.pieces, t.words, t.common = [longWord + 1]int{}, 0, 0
}
