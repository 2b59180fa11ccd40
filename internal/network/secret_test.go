package network_test

import (
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// secret is a canary: two words that stand nowhere else in the world. They look
// like names, so that whatever follows names follows them.
type secret struct{ first, second string }

var syllables = []string{"quor", "zim", "vel", "trab", "dax", "fesk", "lorn", "vip", "tov", "grun", "pelk", "rast", "wug", "yim", "chod", "blik"}

// newSecrets makes n secrets that share no word.
func newSecrets(d *rand.Rand, n int) []secret {
	seen := map[string]bool{}
	word := func() string {
		for {
			w := ""
			for range 3 {
				w += syllables[d.IntN(len(syllables))]
			}
			if core := w[:coreLength]; !seen[core] {
				seen[core] = true
				return strings.ToUpper(w[:1]) + w[1:]
			}
		}
	}
	var out []secret
	for range n {
		out = append(out, secret{word(), word()})
	}
	return out
}

func (s secret) name() string { return s.first + " " + s.second }

// disguises are the forms in which a secret stands in a source: whatever stands
// there in such a form may try to leave as it stands.
func (s secret) disguises() []string {
	whole := s.name()
	return []string{whole, s.first + "-" + s.second, s.first + "." + s.second, strings.ToLower(s.first + "_" + s.second), s.first + s.second, strings.ToUpper(whole),
		url.QueryEscape(whole), base64.StdEncoding.EncodeToString([]byte(whole)), base64.RawURLEncoding.EncodeToString([]byte(s.second)), hex.EncodeToString([]byte(whole))}
}

// identifier is the secret as the name of a column, a table or a file.
func (s secret) identifier() string { return strings.ToLower(s.first + "_" + s.second) }

// coreLength is how much of a word is enough to know it by: what is cut off or
// inflected is found all the same.
const coreLength = 7

// cores are what each word is known by, in lower case.
func (s secret) cores() []string {
	return []string{strings.ToLower(s.first[:coreLength]), strings.ToLower(s.second[:coreLength])}
}

// foundIn is the form in which a text tells the secret, or "". All is compared in
// lower case, decoded of percent signs, and as letters and digits alone, so that
// spaces, dots and hyphens hide nothing.
func (s secret) foundIn(text string) string {
	var views []string
	for range 3 {
		low := strings.ToLower(text)
		views = append(views, low, squeezed(low))
		decoded, err := url.QueryUnescape(text)
		if err != nil || decoded == text {
			break
		}
		text = decoded
	}
	for _, form := range s.traces() {
		if slices.ContainsFunc(views, func(v string) bool { return strings.Contains(v, form) }) {
			return form
		}
	}
	return ""
}

// traces are the texts in lower case by which a leak is known.
func (s secret) traces() []string {
	out := s.cores()
	for _, w := range []string{s.first, s.second} {
		w = w[:coreLength]
		out = append(out, reversed(strings.ToLower(w)))
		for _, cased := range []string{w, strings.ToLower(w), strings.ToUpper(w)} {
			out = append(out, hex.EncodeToString([]byte(cased)))
			for shift := range 3 {
				out = append(out, strings.ToLower(inBase64(cased, shift)))
			}
		}
	}
	return out
}

// inBase64 is what is the same in every base64 text that holds a word shift bytes
// after the beginning of a group.
func inBase64(word string, shift int) string {
	coded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + word))
	return coded[(shift*8+5)/6 : (shift+len(word))*8/6]
}

// squeezed is the letters and digits of a text.
func squeezed(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}
