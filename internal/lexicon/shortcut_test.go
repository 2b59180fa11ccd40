package lexicon

import "testing"

// What is known at a glance of the beginning of a line and of a full stop is what the
// patterns say, for every short text of the characters that matter.
func TestShortcutsAgreeWithThePatterns(t *testing.T) {
	alphabet := []string{".", "!", "?", " ", "\n", "a", "i", "x", "B", "7", ")", "(", "-", "[", "]", ":", "*", "’", "…", "²"}
	var try func(text string, more int)
	try = func(text string, more int) {
		c := cutter{s: text}
		if text != "" && terminator(firstRune(text)) && c.alone(0) && stopMarks.FindString(text) != text[:1] {
			t.Fatalf("%q: more than one mark ends the sentence", text)
		}
		if at := markers.FindStringIndex(text[:min(len(text), 8)]); text != "" && (at == nil) != (marker(text) == 0) {
			t.Fatalf("%q: a marker of %d bytes, by the pattern %v", text, marker(text), at)
		}
		for _, next := range alphabet {
			if more > 0 {
				try(text+next, more-1)
			}
		}
	}
	try("", 4)
}
