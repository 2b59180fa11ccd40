package secret

import (
	"bytes"
	"html"
	"slices"
	"strconv"
	"unicode/utf8"
)

// layer is a text with some levels of escapes undone: an address in JSON in a page has three.
type layer struct {
	text  []byte
	up    *layer // what it was made of; nil for the text itself
	turns []turn // in order
	depth int
}

// turn says from where in the layer above the text is, from a place on.
type turn struct{ at, above int }

// maxDepth bounds the levels of escapes that are undone.
const maxDepth = 5

// escapes are the bytes that an escaped character begins with: in an address, in JSON and in HTML.
const escapes = `%\&`

// maxEscape is the most bytes that stand for one character.
const maxEscape = 10

// origin is where in the text itself the place i of the layer is from.
func (l *layer) origin(i int) int {
	for ; l.up != nil; l = l.up {
		n, found := slices.BinarySearchFunc(l.turns, i, func(t turn, i int) int { return t.at - i })
		if !found {
			n--
		}
		if n >= 0 {
			i += l.turns[n].above - l.turns[n].at
		}
	}
	return i
}

// below is the layer with one more level of escapes undone, or nil if there are none.
func (l *layer) below() *layer {
	if l.depth == maxDepth {
		return nil
	}
	down := &layer{up: l, depth: l.depth + 1}
	done := 0
	for i := nextEscape(l.text, 0); i < len(l.text); {
		r, size := unescape(l.text[i:])
		if size == 0 {
			i = nextEscape(l.text, i+1)
			continue
		}
		if down.text == nil {
			down.text = make([]byte, 0, len(l.text))
		}
		down.text = append(append(down.text, l.text[done:i]...), r...)
		i += size
		done = i
		down.turns = append(down.turns, turn{len(down.text), i})
		i = nextEscape(l.text, i)
	}
	if down.turns == nil {
		return nil
	}
	down.text = append(down.text, l.text[done:]...)
	return down
}

// nextEscape is the first place from i on where an escape may begin, or len(b).
func nextEscape(b []byte, i int) int {
	for ; i < len(b); i++ {
		if c := b[i]; c == '%' || c == '\\' || c == '&' {
			return i
		}
	}
	return len(b)
}

// unescape reads one escaped character at the beginning of b, and says how many bytes it takes.
func unescape(b []byte) (r []byte, size int) {
	switch {
	case b[0] == '%' && len(b) >= 3:
		if n, err := strconv.ParseUint(string(b[1:3]), 16, 8); err == nil {
			return []byte{byte(n)}, 3
		}
	case b[0] == '\\' && len(b) >= 6 && b[1] == 'u':
		if n, err := strconv.ParseUint(string(b[2:6]), 16, 16); err == nil {
			return utf8.AppendRune(nil, rune(n)), 6
		}
	case b[0] == '\\' && len(b) >= 2:
		return b[1:2], 2
	case b[0] == '&':
		end := bytes.IndexByte(b[:min(len(b), maxEscape)], ';')
		if end < 0 {
			break
		}
		if text := html.UnescapeString(string(b[:end+1])); text != string(b[:end+1]) {
			return []byte(text), end + 1
		}
	}
	return nil, 0
}

// open reports whether the text ends within an escape, or in what may be one.
func (l *layer) open() bool {
	tail := l.text[max(0, len(l.text)-maxEscape+1):]
	i := bytes.LastIndexAny(tail, escapes)
	if i < 0 {
		return false
	}
	_, size := unescape(tail[i:])
	switch rest := len(tail) - i; tail[i] {
	case '%':
		return rest < 3
	case '\\':
		return rest < 2 || tail[i+1] == 'u' && rest < 6
	default:
		return size == 0 && bytes.IndexByte(tail[i:], ';') < 0
	}
}
