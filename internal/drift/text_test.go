package drift

import (
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

func TestDiffLines(t *testing.T) {
	edits := []Edit{{Op: Same, Text: "one two three four"}, {Op: Removed, Text: "old\x1b[31m\nword"}, {Op: Added, Text: "new"}, {Op: Same, Text: "a b c d e f"}, {Op: Added, Text: "end"}}
	for _, tc := range []struct {
		colour   bool
		was, now string
	}{
		{false, "one two three four old word a b c d e f", "one two three four new a b c d e f end"},
		{true, "one two three four \x1b[31mold word\x1b[0m a b c d e f", "one two three four \x1b[32mnew\x1b[0m a b c d e f \x1b[32mend\x1b[0m"},
	} {
		was, now := diffLines(edits, term.Style{Color: tc.colour})
		if was != tc.was || now != tc.now {
			t.Errorf("%q\n%q, want\n%q\n%q", was, now, tc.was, tc.now)
		}
	}
}
