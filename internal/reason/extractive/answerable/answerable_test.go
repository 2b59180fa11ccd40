package answerable

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/question"
)

// before is a question before a sentence that stands alone.
func before(ask, said string) *Evidence {
	q := question.Read(ask, "", 2026)
	s := Sentence{Text: said, Tokens: lexicon.Tokens(said), Held: make([]float64, len(q.Terms))}
	e := &Evidence{Question: &q, Above: make([]float64, len(q.Terms)), Rarity: make([]float64, len(q.Terms)), Type: 1}
	for t, tm := range q.Terms {
		e.Rarity[t] = 1
		for _, k := range s.Tokens {
			s.Held[t] = max(s.Held[t], question.Alike(tm, k.Stem))
		}
	}
	e.Best, e.Paragraph = s, []Sentence{s}
	return e
}

// value is the feature of a name.
func value(t *testing.T, e *Evidence, name string) float64 {
	t.Helper()
	at := slices.Index(Names(len(e.Cosines) > 0), name)
	if at < 0 {
		t.Fatalf("no feature %q", name)
	}
	return e.Features()[at]
}

func TestFeatures(t *testing.T) {
	for _, c := range []struct {
		ask, said, name string
		want            float64
	}{
		{"Which school is becoming more common in Scotland?", "Single-sex schools are becoming less common in Scotland.", "opposite in the sentence", 1},
		{"Which school is becoming less common in Scotland?", "Single-sex schools are becoming less common in Scotland.", "opposite in the sentence", 0},
		{"What did Article 20 of the treaty require?", "The treaty required in Article 12 of the text that troops withdraw.", "a number in the place of another", 1},
		{"What did Article 12 of the treaty require?", "The treaty required in Article 12 of the text that troops withdraw.", "a number in the place of another", 0},
		{"How many weeks did the siege last?", "The siege lasted for six days.", "another of its kind in the sentence", 1},
		{"Which cells are not eliminated by the body?", "The body eliminates tumour cells.", "asks for what is not so", 1},
		{"Which cells are not eliminated by the body?", "The body eliminates tumour cells.", "only one is negated", 1},
		{"When did Galileo see the moons?", "Kepler saw the moons in 1611.", "names the window lacks", 1},
		{"What is the largest lake of Poland?", "Poland has a lake near Warsaw.", "superlatives the window lacks", 1},
		{"Who built the old mill on the river?", "The old mill on the river was built by Ann Bee.", "longest run of words in common", 6},
	} {
		if got := value(t, before(c.ask, c.said), c.name); got != c.want {
			t.Errorf("%q before %q: %s is %v, want %v", c.ask, c.said, c.name, got, c.want)
		}
	}
}

func TestCosinesAreTheLastFeatures(t *testing.T) {
	e := before("Who built the mill?", "The mill was built by Ann Bee.")
	if got, want := len(e.Features()), len(Names(false)); got != want {
		t.Errorf("%d features without vectors, want %d", got, want)
	}
	e.Cosines = []float64{0.5, 0.75}
	x := e.Features()
	if diff := cmp.Diff([]float64{0.5, 0.75, 0.25}, x[len(Names(false)):]); diff != "" || len(x) != len(Names(true)) {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is asked in the sentence's own words is likelier answered by it than what turns
// it round, with vectors and without.
func TestOddsPreferAnswers(t *testing.T) {
	const said = "The Allied terms required in Article 12 that Germany withdraw from areas that Russia had controlled in 1914."
	for _, cosines := range [][]float64{nil, {0.7, 0.3}} {
		last := 0.0
		for i, ask := range []string{
			"From which areas did Article 12 of the Allied terms require Germany to withdraw?",
			"Into which areas did Article 20 of the Allied terms never require Germany to advance?",
		} {
			e := before(ask, said)
			e.Cosines = cosines
			odds := e.Odds()
			if i > 0 && odds >= last {
				t.Errorf("cosines %v: odds of %.2f, and %.2f of what is not answered", cosines, last, odds)
			}
			last = odds
		}
	}
	near, far := before("Who built the mill?", "The mill was built by Ann Bee."), before("Who built the mill?", "The mill was built by Ann Bee.")
	near.Cosines, far.Cosines = []float64{0.9}, []float64{0.1}
	if near.Odds() <= far.Odds() {
		t.Errorf("odds %.2f of a near sentence, %.2f of a far one", near.Odds(), far.Odds())
	}
}

func TestParseRefuses(t *testing.T) {
	for _, bad := range []string{"", "{}", `{"words":{"line":{"features":[{"name":"x","scale":1}]},"trees":{"names":["x"]}}}`} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%q is taken for weights", bad)
		}
	}
	if _, err := Parse(committed); err != nil {
		t.Error(err)
	}
}

func TestWatch(t *testing.T) {
	e := before("Who?", "Ann.")
	Show(context.Background(), e) // nobody watches
	var got *Evidence
	Show(Watch(context.Background(), func(e *Evidence) { got = e }), e)
	if got != e {
		t.Error("the watcher saw nothing")
	}
}

func TestWords(t *testing.T) {
	stem := lexicon.Stem
	for _, c := range []struct {
		a, b               string
		opposite, siblings bool
	}{
		{"increase", "decrease", true, false}, {"stable", "unstable", true, false}, {"harm", "harmless", true, false},
		{"monday", "friday", false, true}, {"monday", "monday", false, false}, {"mill", "river", false, false},
	} {
		if Opposite(stem(c.a), stem(c.b)) != c.opposite || Siblings(stem(c.a), stem(c.b)) != c.siblings {
			t.Errorf("%s and %s: opposite %v, of a kind %v", c.a, c.b, !c.opposite, !c.siblings)
		}
	}
}
