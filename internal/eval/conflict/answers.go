package conflict

import (
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// conflict reports whether documents i and j are labelled as saying what cannot both
// hold of the first thing of the question's name.
func (r row) conflict(i, j int) bool {
	a, b := r.Documents[i], r.Documents[j]
	if b.Type == "misinfo" && a.Type != "misinfo" {
		a, b = b, a
	}
	if a.Type != "misinfo" || sameWords(a.Answer, b.Answer) {
		return false
	}
	return b.Type == "misinfo" || b.Type == "correct" && sameWords(b.Answer, r.Gold[0])
}

// hit reports whether a contradiction is a true one: one side gives the right answer
// and the other a wrong one, or both give different wrong ones, in the excerpt and in
// the value.
func (r row) hit(c marchwarden.Contradiction) bool {
	for _, x := range r.answers(c.A) {
		for _, y := range r.answers(c.B) {
			if !sameWords(x, y) {
				return true
			}
		}
	}
	return false
}

// answers are those of the first thing that a side gives. A wrong answer may be the
// right one of another thing: in that thing's documents it does not count.
func (r row) answers(s marchwarden.Side) []string {
	i, ok := number(s.Locator)
	if !ok || i < 0 || i >= len(r.Documents) {
		return nil
	}
	d := r.Documents[i]
	var out []string
	for k, w := range append([]string{r.Gold[0]}, r.Wrong...) {
		if (holdsWords(s.RawExcerpt, w) && touches(s.Value, w) || partOf(s.Value, w)) && (k == 0 || d.Type != "correct" || !sameWords(d.Answer, w)) {
			out = append(out, w)
		}
	}
	return out
}

func stemsOf(s string) []string {
	var out []string
	for _, t := range lexicon.Tokens(s) {
		out = append(out, t.Stem)
	}
	return out
}

func sameWords(a, b string) bool { return slices.Equal(stemsOf(a), stemsOf(b)) }

// holdsWords reports whether the words of an answer follow each other in a text.
func holdsWords(text, answer string) bool {
	return strings.Contains(" "+strings.Join(stemsOf(text), " ")+" ", " "+strings.Join(stemsOf(answer), " ")+" ")
}

// touches reports whether a value has a word of an answer.
func touches(value, answer string) bool {
	words := stemsOf(answer)
	return slices.ContainsFunc(lexicon.Tokens(value), func(t lexicon.Token) bool { return !t.Stop && slices.Contains(words, t.Stem) })
}

// partOf reports whether a value has words of an answer only: a surname, or the year
// of a date.
func partOf(value, answer string) bool {
	words, n := stemsOf(answer), 0
	for _, t := range lexicon.Tokens(value) {
		if !t.Stop && !slices.Contains(words, t.Stem) {
			return false
		}
		if !t.Stop {
			n++
		}
	}
	return n > 0
}
