package evidence

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// What PackFor weighs, found by TestThrift; the shares change little around
// these values.
const (
	// nearbyWeight is the part of a passage's score that the next one gets, and
	// nearbyReach how far that goes on.
	nearbyWeight = 0.6
	nearbyReach  = 3
	// nameWeight is what the names found in the best passages count beside the
	// queries; they are taken from namePassages passages, nameTerms of them.
	nameWeight   = 0.5
	namePassages = 5
	nameTerms    = 20
	// sourceShare is the part of the allowance that is spent on hearing as many
	// sources as possible.
	sourceShare = 0.25
	// openingScore is for the beginning of a source that holds no word asked for.
	openingScore = 1e-6
)

// Price is what showing a passage costs, in model tokens. first says that it is
// the first one of its source, whose name is shown with it.
type Price func(p Passage, first bool) int

// PackFor chooses what a model is shown of a set: the passages that serve the
// queries best within an allowance of model tokens, in the order of the sources
// and their texts. A query is stems, as lexicon.Terms gives them; several may be
// parts of one question.
//
//   - The passages cost no more than tokens together, by the price given.
//   - The best passage of each query comes first, as far as they fit.
//   - A passage gains by those around it under the same heading, so that what
//     goes on from a hit comes along even if it holds no word of the queries.
//   - It gains by names that the best passages bring up: the second step of a
//     question is often about a person whom only the first step names.
//   - The best passage of each source comes next, while these take no more than a
//     quarter of the allowance, so that one long source does not silence others.
//     A source without any word of the queries is heard by its beginning, last.
//   - Headings are left out, unless a source has nothing else; so are passages
//     whose every sentence is chosen already, in whatever source it stands.
//
// Scores say in which order passages were preferred. The same set and queries
// give the same passages; the set is not changed.
func PackFor(set *Set, queries [][]string, tokens int, price Price) []Scored {
	firsts, ranked := set.preferred(queries)
	var leaders []Scored
	heard := map[int]bool{}
	for _, p := range ranked {
		if !heard[p.Source] {
			heard[p.Source] = true
			leaders = append(leaders, p)
		}
	}
	c := choice{price: price, taken: map[ID]bool{}, heard: map[int]bool{}, shown: map[string]bool{}}
	tokens = c.take(firsts, tokens)
	quarter := int(sourceShare * float64(tokens))
	tokens += c.take(leaders, quarter) - quarter
	c.take(ranked, tokens)
	slices.SortFunc(c.packed, func(a, b Scored) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Index, b.Index))
	})
	return c.packed
}

// choice is the passages chosen so far.
type choice struct {
	price  Price
	packed []Scored
	taken  map[ID]bool
	heard  map[int]bool    // sources with a passage among them
	shown  map[string]bool // keys of their sentences
}

// take adds passages, best first, while they fit into an allowance and say
// something new. It returns what is left of the allowance.
func (c *choice) take(ranked []Scored, tokens int) int {
	for _, p := range ranked {
		cost := c.price(p.Passage, !c.heard[p.Source])
		if cost > tokens || c.taken[p.ID] || c.repeats(p) {
			continue
		}
		tokens -= cost
		c.taken[p.ID], c.heard[p.Source] = true, true
		c.packed = append(c.packed, p)
	}
	return tokens
}

// repeats reports whether all sentences of a passage were shown before, and
// notes them if not.
func (c *choice) repeats(p Scored) bool {
	fresh := false
	for _, s := range p.Sentences {
		k := strings.ToLower(key(p.Text[s.Start-p.Span.Start : s.End-p.Span.Start]))
		fresh = fresh || !c.shown[k]
		c.shown[k] = true
	}
	return !fresh
}

// preferred ranks the passages that may be shown, best first, and gives the best
// one for each query.
func (s *Set) preferred(queries [][]string) (firsts, ranked []Scored) {
	x := &s.index
	shown := s.showable()
	scores := make([]float64, len(x.passages))
	var tops []int
	for _, query := range queries {
		own := levelled(x.scores(query))
		top := -1
		for at, score := range own {
			scores[at] = max(scores[at], score)
			if shown[at] && score > 0 && (top < 0 || score > own[top]) {
				top = at
			}
		}
		if top >= 0 {
			tops = append(tops, top)
		}
	}
	for at, score := range levelled(x.scores(x.names(scores, queries))) {
		scores[at] += nameWeight * score
	}
	scores = x.spread(scores)
	found := make([]bool, len(s.sources)+1)
	for at, p := range x.passages {
		found[p.Source] = found[p.Source] || scores[at] > 0
	}
	for at, p := range x.passages {
		if !found[p.Source] {
			scores[at] = openingScore / float64(p.Index)
		}
	}
	for _, at := range best(scores, len(scores)) {
		if shown[at] {
			ranked = append(ranked, Scored{*x.passages[at], scores[at]})
		}
	}
	for _, top := range tops {
		firsts = append(firsts, Scored{*x.passages[top], scores[top]})
	}
	return firsts, ranked
}

// showable says of every passage whether it states something: it is no heading,
// or its source has nothing but headings.
func (s *Set) showable() []bool {
	states := make([]bool, len(s.sources)+1)
	for _, p := range s.index.passages {
		states[p.Source] = states[p.Source] || !p.IsHeading
	}
	shown := make([]bool, len(s.index.passages))
	for at, p := range s.index.passages {
		shown[at] = !p.IsHeading || !states[p.Source]
	}
	return shown
}

func levelled(scores []float64) []float64 {
	best := 0.0
	for _, s := range scores {
		best = max(best, s)
	}
	for i := range scores {
		scores[i] /= cmp.Or(best, 1)
	}
	return scores
}

// names returns the words with a capital that the best passages bring up beyond
// the queries, those that say most.
func (x *index) names(scores []float64, queries [][]string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	weights := map[string]float64{}
	for _, query := range queries {
		for _, term := range query {
			weights[term] = math.Inf(-1) // stays so, whatever is added
		}
	}
	var terms []string
	for _, at := range best(scores, namePassages) {
		seen := map[string]bool{}
		for _, token := range lexicon.Tokens(x.passages[at].Text + " " + x.passages[at].Heading) {
			if token.Stop || !token.Capital || seen[token.Stem] {
				continue
			}
			seen[token.Stem] = true
			if weights[token.Stem] == 0 {
				terms = append(terms, token.Stem)
			}
			weights[token.Stem] += scores[at] * x.idf(token.Stem)
		}
	}
	slices.SortStableFunc(terms, func(a, b string) int { return cmp.Compare(weights[b], weights[a]) })
	return terms[:min(len(terms), nameTerms)]
}

// best returns where the n highest scores above zero are, the highest first and
// the earliest of equals.
func best(scores []float64, n int) []int {
	var order []int
	for at, score := range scores {
		if score > 0 {
			order = append(order, at)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), a-b) })
	return order[:min(len(order), n)]
}

// spread gives every passage a part of the best score around it, the less the
// farther off, as far as no heading and no end of the document lies between.
func (x *index) spread(scores []float64) []float64 {
	out := slices.Clone(scores)
	for at, p := range x.passages {
		gain := 0.0
		for _, step := range []int{-1, 1} {
			weight := nearbyWeight
			for near := at + step; near != at+step*(nearbyReach+1); near += step {
				if p.IsHeading || near < 0 || near >= len(x.passages) || x.passages[near].Source != p.Source || x.passages[near].IsHeading {
					break
				}
				gain = max(gain, weight*scores[near])
				weight *= nearbyWeight
			}
		}
		out[at] += gain
	}
	return out
}
