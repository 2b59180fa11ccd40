package inverted

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWord is how much of a word is kept, in bytes. Longer ones are no words.
const maxWord = 64

// kind says what a term of a text is.
type kind byte

const (
	plain    kind = iota // a word
	glyph                // a character of a script without spaces
	compound             // the words of something written without white space, "covid 19"
	pair                 // two neighbouring glyphs
)

// maxParts is the most words that make a compound; a URL has more.
const maxParts = 4

// each calls emit with the terms of a text, folded, in order. The bytes are
// good until emit returns.
func each(text string, emit func(term []byte, k kind)) {
	s := scanner{text: text, apart: true}
	var joined []byte
	var before rune // the ideograph just before this word, or 0
	parts, start := 0, 0
	for {
		more := s.next()
		if s.apart || !more {
			if parts > 1 && parts <= maxParts {
				if joined = appendCompound(joined[:0], text[start:s.ended]); len(joined) > 0 {
					emit(joined, compound)
				}
			}
			parts, start = 0, s.start
		}
		if !more {
			return
		}
		k := plain
		if s.ideograph == 0 {
			parts++
		} else {
			k = glyph
			if before != 0 && s.close {
				joined = utf8.AppendRune(utf8.AppendRune(joined[:0], before), s.ideograph)
				emit(joined, pair)
			}
		}
		before = s.ideograph
		s.ended = s.at
		emit(s.word, k)
	}
}

// appendCompound appends the folded words of text, single spaces between them, or
// nothing where the last is but an ending, as in "don't".
func appendCompound(b []byte, text string) []byte {
	s := scanner{text: text}
	for s.next() {
		if s.ideograph != 0 {
			return b[:0]
		}
		if len(b) > 0 {
			b = append(b, ' ')
		}
		b = append(b, s.word...)
	}
	switch string(s.word) {
	case "s", "t", "re", "ve", "ll", "d", "m":
		return b[:0]
	}
	if len(b) > maxWord {
		return b[:0]
	}
	return b
}

// scanner finds the words of a text.
type scanner struct {
	text      string
	at        int    // where to look for the next word
	start     int    // where the word begins
	ended     int    // for each: where the word before ended
	word      []byte // folded
	apart     bool   // white space stands before the word
	close     bool   // nothing stands between the word and the one before
	ideograph rune   // the word, if it is one character of a script without spaces
}

// next goes to the next word and reports whether there is one. A word of marks alone,
// which fold to nothing, is passed over.
func (s *scanner) next() bool {
	from, apart := s.at, s.at == 0
	for {
		for s.at < len(s.text) {
			r, n := s.peek()
			if WordRune(r) {
				break
			}
			apart = apart || unicode.IsSpace(r)
			s.at += n
		}
		s.apart = apart
		if s.at == len(s.text) {
			return false
		}
		s.start, s.close = s.at, s.at == from
		if s.read(); len(s.word) > 0 {
			return true
		}
	}
}

// read reads a word, and cuts one that is too long to be one.
func (s *scanner) read() {
	s.ideograph, s.word = 0, s.word[:0]
	for s.at < len(s.text) {
		if c := s.text[s.at]; asciiWord(c) {
			s.word = append(s.word, c|0x20) // in lower case; a digit stays
			s.at++
			continue
		}
		r, n := s.peek()
		if !WordRune(r) {
			break
		}
		if isIdeograph(r) {
			if s.at == s.start {
				s.ideograph, s.word = r, utf8.AppendRune(s.word, r)
				s.at += n
			}
			break
		}
		s.word = appendFolded(s.word, r)
		s.at += n
	}
	if len(s.word) > maxWord {
		n := maxWord
		for n > 0 && !utf8.RuneStart(s.word[n]) {
			n--
		}
		s.word = s.word[:n]
	}
}

// peek is the character that comes next, and its length.
func (s *scanner) peek() (rune, int) {
	if c := s.text[s.at]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(s.text[s.at:])
}

// WordRune reports whether words are made of r.
func WordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return asciiWord(byte(r))
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || unicode.Is(unicode.Co, r)
}

func asciiWord(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' }

// isIdeograph reports whether r is written without spaces between words.
func isIdeograph(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// appendFolded appends r in lower case and without accents: "É" and "e" with a
// combining accent are both "e". Letters beyond Latin and Greek keep theirs, since
// there they make another letter.
func appendFolded(b []byte, r rune) []byte {
	r = unicode.ToLower(r)
	switch {
	case r < utf8.RuneSelf:
		return append(b, byte(r))
	case r >= 0x300 && r <= 0x36F:
		return b
	case unicode.In(r, unicode.Latin, unicode.Greek):
		var buf [utf8.UTFMax]byte
		d := norm.NFD.Properties(buf[:utf8.EncodeRune(buf[:], r)]).Decomposition()
		if base, n := utf8.DecodeRune(d); n > 0 && base != utf8.RuneError {
			r = unicode.ToLower(base)
		}
	}
	return utf8.AppendRune(b, r)
}
