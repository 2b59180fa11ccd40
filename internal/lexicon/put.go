package lexicon

import (
	"strings"
)

// What a word costs that neither text tells, within what is described.
const untold = -0.03

// nounReach is how many words before a name its noun may stand: "the town in which she".
const nounReach = 6

// PutName asks on with a name in the place of the words that describe it: "When was the
// company founded that owns Novair?" becomes "When was Rank founded?". Tells is how much
// of the question hangs on a stem that the text with the name has and the next lacks,
// less than 0 the other way round. It returns the words, and the question without them;
// nothing where no words describe the name.
func PutName(text, name string, tells func(stem string) float64) (described, asked string) {
	toks := Tokens(text)
	from, to, best := 0, -1, 0.0
	for i, tok := range toks {
		if !isArticle(tok) && (tok.Stop || tok.Text == strings.ToLower(tok.Text)) {
			continue // what is described begins with an article or a name
		}
		sum := 0.0
		for j := i; j < len(toks); j++ {
			v := tells(toks[j].Stem)
			if v == 0 {
				v = untold
			}
			if sum += v; sum > best && v > 0 {
				from, to, best = i, j, sum
			}
		}
	}
	if to < 0 {
		return "", ""
	}
	from, to = widen(text, toks, from, to)
	start, end := toks[from].Start, toks[to].End
	return text[start:end], text[:start] + name + text[end:]
}

func isArticle(t Token) bool { return articles[strings.ToLower(t.Text)] }

// widen takes in the noun that a description belongs to, and the end of its clause.
func widen(text string, toks []Token, from, to int) (int, int) {
	low := func(i int) string { return strings.ToLower(toks[i].Text) }
	if from > 0 && !isArticle(toks[from]) && isArticle(toks[from-1]) {
		from--
	}
	clause := isArticle(toks[from]) && from < to && !toks[from+1].Capital // the noun is there
	joined := false
	for k := from - 1; !clause && k > 0 && k >= from-nounReach; k-- {
		if n := from - k - 1; isArticle(toks[k]) {
			if clause = joined && n > 1 || !joined && (n == 1 || n == 2) && !toks[from-1].Stop; clause {
				from = k
			}
			break
		}
		joined = joined || joints[low(k)]
	}
	if owns := strings.HasPrefix(text[toks[to].End:], "'s ") || strings.HasPrefix(text[toks[to].End:], "’s "); owns {
		for to+1 < len(toks) && (!toks[to+1].Stop || low(to+1) == "of") {
			to++
		}
	} else if clause {
		for to+1 < len(toks) && !isArticle(toks[to+1]) && (toks[to+1].Stop || clauseEnds[low(to+1)]) {
			to++
		}
	}
	return from, to
}
