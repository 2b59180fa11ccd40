package lexicon

import (
	"strings"
	"testing"
)

func TestPut(t *testing.T) {
	for _, c := range []struct {
		question, first, next string // words that the first text has, and those that the next has
		name                  string
		described, asked      string
	}{
		{"Who is the spouse of the director of Jump for Glory?", "director Jump Glory", "", "Raoul Walsh", "the director of Jump for Glory", "Who is the spouse of Raoul Walsh?"},
		{"What year did the company Novair International Airways is part of dissolve?", "Novair International Airways", "", "Rank", "the company Novair International Airways is part of", "What year did Rank dissolve?"},
		{"Who was president when the area where Intrepid Wind Farm is located became a state?", "Intrepid Wind Farm located", "president became state", "Iowa", "the area where Intrepid Wind Farm is located", "Who was president when Iowa became a state?"},
		{"What is the most popular hotel in Gisvi's city of birth?", "Gisvi", "hotel", "Windhoek", "Gisvi's city of birth", "What is the most popular hotel in Windhoek?"},
		{"Which hotel is the oldest?", "", "hotel oldest", "Ritz", "", ""},
		{"", "", "", "Ritz", "", ""},
	} {
		tells := map[string]float64{}
		for _, s := range Terms(c.first) {
			tells[s] = 0.2
		}
		for _, s := range Terms(c.next) {
			tells[s] = -0.2
		}
		described, asked := PutName(c.question, c.name, func(stem string) float64 { return tells[stem] })
		if described != c.described || asked != c.asked {
			t.Errorf("%q:\n got %q, %q\nwant %q, %q", c.question, described, asked, c.described, c.asked)
		}
		if asked != "" && !strings.Contains(asked, c.name) {
			t.Errorf("%q lacks the name", asked)
		}
	}
}
