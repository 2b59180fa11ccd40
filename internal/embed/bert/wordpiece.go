package bert

// This part owns how a text becomes the numbers that a BERT-family encoder
// reads: cleaning, folding of case and accents, splitting at spaces and
// punctuation, and the longest pieces of the vocabulary. It agrees with the
// reference tokenizer token by token; the vocabulary comes from the caller.

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The limits of a vocabulary and of a word.
const (
	maxVocabulary = 1 << 20
	maxWordRunes  = 100 // a longer word is unknown
	prefix        = "##"
)

// chunk is about how many bytes are folded at a time, so that the cost of a long
// text is that of the part which is kept.
const chunk = 4 << 10

// TokenizerConfig says how words are folded before they are looked up.
type TokenizerConfig struct {
	Lower        bool // fold case
	StripAccents bool // drop marks that do not take space
	SplitHan     bool // every Han character is a word
}

// Tokenizer turns texts into numbers. It is safe for concurrent use.
type Tokenizer struct {
	cfg           TokenizerConfig
	begins, goes  map[string]int32 // pieces that begin a word, and that continue one
	special       map[string]int32 // whole tokens that are seen in a text as it stands
	sizes         []int32          // bytes of a piece, by number
	cls, sep, unk int32
}

// ParseVocabulary reads a vocabulary with one token a line.
func ParseVocabulary(text string) []string {
	var tokens []string
	for line := range strings.Lines(text) {
		tokens = append(tokens, strings.TrimRight(line, "\r\n"))
	}
	return tokens
}

// NewTokenizer makes a tokenizer of a vocabulary, in which a token's place is its number. It
// fails where a token that every text needs is missing, and where there are too
// many.
func NewTokenizer(vocabulary []string, cfg TokenizerConfig) (*Tokenizer, error) {
	if len(vocabulary) > maxVocabulary {
		return nil, fmt.Errorf("wordpiece: %d tokens, over %d", len(vocabulary), maxVocabulary)
	}
	t := &Tokenizer{
		cfg:     cfg,
		begins:  make(map[string]int32, len(vocabulary)),
		goes:    make(map[string]int32, len(vocabulary)/4),
		special: make(map[string]int32),
		sizes:   make([]int32, len(vocabulary)),
	}
	for i, tok := range vocabulary {
		if rest, ok := strings.CutPrefix(tok, prefix); ok && rest != "" {
			t.goes[rest] = int32(i)
			t.sizes[i] = int32(len(rest))
		} else if tok != "" {
			t.begins[tok] = int32(i)
			t.sizes[i] = int32(len(tok))
		}
	}
	for _, tok := range []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} {
		if id, ok := t.begins[tok]; ok {
			t.special[tok] = id
		}
	}
	for tok, at := range map[string]*int32{"[CLS]": &t.cls, "[SEP]": &t.sep, "[UNK]": &t.unk} {
		id, ok := t.special[tok]
		if !ok {
			return nil, fmt.Errorf("wordpiece: the vocabulary has no %s", tok)
		}
		*at = id
	}
	return t, nil
}

// Encode gives the numbers of a text between those for its beginning and end, at
// most limit altogether, of which at least two. Bytes that are not UTF-8 are
// dropped, as is what has no shape.
func (t *Tokenizer) Encode(text string, limit int) []int32 {
	room := max(limit, 2) - 1
	ids := make([]int32, 1, min(room+1, 2+len(text)/3))
	ids[0] = t.cls
	for text != "" && len(ids) < room {
		plain, special, rest := t.cut(text)
		for _, token := range t.Tokens(plain, room-len(ids)) {
			ids = append(ids, token.ID)
		}
		if special >= 0 {
			ids = append(ids, special)
		}
		text = rest
	}
	return append(ids[:min(len(ids), room)], t.sep)
}

// cut gives the text up to the first special token, the token or -1, and the rest.
func (t *Tokenizer) cut(text string) (plain string, special int32, rest string) {
	for at := 0; ; at++ {
		i := strings.IndexByte(text[at:], '[')
		if i < 0 {
			return text, -1, ""
		}
		at += i
		if end := strings.IndexByte(text[at:min(len(text), at+8)], ']'); end > 0 {
			if id, ok := t.special[text[at:at+end+1]]; ok {
				return text[:at], id, text[at+end+1:]
			}
		}
	}
}

// head is the part of a text that is folded at a time.
func head(text string) string {
	if len(text) > chunk {
		// An ASCII space never joins with what is around it.
		if i := strings.IndexAny(text[chunk:], " \n\t\r"); i >= 0 {
			return text[:chunk+i]
		}
	}
	return text
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

// fold cleans a text and folds case and accents, in the order of the reference: the
// dot of İ goes as an accent before the letter becomes small.
func (t *Tokenizer) fold(text string) string {
	text = t.clean(text)
	if t.cfg.StripAccents {
		text = norm.NFD.String(text)
	}
	if !t.cfg.StripAccents && !t.cfg.Lower {
		return text
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
	return b.String()
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
