package locator

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// InText finds the http and https addresses in a text, in canonical form, each once, in order, without
// the punctuation around them: "(see https://example.org/a_(b))." holds https://example.org/a_(b).
func InText(s string) []string {
	var found []string
	for at := 0; ; {
		next := scheme.FindStringIndex(s[at:])
		if next == nil {
			return found
		}
		start, body := at+next[0], at+next[1]
		at = body + addressEnd(s[body:])
		if start > 0 && strings.IndexByte(unreserved, s[start-1]) >= 0 {
			continue // the end of some other scheme
		}
		if loc, ok := Canonical(s[start:at]); ok && !slices.Contains(found, loc) {
			found = append(found, loc)
		}
	}
}

var scheme = regexp.MustCompile(`(?i)https?://`)

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
