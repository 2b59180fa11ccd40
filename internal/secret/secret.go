// Package secret takes the values that must never leave, keys, tokens and passwords, out of
// whatever is stored or shown. It owns the spellings in which a value is known again (as it is,
// escaped as in addresses, JSON and HTML, in hexadecimal, and in base64 at any place), what is put
// in their stead, and a writer that does it to a stream.
//
// It goes by exact values and by no pattern of what keys look like, so that it never touches
// anything else. It does not know where secrets come from, and it cannot undo a spelling that was
// made to get past it: what keeps secrets safe is that each is sent only to its own service.
package secret

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"html"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// Mark stands where a secret stood. It is plain in text, JSON, HTML and addresses.
const Mark = "REDACTED"

// The shortest values that count.
const (
	minLength = 8
	// minPlain is for values of letters alone or of digits alone, such as a database's password
	// that is a word: taking every "postgres" out of a page would hide nothing and spoil the page.
	minPlain = 16
)

func counts(value string) bool {
	n := utf8.RuneCountInString(value)
	all := func(is func(rune) bool) bool {
		return !strings.ContainsFunc(value, func(r rune) bool { return !is(r) })
	}
	if all(unicode.IsLetter) || all(unicode.IsDigit) {
		return n >= minPlain
	}
	return n >= minLength
}

// Redactor knows secrets. It is safe for concurrent use. A nil Redactor knows none.
type Redactor struct {
	known atomic.Pointer[spellings]

	mu     sync.Mutex // guards values, and that known is made of them
	values []string
}

// New makes a redactor of values. Those that do not count, or have several lines, are passed over.
func New(values ...string) *Redactor {
	r := &Redactor{}
	r.Learn(values...)
	return r
}

// Learn adds values to those that are known. Writers made before know them too.
func (r *Redactor) Learn(values ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	grown := slices.Clone(r.values)
	for _, v := range values {
		if v = strings.TrimSpace(v); counts(v) && !strings.Contains(v, "\n") && !slices.Contains(grown, v) {
			grown = append(grown, v)
		}
	}
	if len(grown) > len(r.values) {
		r.values = grown
		r.known.Store(spell(grown))
	}
}

func (r *Redactor) spellings() *spellings {
	if r == nil {
		return nil
	}
	return r.known.Load()
}

// Text is s without secrets.
func (r *Redactor) Text(s string) string { return string(r.Bytes([]byte(s))) }

// Bytes is b without secrets: b itself if it has none, else a copy. JSON stays JSON.
func (r *Redactor) Bytes(b []byte) []byte {
	if known := r.spellings(); known != nil {
		return known.replace(b)
	}
	return b
}

// spelling is a secret as it is looked for, and what is put in its stead.
type spelling struct{ text, instead []byte }

// spellings are all ways to write all secrets, but for escapes, ready to be looked for.
type spellings struct {
	by      map[uint16][]spelling // by the first two bytes, the longest first
	starts  [1 << 10]uint64       // the keys of by as bits: most places in a text are none
	longest int
	spaces  bool // one of them has a space in it
}

// spell makes the spellings of values. Nothing in it depends on their order.
func spell(values []string) *spellings {
	k := &spellings{by: map[uint16][]spelling{}}
	seen := map[string]bool{}
	add := func(text, instead string) {
		if len(text) < minLength || seen[text] {
			return
		}
		seen[text] = true
		key := uint16(text[0])<<8 | uint16(text[1])
		k.by[key] = append(k.by[key], spelling{[]byte(text), []byte(instead)})
		k.starts[key>>6] |= 1 << (key & 63)
		k.longest = max(k.longest, len(text))
	}
	for _, v := range values {
		k.spaces = k.spaces || strings.Contains(v, " ")
		add(v, Mark)
		digits := hex.EncodeToString([]byte(v))
		zeros := strings.Repeat("0", len(digits))
		add(digits, zeros) // still hexadecimal, of the same length
		add(strings.ToUpper(digits), zeros)
		for _, core := range base64Cores(v) {
			add(core, strings.Repeat("x", len(core))) // still base64, of the same length
		}
	}
	for _, list := range k.by {
		slices.SortFunc(list, func(a, b spelling) int { // one secret may begin another
			return cmp.Or(cmp.Compare(len(b.text), len(a.text)), bytes.Compare(a.text, b.text))
		})
	}
	return k
}

// base64Cores are what base64 makes of a value wherever it stands in what is encoded: for each of
// the three places that it can have in a group, the characters that hold bits of the value alone.
func base64Cores(v string) []string {
	var out []string
	for before := range 3 {
		padded := append(make([]byte, before), v...)
		from, to := (8*before+5)/6, 8*len(padded)/6
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			out = append(out, enc.EncodeToString(padded)[from:to])
		}
	}
	return out
}

// next is the first place from i on where b has a spelling, the longest there; len(b) if there is none.
func (k *spellings) next(b []byte, i int) (int, spelling) {
	for ; i+1 < len(b); i++ {
		key := uint16(b[i])<<8 | uint16(b[i+1])
		if k.starts[key>>6]&(1<<(key&63)) == 0 {
			continue
		}
		for _, s := range k.by[key] {
			if bytes.HasPrefix(b[i:], s.text) {
				return i, s
			}
		}
	}
	return len(b), spelling{}
}

// hit is where in a text a secret stands, and what is put there.
type hit struct {
	from, to int
	instead  []byte
}

// hits are all places of secrets in b in order, the longest first where several begin.
func (k *spellings) hits(b []byte) []hit {
	var all []hit
	for l := (&layer{text: b}); l != nil; l = l.below() {
		for i, s := k.next(l.text, 0); i < len(l.text); i, s = k.next(l.text, i+len(s.text)) {
			all = append(all, hit{l.origin(i), l.origin(i + len(s.text)), s.instead})
		}
	}
	slices.SortStableFunc(all, func(a, b hit) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	return all
}

// replace is b, which stays as it is, without secrets.
func (k *spellings) replace(b []byte) []byte {
	var clean []byte
	done := 0
	for _, h := range k.hits(b) {
		if h.from < done { // two that overlap, in different layers
			done = max(done, h.to)
			continue
		}
		clean = append(append(clean, b[done:h.from]...), h.instead...)
		done = h.to
	}
	if clean == nil {
		return b
	}
	return append(clean, b[done:]...)
}

// begun reports whether b may end in the beginning of a secret.
func (k *spellings) begun(b []byte) bool {
	for l := (&layer{text: b}); l != nil; l = l.below() {
		if l.open() {
			return true
		}
		for i := max(0, len(l.text)-k.longest+1); i < len(l.text); i++ {
			if k.begins(l.text[i:]) {
				return true
			}
		}
	}
	return false
}

// begins reports whether a spelling begins with tail and goes on.
func (k *spellings) begins(tail []byte) bool {
	goesOn := func(s spelling) bool { return len(s.text) > len(tail) && bytes.HasPrefix(s.text, tail) }
	if len(tail) > 1 {
		return slices.ContainsFunc(k.by[uint16(tail[0])<<8|uint16(tail[1])], goesOn)
	}
	for key := range k.by {
		if byte(key>>8) == tail[0] {
			return true
		}
	}
	return false
}

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
