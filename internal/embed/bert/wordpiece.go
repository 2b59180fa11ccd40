package bert

// This part owns how a text becomes the numbers that a BERT-family encoder
// reads: cleaning, folding of case and accents, splitting at spaces and
// punctuation, and the longest pieces of the vocabulary. It agrees with the
// reference tokenizer token by token; the vocabulary comes from the caller.

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const maxWordRunes = 100 // a longer word is unknown

// Tokenizer turns texts into numbers. It is safe for concurrent use.
type Tokenizer struct {
	begins, goes  map[string]int32 // pieces that begin a word, and that continue one
	sizes         []int32          // bytes of a piece, by number
	cls, sep, unk int32
}

// NewTokenizer makes a tokenizer of a vocabulary with one token a line, in which a token's
// place is its number.
func NewTokenizer(vocabulary string) *Tokenizer {
	t := &Tokenizer{begins: map[string]int32{}, goes: map[string]int32{}}
	for line := range strings.Lines(vocabulary) {
		token, table, id := strings.TrimRight(line, "\r\n"), t.begins, int32(len(t.sizes))
		if rest, ok := strings.CutPrefix(token, "##"); ok && rest != "" {
			token, table = rest, t.goes
		}
		table[token] = id
		t.sizes = append(t.sizes, int32(len(token)))
	}
	t.cls, t.sep, t.unk = t.begins["[CLS]"], t.begins["[SEP]"], t.begins["[UNK]"]
	return t
}

// special are the tokens that Encode sees in a text as it stands.
var special = regexp.MustCompile(`\[(?:PAD|UNK|CLS|SEP|MASK)\]`)

// Encode gives the numbers of a text between those for its beginning and end, at
// most limit altogether, of which at least two. Bytes that are not UTF-8 are
// dropped, as is what has no shape.
func (t *Tokenizer) Encode(text string, limit int) []int32 {
	room := max(limit, 2) - 1
	ids := make([]int32, 1, min(room+1, 2+len(text)/3))
	ids[0] = t.cls
	for text != "" && len(ids) < room {
		at := special.FindStringIndex(text)
		if at == nil {
			at = []int{len(text), len(text)}
		}
		for _, token := range t.Tokens(text[:at[0]], room-len(ids)) {
			ids = append(ids, token.ID)
		}
		if at[0] < at[1] {
			ids = append(ids, t.begins[text[at[0]:at[1]]])
		}
		text = text[at[1]:]
	}
	return append(ids[:min(len(ids), room)], t.sep)
}

// pieces appends the longest pieces of a word from left to right, or the unknown
// token where some part is in no piece.
func (t *Tokenizer) pieces(ids []int32, word string) []int32 {
	if len(word) > maxWordRunes && utf8.RuneCountInString(word) > maxWordRunes {
		return append(ids, t.unk)
	}
	start := len(ids)
	table := t.begins
	for word != "" {
		end, id := len(word), int32(-1)
		for end > 0 {
			if n, ok := table[word[:end]]; ok {
				id = n
				break
			}
			_, size := utf8.DecodeLastRuneInString(word[:end])
			end -= size
		}
		if id < 0 {
			return append(ids[:start], t.unk)
		}
		ids = append(ids, id)
		word, table = word[end:], t.goes
	}
	return ids
}

// cutWord cuts the first word off a folded text, "" where there is none: a punctuation
// mark or a run of other characters.
func cutWord(text string) (word, rest string) {
	text = strings.TrimLeft(text, " ")
	end := 0
	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
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
	return text[:end], text[end:]
}

// fold cleans a text and folds accents and case.
func fold(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(marks, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFD.String(clean(text)))
}

// clean drops what has no shape, makes every kind of space one space, and sets Han
// characters apart.
func clean(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	for _, r := range text {
		switch {
		case dropped(r):
		case unicode.Is(unicode.White_Space, r):
			b.WriteByte(' ')
		case han(r):
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
