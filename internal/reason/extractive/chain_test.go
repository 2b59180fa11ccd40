package extractive

import (
	"strings"
	"testing"
)

// A question that no document answers alone is answered from two: the sentence that
// answers comes first, and the one that gives the name that leads there second.
func TestChain(t *testing.T) {
	docs := map[string]string{
		"film.md":  "---\ntitle: Harbour Lights\n---\nHarbour Lights is a drama of 1988. It was directed by Mara Quill and shown in Trieste.",
		"quill.md": "---\ntitle: Mara Quill\n---\nMara Quill is a painter and director. She is married to the composer Joris Vane and lives on a farm.",
		"other.md": "---\ntitle: Lamp Street\n---\nLamp Street is a drama of 1991. Its director, Ann Tarry, has no spouse.",
	}
	for _, c := range []struct {
		question string
		want     []string // words of the claims, in order
	}{
		{"Who is the spouse of the director of Harbour Lights?", []string{"Joris Vane", "directed by Mara Quill"}},
		{"Who is the spouse of Mara Quill?", []string{"Joris Vane"}},
		{"Who directed Harbour Lights?", []string{"directed by Mara Quill"}},
	} {
		got := texts(writeOf(t, stateOf(c.question, set(docs), balanced)))
		ok := len(got) == len(c.want)
		for i := range min(len(got), len(c.want)) {
			ok = ok && strings.Contains(got[i], c.want[i])
		}
		if !ok {
			t.Errorf("%q is answered %q, want %q", c.question, got, c.want)
		}
	}
}
