package local

import (
	"errors"
	"math"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/inverted"
	"github.com/google/go-cmp/cmp"
)

// rarity is an idf by stem; others are rare.
type rarity map[string]float64

func (r rarity) idf(stem string) (float64, error) {
	if v, ok := r[stem]; ok {
		return v, nil
	}
	return 5, nil
}

func sample(text string, score float64) *found {
	return &found{hit: search.Hit{Snippet: text, Score: score}}
}

func TestFeedback(t *testing.T) {
	query := []inverted.Term{{Stem: "wing", Word: "wings", Weight: 3}, {Stem: "lift", Word: "lift", Weight: 1}}
	texts := []*found{
		sample("The flutter of wings, 1958.", 2),
		sample("Flutter in the wind and the flutter of flags.", 1),
	}
	got, err := Feedback(query, texts, rarity{"wind": 1}.idf)
	if err != nil {
		t.Fatal(err)
	}
	// The first text gives flutter and wing 1 each, the second of its four words flutter
	// ½, flag ¼ and wind ¼, which is too common.
	sum := 1 + .5 + 1 + .25
	add := (1 - queryShare) / sum
	want := []inverted.Term{
		{Stem: "wing", Word: "wings", Weight: queryShare*.75 + add},
		{Stem: "lift", Word: "lift", Weight: queryShare * .25},
		{Stem: "flutter", Weight: 1.5 * add},
		{Stem: "flag", Weight: .25 * add},
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
	if d := cmp.Diff(want, got, near); d != "" {
		t.Errorf("terms (-want +got):\n%s", d)
	}
	if query[0].Weight != 3 {
		t.Error("the query's own terms were changed")
	}
}

func TestFeedbackWithoutWords(t *testing.T) {
	query := []inverted.Term{{Stem: "a", Weight: 2}, {Stem: "b", Weight: 2}}
	got, err := Feedback(query, []*found{sample("12 of the 13", 1)}, rarity{}.idf)
	sameRanks(t, "error", err, nil)
	sameRanks(t, "nothing to add", got, []inverted.Term{{Stem: "a", Weight: .5}, {Stem: "b", Weight: .5}})
	got, err = Feedback(nil, []*found{sample("flutter", 1)}, rarity{}.idf)
	sameRanks(t, "error", err, nil)
	sameRanks(t, "no query", got, []inverted.Term(nil))
	broken := errors.New("broken")
	if _, err := Feedback(query, []*found{sample("flutter", 1)}, func(string) (float64, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the index", err)
	}
}

func TestFeedbackIsBounded(t *testing.T) {
	text := ""
	for a := 'a'; a <= 'z'; a++ {
		for b := 'a'; b <= 'z'; b++ {
			text += string([]rune{a, b, 'x', 'q'}) + " "
		}
	}
	got, err := Feedback([]inverted.Term{{Stem: "wing", Weight: 1}}, []*found{sample(text, 1)}, rarity{}.idf)
	sameRanks(t, "error", err, nil)
	sameRanks(t, "terms", len(got), 1+feedbackTerms)
}
