package bert

// This part owns how a text becomes the numbers that a BERT-family encoder
// reads: cleaning, folding of case and accents, splitting at spaces and
// punctuation, and the longest pieces of the vocabulary. It agrees with the
// reference tokenizer token by token; the vocabulary comes from the caller.

import (
	"fmt"
	"strings"
	"unicode/utf8"
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
		ids = t.encodePlain(ids, plain, room)
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

// encodePlain appends the pieces of a text without special tokens, and stops soon
// after there are room of them.
func (t *Tokenizer) encodePlain(ids []int32, text string, room int) []int32 {
	for text != "" && len(ids) < room {
		part := head(text)
		text = text[len(part):]
		words := t.fold(part)
		for w, ok := words.next(); ok && len(ids) < room; w, ok = words.next() {
			ids = t.pieces(ids, w)
		}
	}
	return ids
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
