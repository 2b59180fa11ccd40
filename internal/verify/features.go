package verify

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
)

const pairsAt = 4 // the place of "pairs"

// wordNames and readerNames are those of the features. Others were tried, vectors
// among them, and told no more.
var (
	wordNames = []string{"words", "window", "best", "density", "pairs", "triples", "missing", "numbers_missing", "names_missing",
		"flips", "evidence_chars", "evidence_sentences", "claim_words"}
	readerNames = []string{"entailed", "contradicted", "entailed_most", "entailed_first"}
)

// FeatureNames are those of the features, with a reader or without.
func FeatureNames(withReader bool) []string {
	if withReader {
		return slices.Concat(wordNames, readerNames)
	}
	return wordNames
}

// lexical are the features by words, in the order of wordNames.
func (p *evidenced) lexical(f findings) []float64 {
	window, best, density := 0.0, 0.0, 0.0
	for i := range p.sentences {
		near := map[string]bool{}
		for _, s := range p.sentences[i:min(i+3, len(p.sentences))] {
			for w := range s.holds {
				near[w] = true
			}
		}
		window = max(window, heldShare(p.words, near))
	}
	if len(p.best) > 0 {
		best = p.share[p.best[0]]
		density = best * float64(len(p.words)) / float64(max(1, len(p.sentences[p.best[0]].words)))
	}
	count := func(list []string) float64 { return math.Log1p(float64(len(list))) }
	return []float64{
		heldShare(p.words, p.all), window, best, density, p.grams(2), p.grams(3),
		count(f.missing), count(f.numbers), count(f.names), count(f.flips),
		math.Log1p(float64(p.chars)), math.Log1p(float64(len(p.sentences))), count(p.words),
	}
}

// grams is the share of the claim's runs of n words that a sentence has, too.
func (p *evidenced) grams(n int) float64 {
	runs := func(tokens []lexicon.Token, each func(string)) {
		for i := 0; i+n <= len(tokens); i++ {
			key := ""
			for _, t := range tokens[i : i+n] {
				key += t.Stem + " "
			}
			each(key)
		}
	}
	held := map[string]bool{}
	for _, s := range p.sentences {
		runs(s.tokens, func(k string) { held[k] = true })
	}
	all, got := 0, 0
	runs(p.claim.tokens, func(k string) {
		if all++; held[k] {
			got++
		}
	})
	return ratio(got, all)
}

// pairs are what a reader is asked about a claim: all that is near to it, under its headings
// and without them, the few sentences that hold its words, and the nearest of them, each
// once. What a small model says of one wording is chance in part; of several, less.
func (p *evidenced) pairs() []reader.Pair {
	near := p.focus()
	bare := p.joined(near, false)
	var out []reader.Pair
	for _, text := range []string{p.joined(near, true), bare, "According to the text, " + bare, p.joined(p.best, true), p.joined(p.best[:min(1, len(p.best))], true)} {
		if one := (reader.Pair{Evidence: text, Claim: p.claim.text}); !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

//go:embed weights.json
var weightsJSON []byte

// Weights are what was fitted: once for words alone, once with a reader.
type Weights struct {
	Made    string       `json:"made"`    // the day
	Command string       `json:"command"` // what made them
	Data    string       `json:"data"`    // from what
	ReadBy  string       `json:"read_by"` // the reader
	Words   WeightsModel `json:"words"`
	Reader  WeightsModel `json:"reader"`
}

// WeightsModel is that of one set of features.
type WeightsModel struct {
	Support *stat.Trees `json:"support"`
	Cuts    Cuts        `json:"cuts"`
}

// Cuts are where a probability becomes a verdict: from Supported on, if the reader finds
// the claim Entailed, and from Contradicted on. They were read off predictions for claims
// that the model had not seen.
type Cuts struct {
	Entailed     float64 `json:"entailed"`
	Supported    float64 `json:"supported"`
	Contradicted float64 `json:"contradicted"`
}

// shipped are the weights in the binary, which are part of the program: that they can be
// read is tested.
var shipped = sync.OnceValue(func() *Weights {
	w, err := ParseWeights(weightsJSON)
	if err != nil {
		panic(err)
	}
	return w
})

// ParseWeights reads weights and refuses those that were fitted on other features.
func ParseWeights(b []byte) (*Weights, error) {
	var w Weights
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, fmt.Errorf("read weights of the judge: %w", err)
	}
	for name, m := range map[string]WeightsModel{"words": w.Words, "reader": w.Reader} {
		if m.Support == nil || !slices.Equal(m.Support.Names, FeatureNames(name == "reader")) {
			return nil, fmt.Errorf("read weights of the judge: %s: they were not fitted on its features", name)
		}
	}
	return &w, nil
}
