package locator

import (
	"strings"
	"unicode"
)

// InText finds the http and https addresses that a person wrote in a text, in
// canonical form, each once, in the order of the text. Punctuation around an
// address is not part of it: "(see https://example.org/a_(b))." holds
// https://example.org/a_(b). Addresses that Canonical refuses are left out.
func InText(s string) []string {
	var found []string
	seen := make(map[string]bool)
	for at := 0; at < len(s); {
		start, size := schemeAt(s, at)
		if start < 0 {
			break
		}
		end := start + size + addressEnd(s[start+size:])
		at = max(end, start+size)
		if start > 0 && strings.IndexByte(unreserved, s[start-1]) >= 0 {
			continue // the end of some other scheme
		}
		if loc, ok := Canonical(s[start:end]); ok && !seen[loc] {
			seen[loc] = true
			found = append(found, loc)
		}
	}
	return found
}

// schemeAt finds the next "http://" or "https://" in any case, and its length;
// -1 when there is none.
func schemeAt(s string, from int) (start, size int) {
	for i := from; i+len("http://") <= len(s); i++ {
		if s[i]|0x20 != 'h' {
			continue
		}
		for _, scheme := range [...]string{"http://", "https://"} {
			if i+len(scheme) <= len(s) && strings.EqualFold(s[i:i+len(scheme)], scheme) {
				return i, len(scheme)
			}
		}
	}
	return -1, 0
}

// closers maps what closes a bracket to what opens it.
var closers = map[rune]rune{')': '(', ']': '[', '}': '{'}

// addressEnd says where an address that starts a text ends: at white space, a quotation mark or the
// like, or a bracket that was opened before it, and before the punctuation that ends a sentence.
func addressEnd(s string) int {
	open := make(map[rune]int)
	end := len(s)
	for i, r := range s {
		if opener, ok := closers[r]; ok {
			if open[opener] == 0 {
				end = i
				break
			}
			open[opener]--
		}
		if unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("<>\"`\\|“”„‘’«»‹›。、，；：！？（）【】「」『』《》…", r) {
			end = i
			break
		}
		if r == '(' || r == '[' || r == '{' {
			open[r]++
		}
	}
	return len(strings.TrimRight(s[:end], ".,;:!?'*_([{"))
}
