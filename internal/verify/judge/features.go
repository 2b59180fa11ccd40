package judge

import (
	"math"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// table collects features in a fixed order.
type table struct {
	names  []string
	values []float64
}

func (t *table) add(name string, v float64) {
	t.names = append(t.names, name)
	t.values = append(t.values, v)
}

// value is that of a feature by name, 0 of one that there is not.
func (t *table) value(name string) float64 {
	if i := slices.Index(t.names, name); i >= 0 {
		return t.values[i]
	}
	return 0
}

func (t *table) flag(name string, yes bool) {
	v := 0.0
	if yes {
		v = 1
	}
	t.add(name, v)
}

// pair is a claim beside its evidence, with what several features need.
type pair struct {
	claim sentence
	words words
	parts []clause
	ev    evidence
	share []float64 // of the claim's words, held by each sentence
	best  []int     // sentences that together hold most, the first one most by itself
}

func newPair(claim string, excerpts []string) *pair {
	p := &pair{claim: read(clean(claim)), ev: gather(excerpts)}
	p.words = weigh(p.claim)
	p.parts = clauses(p.claim)
	p.share = make([]float64, len(p.ev.sentences))
	for i, s := range p.ev.sentences {
		p.share[i] = p.words.share(s.has)
	}
	p.best = p.greedy(3)
	return p
}

func (s sentence) has(stem string) float64 {
	if s.holds[stem] {
		return 1
	}
	return 0
}

// greedy picks n sentences, each the one that adds most to those before it.
func (p *pair) greedy(n int) []int {
	var picked []int
	held := map[string]bool{}
	for len(picked) < n {
		at, most := -1, 0.0
		for i, s := range p.ev.sentences {
			if p.share[i] <= most { // it cannot add more than it holds
				continue
			}
			got := 0.0
			for k, stem := range p.words.stems {
				if s.holds[stem] && !held[stem] {
					got += p.words.weight[k]
				}
			}
			if got /= max(p.words.sum, 1e-9); got > most {
				at, most = i, got
			}
		}
		if at < 0 {
			break
		}
		picked = append(picked, at)
		for stem := range p.ev.sentences[at].holds {
			held[stem] = true
		}
	}
	return picked
}

// held tells what any of the picked sentences hold.
func (p *pair) held(picked []int) func(string) float64 {
	return func(stem string) float64 {
		for _, i := range picked {
			if p.ev.sentences[i].holds[stem] {
				return 1
			}
		}
		return 0
	}
}

// lexical are the features that need no vectors.
func (p *pair) lexical() table {
	var t table
	p.coverage(&t)
	p.order(&t)
	p.named(&t)
	p.counted(&t)
	p.spoken(&t)
	p.shape(&t)
	return t
}

func plain(stems []string, held func(string) float64) float64 {
	if len(stems) == 0 {
		return 0
	}
	n := 0.0
	for _, s := range stems {
		n += held(s)
	}
	return n / float64(len(stems))
}

// coverage is how much of the claim's words stands where.
func (p *pair) coverage(t *table) {
	exact := func(stem string) float64 {
		if p.ev.all[stem] {
			return 1
		}
		return 0
	}
	t.add("words_all", plain(p.words.stems, exact))
	t.add("weighted_all", p.words.share(exact))
	t.add("roots_all", p.words.share(p.ev.has))
	t.add("weighted_1", p.words.share(p.held(p.best[:min(1, len(p.best))])))
	t.add("weighted_2", p.words.share(p.held(p.best[:min(2, len(p.best))])))
	t.add("weighted_3", p.words.share(p.held(p.best)))
	window := 0.0
	for i := range p.ev.sentences {
		near := []int{i}
		for k := i + 1; k < min(i+3, len(p.ev.sentences)); k++ {
			near = append(near, k)
		}
		window = max(window, p.words.share(p.held(near)))
	}
	t.add("weighted_window", window)
	t.add("spread", p.words.share(exact)-window)
	missing, heaviest := 0, 0.0
	for i, s := range p.words.stems {
		if p.ev.has(s) == 0 {
			missing++
			heaviest = max(heaviest, p.words.weight[i])
		}
	}
	t.add("missing", math.Log1p(float64(missing)))
	t.add("missing_heaviest", heaviest)
	// The weakest part of the claim: by clauses, each against its best sentence and
	// against everything; and by runs of four content words.
	worst, mean, worstAll := 1.0, 0.0, 1.0
	for _, part := range p.parts {
		top := 0.0
		for _, s := range p.ev.sentences {
			top = max(top, plain(part.words, s.has))
		}
		worst, mean = min(worst, top), mean+top/float64(len(p.parts))
		worstAll = min(worstAll, plain(part.words, exact))
	}
	t.add("clause_worst", worst)
	t.add("clause_mean", mean)
	t.add("clause_worst_all", worstAll)
	weakest := 1.0
	for i := 0; i+4 <= len(p.claim.words); i++ {
		weakest = min(weakest, plain(p.claim.words[i:i+4], exact))
	}
	t.add("run_worst", weakest)
	head := p.claim.words[:min(2, len(p.claim.words))]
	t.add("head", plain(head, exact))
}

// order is how much of the claim's wording stands in the evidence as it is.
func (p *pair) order(t *table) {
	grams := map[string]bool{}
	tight := map[string]bool{}
	for _, s := range p.ev.sentences {
		for i := range s.words {
			if i+1 < len(s.words) {
				grams[s.words[i]+" "+s.words[i+1]] = true
			}
		}
		for i := range s.tokens {
			if i+2 < len(s.tokens) {
				tight[s.tokens[i].Stem+" "+s.tokens[i+1].Stem+" "+s.tokens[i+2].Stem] = true
			}
		}
	}
	n, got := 0, 0
	for i := 0; i+1 < len(p.claim.words); i++ {
		n++
		if grams[p.claim.words[i]+" "+p.claim.words[i+1]] {
			got++
		}
	}
	t.add("pairs", ratio(got, n))
	n, got = 0, 0
	for i := 0; i+2 < len(p.claim.tokens); i++ {
		n++
		if tight[p.claim.tokens[i].Stem+" "+p.claim.tokens[i+1].Stem+" "+p.claim.tokens[i+2].Stem] {
			got++
		}
	}
	t.add("triples", ratio(got, n))
	run, sub := 0, 0.0
	for i, s := range p.ev.sentences {
		if p.share[i] < 0.1 {
			continue
		}
		r, l := common(p.claim.tokens, s.tokens)
		run, sub = max(run, r), max(sub, float64(l))
	}
	t.add("run", math.Log1p(float64(run)))
	t.add("run_share", ratio(run, len(p.claim.tokens)))
	t.add("in_order", sub/max(1, float64(len(p.claim.tokens))))
}

func ratio(got, n int) float64 {
	if n == 0 {
		return 0
	}
	return float64(got) / float64(n)
}

// common is the length of the longest run and of the longest subsequence of tokens
// that two sentences share.
func common(a, b []lexicon.Token) (run, sub int) {
	runs, subs := make([]int, len(b)+1), make([]int, len(b)+1)
	for _, x := range a {
		lastRun, lastSub := 0, 0
		for j, y := range b {
			wasRun, wasSub := runs[j+1], subs[j+1]
			runs[j+1] = 0
			if x.Stem == y.Stem {
				runs[j+1] = lastRun + 1
				subs[j+1] = max(subs[j+1], lastSub+1)
			}
			subs[j+1] = max(subs[j+1], subs[j])
			lastRun, lastSub = wasRun, wasSub
			run, sub = max(run, runs[j+1]), max(sub, subs[j+1])
		}
	}
	return run, sub
}

// named is what becomes of the claim's names.
func (p *pair) named(t *table) {
	names := lexicon.Names(p.claim.text)
	near := p.held(p.best)
	all, best, missing := 0.0, 0.0, 0
	for _, name := range names {
		var stems []string
		for _, tok := range lexicon.Tokens(name) {
			if !tok.Stop {
				stems = append(stems, tok.Stem)
			}
		}
		inAll := plain(stems, p.ev.has)
		all += inAll
		best += plain(stems, near)
		if inAll < 0.5 {
			missing++
		}
	}
	if len(names) == 0 {
		all, best = 1, 1
	} else {
		all, best = all/float64(len(names)), best/float64(len(names))
	}
	t.add("names_all", all)
	t.add("names_best", best)
	t.add("names_missing", math.Log1p(float64(missing)))
	t.add("names", math.Log1p(float64(len(names))))
}

// shape is what claim and evidence are like, whatever they say.
func (p *pair) shape(t *table) {
	t.add("claim_words", math.Log1p(float64(len(p.words.stems))))
	t.add("claim_clauses", math.Log1p(float64(len(p.parts))))
	t.add("evidence_chars", math.Log1p(float64(p.ev.chars)))
	t.add("evidence_sentences", math.Log1p(float64(len(p.ev.sentences))))
	first := ""
	if len(p.claim.tokens) > 0 {
		first = strings.ToLower(p.claim.tokens[0].Text)
	}
	t.add("excerpts", math.Log1p(float64(p.ev.excerpts)))
	t.flag("claim_points_back", pointers[first])
	place := 1.0
	if len(p.best) > 0 {
		place = float64(p.best[0]) / float64(len(p.ev.sentences))
	}
	t.add("best_place", place)
	density := 0.0
	if len(p.best) > 0 {
		s := p.ev.sentences[p.best[0]]
		density = p.share[p.best[0]] * p.words.sum / max(1, float64(len(s.words)))
	}
	t.add("best_density", density)
}
