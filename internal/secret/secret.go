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
	"slices"
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
