package local

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/inverted"
)

// Words of the best texts that are looked for as well, after RM3. Taken from texts that
// words and meaning have put first, with a share of .85 for the query's own, they took
// average precision on CACM from .401 to .416 and nDCG@10 on Cranfield from .438 to
// .451, left SciFact at .735 and cost SQuAD a hundredth of its first places; with about
// .92 it was .412, .444, .737 and none. A share of .7 loses .008 on SciFact.
//
// Taken from what words alone put first they do harm: SciFact falls from .699 to .692
// and CACM's average precision from .377 to .361, and no mark of a query or its scores
// was found that tells when. So they are used with vectors only.
const (
	// FeedbackTexts is how many texts the words are taken from. With fewer there is
	// nothing to learn.
	FeedbackTexts = 10
	feedbackTerms = 20
	queryShare    = 0.9 // what the words of the query count; the rest is for the others
	// leastIDF is how much a word must say: one in a fourth of all texts or more says
	// nothing.
	leastIDF = 1.0986
)

// Sample is a text that is taken to answer a query, and how far: its score, above 0.
type Sample struct {
	Text  string
	Score float64
}

// Feedback adds to what a query looks for the words that stand out in texts which seem
// to answer it. The weights of the result add up to 1. idf tells how rare a word is;
// its errors are passed on. Without any words to add the query's come back, and a query
// that looks for nothing stays one.
func Feedback(query []inverted.Term, texts []Sample, idf func(stem string) (float64, error)) ([]inverted.Term, error) {
	total := 0.0
	for _, t := range query {
		total += t.Weight
	}
	if total <= 0 {
		return nil, nil
	}
	added, err := telling(texts, idf)
	if err != nil {
		return nil, err
	}
	share := 1.0
	if len(added) > 0 {
		share = queryShare
	}
	out := slices.Clone(query)
	for i := range out {
		out[i].Weight *= share / total
	}
	for _, t := range added {
		t.Weight *= 1 - share
		if i := slices.IndexFunc(out, func(o inverted.Term) bool { return o.Stem == t.Stem }); i >= 0 {
			out[i].Weight += t.Weight
		} else {
			out = append(out, t)
		}
	}
	return out, nil
}

// telling returns the words that texts have most of, best first. Their weights add up
// to 1.
func telling(texts []Sample, idf func(stem string) (float64, error)) ([]inverted.Term, error) {
	weights := map[string]float64{}
	for _, s := range texts {
		stems := contentStems(s.Text)
		for _, stem := range stems {
			weights[stem] += s.Score / float64(len(stems))
		}
	}
	list := make([]inverted.Term, 0, len(weights))
	for stem, w := range weights {
		list = append(list, inverted.Term{Stem: stem, Weight: w})
	}
	slices.SortFunc(list, func(a, b inverted.Term) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Stem, b.Stem))
	})
	var out []inverted.Term
	total := 0.0
	for _, t := range list {
		if len(out) == feedbackTerms {
			break
		}
		rare, err := idf(t.Stem)
		if err != nil {
			return nil, err
		}
		if rare >= leastIDF {
			out = append(out, t)
			total += t.Weight
		}
	}
	for i := range out {
		out[i].Weight /= total
	}
	return out, nil
}

// contentStems are the words of a text by which the index finds it, without stop words
// and numbers, in order.
func contentStems(text string) []string {
	var stems []string
	for _, token := range lexicon.Tokens(text) {
		if token.Stop || !strings.ContainsFunc(token.Text, unicode.IsLetter) {
			continue
		}
		for _, t := range inverted.Terms(token.Text) {
			stems = append(stems, t.Stem)
		}
	}
	return stems
}
