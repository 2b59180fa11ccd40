package lexicon

import (
	"regexp"
	"strings"
)

// Names returns the proper names of s as written, in the order of their first
// appearance, each once. A name is one or more capitalised words with what joins
// them ("University of Utah", "J. R. R. Tolkien", "Super Bowl 50"), or a word
// with capitals inside it. A single capitalised word at the beginning of a
// sentence is a name only if it is written in capitals or has its capital
// elsewhere in s too. Months, weekdays and stop words are none.
func Names(s string) []string {
	var sentences []nameFinder
	inside := make(map[string]bool) // capitalised words that stand inside a sentence
	for _, sp := range Sentences(s) {
		n := nameFinder{s[sp.Start:sp.End], Tokens(s[sp.Start:sp.End])}
		sentences = append(sentences, n)
		for i, t := range n.tokens {
			inside[t.Text] = inside[t.Text] || i > 0 && t.Capital
		}
	}
	var names []string
	seen := make(map[string]bool)
	for _, n := range sentences {
		for i := 0; i < len(n.tokens); {
			end := n.name(i)
			if end == i {
				i++
				continue
			}
			name := n.s[n.tokens[i].Start:n.tokens[end-1].End]
			if sure := end-i > 1 || i > 0 || inside[name] || capitals.MatchString(name); sure && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
			i = end
		}
	}
	return names
}

// capitals are two capitals or digits in a word.
var capitals = regexp.MustCompile(`[\p{Lu}\p{Nd}].*[\p{Lu}\p{Nd}]`)

// nameFinder looks for names in the tokens of a sentence.
type nameFinder struct {
	s      string
	tokens []Token
}

// name returns the token after the name that begins at i, or i if none does.
func (n nameFinder) name(i int) int {
	if !n.part(i) {
		return i
	}
	end := i + 1
	for end < len(n.tokens) {
		next := end
		for next < len(n.tokens) && next-end < 2 && connectors[n.tokens[next].Text] && n.near(next) {
			next++
		}
		if next >= len(n.tokens) || !n.near(next) || !n.part(next) {
			break
		}
		end = next + 1
	}
	if end < len(n.tokens) && n.near(end) && n.ordinal(end) {
		end++
	}
	return end
}

func (n nameFinder) part(i int) bool {
	t := n.tokens[i]
	if t.Stop || t.Number || months[t.Text] || weekdays[t.Text] {
		return false
	}
	return t.Capital || mixedCase(t.Text)
}

// near reports whether nothing but a space, a hyphen or the dot of an initial or
// title stands between token i and the one before.
func (n nameFinder) near(i int) bool {
	before := n.tokens[i-1]
	switch n.s[before.End:n.tokens[i].Start] {
	case " ", "-", "–", "\u00a0", "\n", "", " & ":
		return true
	case ". ":
		return len(before.Text) == 1 || joining[before.Text] || joining[strings.ToLower(before.Text)] || before.Text == "St"
	}
	return false
}

// ordinal reports whether token i is a small number that belongs to the name
// before it: no noun follows that it might count.
func (n nameFinder) ordinal(i int) bool {
	t := n.tokens[i]
	if digits(t.Text) != len(t.Text) || len(t.Text) > 3 {
		return false
	}
	return i+1 == len(n.tokens) || n.tokens[i+1].Stop || n.s[t.End:n.tokens[i+1].Start] != " "
}

// Negated reports whether the sentence s denies something, by its words: not,
// never, no, without, unable, rarely, fails to and the like. "Not only", "no
// doubt" and "No. 5" deny nothing.
func Negated(s string) bool {
	tokens := Tokens(s)
	for i, t := range tokens {
		word, next := strings.ToLower(t.Text), strings.ToLower(WordAt(tokens, i+1))
		switch {
		case t.Contracted():
			return true
		case (word == "no" || word == "nos") && i+1 < len(tokens) && tokens[i+1].Number && strings.HasPrefix(s[t.End:], "."):
		case denials[word] && !harmless[word+"_"+next]:
			return true
		case refusals[t.Stem] && next == "to":
			return true
		}
	}
	return false
}

// Contracted reports a word that ends in n't, for not.
func (t Token) Contracted() bool {
	return strings.HasSuffix(strings.ReplaceAll(strings.ToLower(t.Text), "’", "'"), "n't")
}
