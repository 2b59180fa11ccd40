package bert

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Token is a piece of a text: its number, and the bytes of the text that it came
// from. The bytes begin and end where characters do; a mark belongs to its letter.
type Token struct {
	ID         int32
	Start, End int
}

// Ends gives the numbers for the beginning of a text and for its end.
func (t *Tokenizer) Ends() (begin, end int32) { return t.cls, t.sep }

// Tokens gives the pieces of a text in its order, at most limit of them and without
// beginning and end. The numbers are those of Encode, except that a special token
// that is written in the text is read as the characters it is written with. Where a
// character becomes several pieces, each has the bytes of the whole character.
func (t *Tokenizer) Tokens(text string, limit int) []Token {
	limit = max(limit, 0)
	out := make([]Token, 0, min(limit, 1+len(text)/3))
	var (
		ids []int32
		f   traced
	)
	for at := 0; at < len(text) && len(out) < limit; {
		word := upToSpace(text[at:])
		f.fold(word, at)
		at += len(word)
		all := f.text.String()
		for w, rest := cutWord(all); w != "" && len(out) < limit; w, rest = cutWord(rest) {
			end := len(all) - len(rest)
			start := end - len(w)
			ids = t.pieces(ids[:0], w)
			for _, id := range ids {
				size := int(t.sizes[id])
				if id == t.unk {
					size = end - start
				}
				out = append(out, Token{id, f.from[start], f.to[start+size-1]})
				start += size
			}
		}
	}
	return out[:min(len(out), limit)]
}

// upToSpace is a text up to the next ASCII space, which never joins with what is before
// it. It may begin with one.
func upToSpace(text string) string {
	if i := strings.IndexAny(text[1:], " \n\t\r"); i >= 0 {
		return text[:1+i]
	}
	return text
}

// traced is a folded text that knows for each of its bytes where the character
// began and ended that it came from.
type traced struct {
	text     strings.Builder
	from, to []int
}

// fold folds a text that stands at a place of a larger one. It folds the parts
// between which nothing is exchanged: a character with the marks that follow it,
// whose order may change.
func (f *traced) fold(text string, at int) {
	f.text.Reset()
	f.from, f.to = f.from[:0], f.to[:0]
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf && (i+1 == len(text) || text[i+1] < utf8.RuneSelf) {
			f.ascii(c, at+i)
			i++
			continue
		}
		end, next := part(text, i)
		f.write(fold(text[i:next]), at+i, at+end)
		i = next
	}
}

func (f *traced) ascii(c byte, at int) {
	switch {
	case c <= ' ' && shapeless(rune(c)) || c == 0x7F:
		return
	case c <= ' ':
		c = ' '
	case 'A' <= c && c <= 'Z':
		c += 'a' - 'A'
	}
	f.text.WriteByte(c)
	f.from, f.to = append(f.from, at), append(f.to, at+1)
}

func (f *traced) write(text string, from, to int) {
	f.text.WriteString(text)
	for range len(text) {
		f.from, f.to = append(f.from, from), append(f.to, to)
	}
}

// part gives where the part ends that begins at i, and where the next one begins:
// what is dropped may be between the two. A part that begins with what is dropped
// is that alone.
func part(text string, i int) (end, next int) {
	r, size := utf8.DecodeRuneInString(text[i:])
	end, next = i+size, i+size
	if dropped(r) {
		return end, next
	}
	for j := end; j < len(text); {
		r, size := utf8.DecodeRuneInString(text[j:])
		j += size
		if dropped(r) {
			continue
		}
		if norm.NFD.PropertiesString(text[j-size:]).LeadCCC() == 0 {
			break
		}
		end, next = j, j
	}
	return end, next
}

//go:embed tables.txt
var tablesFile string

// What each table holds is said in the file.
var (
	tables  = readTables(tablesFile)
	formats = tables["formats"]
	marks   = tables["marks"]
	points  = tables["points"]
)

// readTables reads ranges of characters in rising order. The file is part of the program:
// one that cannot be read is a panic.
func readTables(file string) map[string]*unicode.RangeTable {
	all := map[string]*unicode.RangeTable{}
	var table *unicode.RangeTable
	for line := range strings.Lines(file) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for field := range strings.FieldsSeq(line) {
			if name, ok := strings.CutSuffix(field, ":"); ok {
				table = &unicode.RangeTable{}
				all[name] = table
				continue
			}
			first, last, found := strings.Cut(field, "-")
			if !found {
				last = first
			}
			low, errLow := strconv.ParseUint(first, 16, 32)
			high, errHigh := strconv.ParseUint(last, 16, 32)
			if errLow != nil || errHigh != nil {
				panic(fmt.Sprintf("%q is no range of characters", field))
			}
			if high <= 0xFFFF {
				table.R16 = append(table.R16, unicode.Range16{Lo: uint16(low), Hi: uint16(high), Stride: 1})
			} else {
				table.R32 = append(table.R32, unicode.Range32{Lo: uint32(low), Hi: uint32(high), Stride: 1})
			}
		}
	}
	return all
}
