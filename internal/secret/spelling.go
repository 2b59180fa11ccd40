package secret

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

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
