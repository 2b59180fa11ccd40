package bert

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// folded is a text after folding: words with single spaces between some of them.
type folded struct{ text string }

// next takes the next word: a punctuation mark or a run of other characters.
func (f *folded) next() (word string, ok bool) {
	f.text = strings.TrimLeft(f.text, " ")
	if f.text == "" {
		return "", false
	}
	end := 0
	for end < len(f.text) {
		r, size := utf8.DecodeRuneInString(f.text[end:])
		if r == ' ' {
			break
		}
		if punctuation(r) {
			if end == 0 {
				end = size
			}
			break
		}
		end += size
	}
	word, f.text = f.text[:end], f.text[end:]
	return word, true
}

// fold cleans a text and folds case and accents, in the order of the reference: the
// dot of İ goes as an accent before the letter becomes small.
func (t *Tokenizer) fold(text string) folded {
	text = t.clean(text)
	if t.cfg.StripAccents {
		text = norm.NFD.String(text)
	}
	if !t.cfg.StripAccents && !t.cfg.Lower {
		return folded{text}
	}
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
			if t.cfg.Lower && 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			b.WriteByte(byte(r))
		case t.cfg.StripAccents && unicode.Is(marks, r):
		case t.cfg.Lower && r == 'İ':
			b.WriteString("i\u0307") // the one letter that becomes two
		case t.cfg.Lower:
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteRune(r)
		}
	}
	return folded{b.String()}
}

// clean drops what has no shape, makes every kind of space one space, and sets Han
// characters apart.
func (t *Tokenizer) clean(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	for _, r := range text {
		switch {
		case r > ' ' && r < 0x7F:
			b.WriteByte(byte(r))
		case dropped(r):
		case space(r):
			b.WriteByte(' ')
		case t.cfg.SplitHan && han(r):
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// dropped reports what leaves no trace in a folded text. Bytes that are not UTF-8 are
// read as RuneError.
func dropped(r rune) bool { return r == utf8.RuneError || shapeless(r) }

// shapeless reports control and format characters and those of private use, apart
// from the three that count as space.
func shapeless(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7F
	}
	return unicode.Is(formats, r)
}

func space(r rune) bool { return unicode.Is(unicode.White_Space, r) }

func punctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~'
	}
	return unicode.Is(points, r)
}

// han reports the ideographs that the reference sets apart, its gap included.
func han(r rune) bool {
	return 0x4E00 <= r && r <= 0x9FFF || 0x3400 <= r && r <= 0x4DBF || 0xF900 <= r && r <= 0xFAFF ||
		0x20000 <= r && r <= 0x2A6DF || 0x2A700 <= r && r <= 0x2B81F || 0x2B920 <= r && r <= 0x2CEAF || 0x2F800 <= r && r <= 0x2FA1F
}
