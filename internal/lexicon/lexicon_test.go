package lexicon

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kljensen/snowball/english"
	"pgregory.net/rapid"
)

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		"The 6,000 feet, 3.5 miles in the 1990s.": "The|6,000|feet|3.5|miles|in|the|1990s",
		"COVID-19 and covid-19 since pre-1990":    "COVID-19|and|covid-19|since|pre|1990",
		"Newton's law; the gardeners' tools":      "Newton|law|the|gardeners|tools",
		"Newton’s law isn’t old":                  "Newton|law|isn’t|old",
		"U.S. and U.K.'s AT&T, R&D":               "U.S.|and|U.K.|AT&T|R&D",
		"well-known 1990-2000 5-year":             "well|known|1990|2000|5|year",
		"C++ and C# and F-16":                     "C++|and|C#|and|F-16",
		"1,2 and 1,000,000 and 12,34":             "1|2|and|1,000,000|and|12|34",
		"naïve café O'Neill":                      "naïve|café|O'Neill",
		"東京 is big":                               "東|京|is|big",
		"e.g. this... or that":                    "e.g.|this|or|that",
		"":                                        "",
	} {
		var got []string
		for _, tok := range Tokens(text) {
			if text[tok.Start:tok.End] != tok.Text {
				t.Errorf("%q: span of %q is %q", text, tok.Text, text[tok.Start:tok.End])
			}
			got = append(got, tok.Text)
		}
		if d := cmp.Diff(want, strings.Join(got, "|")); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

func TestStem(t *testing.T) {
	for word, want := range map[string]string{
		"Gardens": "garden", "gardening": "garden", "Utah's": "utah", "U.S.": "us", "6,000": "6000", "1990s": "1990s",
		"COVID-19": "covid-19", "v2.37": "2.37", "V8": "8", "cafe\u0301s": "cafés", "": "", "x": "x", "東": "東",
	} {
		if got := Stem(word); got != want {
			t.Errorf("Stem(%q) = %q, want %q", word, got, want)
		}
	}
}

// TestStemConcurrently is for the race detector: stems are remembered between
// calls.
func TestStemConcurrently(t *testing.T) {
	words := strings.Fields("gardens gardening gardeners watered watering tomatoes ripened peppers")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				w := words[i%len(words)]
				if got, want := Stem(w), english.Stem(w, false); got != want {
					t.Errorf("Stem(%q) = %q, want %q", w, got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestTerms(t *testing.T) {
	got := Terms("What are the ideal crops for a garden in the US, and who asked us?")
	if d := cmp.Diff([]string{"ideal", "crop", "garden", "us", "ask"}, got); d != "" {
		t.Errorf("terms (-want +got):\n%s", d)
	}
}

func TestEstimateTokens(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "abcd": 1, "abcde": 2} {
		if got := EstimateTokens(text); got != want {
			t.Errorf("EstimateTokens(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestQuantities(t *testing.T) {
	type q struct {
		Value float64
		Unit  string
		Text  string
	}
	for text, want := range map[string][]q{
		"above 6,000 feet in 1990":                 {{6000, "foot", "6,000 feet"}, {1990, "year", "1990"}},
		"60 to 80 days":                            {{60, "day", "60"}, {80, "day", "80 days"}},
		"between 70 and 95 degrees Fahrenheit":     {{70, "fahrenheit", "70"}, {95, "fahrenheit", "95 degrees Fahrenheit"}},
		"5–10%":                                    {{5, "%", "5"}, {10, "%", "10%"}},
		"$3.5 million or US$5":                     {{3.5e6, "usd", "$3.5 million"}, {5, "usd", "US$5"}},
		"$5 to $10 million":                        {{5e6, "usd", "$5"}, {10e6, "usd", "$10 million"}},
		"a 100-foot tower":                         {{100, "foot", "100-foot"}},
		"two weeks, six thousand feet, one of two": {{2, "week", "two weeks"}, {6000, "foot", "six thousand feet"}},
		"twenty-five percent":                      {{25, "%", "twenty-five percent"}},
		"one to two weeks":                         {{1, "week", "one"}, {2, "week", "two weeks"}},
		"-5 °C and −3°F":                           {{-5, "celsius", "-5 °C"}, {-3, "fahrenheit", "−3°F"}},
		"in the 1990s, 5 years later":              {{1990, "decade", "1990s"}, {5, "years", "5 years"}},
		"7,000,000 square kilometres (2,700,000 sq mi)": {
			{7e6, "square kilometre", "7,000,000 square kilometres"}, {2.7e6, "square mile", "2,700,000 sq mi"}},
		"on March 5, 1990 and 7 May":     {{5, "date", "5"}, {1990, "year", "1990"}, {7, "date", "7"}},
		"on 2026-11-15 at 5:30 p.m.":     {{2026, "year", "2026-11-15"}, {5.5, "time", "5:30"}},
		"COVID-19, v1.2.3, 3D, x-5, #12": nil,
		"the 5th of 390 billion trees":   {{5, "ordinal", "5th"}, {390e9, "", "390 billion"}},
		"5 ft 6 in. tall, 7 in Utah":     {{5, "foot", "5 ft"}, {6, "inch", "6 in"}, {7, "", "7"}},
		"5\u00a0km and 5 % of it":        {{5, "kilometre", "5\u00a0km"}, {5, "%", "5 %"}},
		"10 per cent of 5 people":        {{10, "%", "10 per cent"}, {5, "person", "5 people"}},
		"1500 to 1800 metres":            {{1500, "metre", "1500"}, {1800, "metre", "1800 metres"}},
		"3 m. high, 20 GB, 5 km²":        {{3, "metre", "3 m"}, {20, "gigabyte", "20 GB"}, {5, "square kilometre", "5 km²"}},
	} {
		var got []q
		for _, x := range Quantities(text) {
			if text[x.Start:x.End] != x.Text {
				t.Errorf("%q: span of %q is %q", text, x.Text, text[x.Start:x.End])
			}
			got = append(got, q{x.Value, x.Unit, x.Text})
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"The capital of France is Paris. Paris is old.":       "France|Paris",
		"Tomatoes grow in Utah. Most gardeners like them.":    "Utah",
		"Salt Lake City lies near the University of Utah.":    "Salt Lake City|University of Utah",
		"NASA sent Apollo 11 to the Moon in July.":            "NASA|Apollo 11|Moon",
		"They played in Super Bowl 50.":                       "Super Bowl 50",
		"It is by J. R. R. Tolkien and Dr. Smith of St. Ives": "J. R. R. Tolkien|Dr. Smith of St. Ives",
		"The Amazon flows through Brazil on Monday.":          "Amazon|Brazil",
		"What does CRISPR-Cas9 do with mRNA and an iPhone?":   "CRISPR-Cas9|mRNA|iPhone",
		"nothing here": "",
	} {
		if d := cmp.Diff(want, strings.Join(Names(text), "|")); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

func TestNegated(t *testing.T) {
	for text, want := range map[string]bool{
		"Tomatoes do not ripen there.":       true,
		"Tomatoes don’t ripen there.":        true,
		"It can't.":                          true,
		"They cannot ripen without heat.":    true,
		"Tomatoes fail to ripen above that.": true,
		"They rarely ripen.":                 true,
		"No tomato ripens there.":            true,
		"Tomatoes ripen there.":              false,
		"Not only tomatoes ripen there.":     false,
		"No doubt they ripen.":               false,
		"Chanel No. 5 is a perfume.":         false,
		"The notable knot noted.":            false,
		"":                                   false,
	} {
		if got := Negated(text); got != want {
			t.Errorf("Negated(%q) = %v, want %v", text, got, want)
		}
	}
}

// TestAnyText holds every function to its spans on texts made to be hard.
func TestAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(document(), rapid.String()).Draw(t, "text")
		at := 0
		for _, tok := range Tokens(s) {
			if tok.Start < at || tok.End <= tok.Start || s[tok.Start:tok.End] != tok.Text {
				t.Fatalf("token %+v after %d in %q", tok, at, s)
			}
			at = tok.End
		}
		at = 0
		for _, q := range Quantities(s) {
			if q.Start < at || q.End <= q.Start || s[q.Start:q.End] != q.Text {
				t.Fatalf("quantity %+v after %d in %q", q, at, s)
			}
			at = q.End
		}
		for _, name := range Names(s) {
			if !strings.Contains(s, name) {
				t.Fatalf("name %q is not in %q", name, s)
			}
		}
		Negated(s)
	})
}

func TestSpelled(t *testing.T) {
	for text, want := range map[string][]float64{
		"twelve of twenty-one": {12, 21}, "fifteen hundred euros": {1500}, "three dozen": {36}, "the twenty-second": {20, 22}, "two million": {2e6}, "twice": {2}, "ten, six": {10, 6}, "m k": nil,
	} {
		var got []float64
		for _, n := range Spelled(text) {
			got = append(got, n.Value)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
