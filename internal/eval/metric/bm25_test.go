package metric

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRank(t *testing.T) {
	ix := NewBM25([]string{"tin tin tin tin", "copper kettle", "copper copper pan lid", "iron", "", "copper kettle"}, strings.Fields)
	for query, want := range map[string][]int{
		"kettle":                {1, 5},       // equal ones in their order
		"copper":                {2, 1, 5},    // more often, though in a longer text
		"copper kettle":         {1, 5, 2},    // a rare word says more
		"kettle kettle tin":     {0, 1, 5},    // one word counts once
		"gold":                  nil,          // nothing without a word of it
		"":                      nil,          //
		"iron tin copper":       {0, 3, 2, 1}, // at most so many
		"copper kettle pan lid": {2, 1, 5},
	} {
		if diff := cmp.Diff(want, ix.Rank(query, 4)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
	if got := ix.Rank("copper", -1); len(got) != 0 {
		t.Errorf("none were asked for: %v", got)
	}
	if got := NewBM25(nil, strings.Fields).Rank("copper", 3); len(got) != 0 {
		t.Errorf("there is nothing: %v", got)
	}
}

// The formula by hand: two texts, one with the word twice among four.
func TestFormula(t *testing.T) {
	ix := NewBM25([]string{"a a b c", "d e"}, strings.Fields)
	idf := math.Log(1 + (2-1+0.5)/(1+0.5))
	want := idf * 2 * 2.2 / (2 + 1.2*(0.25+0.75*4/3))
	if got := ix.scores("a")[0]; math.Abs(got-want) > 1e-12 {
		t.Errorf("score %v, want %v", got, want)
	}
}
