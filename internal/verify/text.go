package verify

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// sentence is one sentence of a claim or of an excerpt.
type sentence struct {
	text   string
	tokens []lexicon.Token
	holds  map[string]bool // stems of all its words
	words  []string        // stems of those that say something, each once
	of     int             // the excerpt it is from
}

// judgeNoise is what stands in texts and says nothing: reference marks, addresses, tags.
var judgeNoise = regexp.MustCompile(`\[\d{1,4}(?:[,–-]\s?\d{1,4})*\]|https?://\S+|www\.\S+|</?[a-z]{1,10}/?>`)

// cleanText is a text without noise, on one line.
func cleanText(s string) string {
	return strings.Join(strings.Fields(judgeNoise.ReplaceAllString(s, " ")), " ")
}

func readSentence(s string) sentence {
	out := sentence{text: s, tokens: lexicon.Tokens(s), holds: map[string]bool{}}
	for _, t := range out.tokens {
		if !t.Stop && !out.holds[t.Stem] {
			out.words = append(out.words, t.Stem)
		}
		out.holds[t.Stem] = true
	}
	return out
}

// evidenced is a claim beside its excerpts.
type evidenced struct {
	claim     sentence
	words     []string // the claim's
	excerpts  []Excerpt
	sentences []sentence      // of all excerpts
	all       map[string]bool // stems of all excerpts and headings
	roots     map[string]bool // and their roots
	chars     int
	share     []float64 // of the claim's words, held by each sentence
	best      []int     // up to three sentences that together hold most, the first one most by itself
}

func newEvidenced(claim string, excerpts []Excerpt) *evidenced {
	p := &evidenced{claim: readSentence(cleanText(claim)), excerpts: excerpts, all: map[string]bool{}, roots: map[string]bool{}}
	p.words = p.claim.words
	hold := func(s sentence) {
		for w := range s.holds {
			p.all[w], p.roots[root(w)] = true, true
		}
	}
	for i, x := range excerpts {
		p.chars += len(x.Text)
		hold(readSentence(cleanText(x.Heading)))
		for _, span := range lexicon.Sentences(x.Text) {
			if s := readSentence(cleanText(x.Text[span.Start:span.End])); len(s.tokens) > 0 {
				s.of = i
				hold(s)
				p.sentences, p.share = append(p.sentences, s), append(p.share, heldShare(p.words, s.holds))
			}
		}
	}
	p.best = p.greedy(3)
	return p
}

// root is the first letters of a stem, which "direct" and "directorate" share; a number is
// its own.
func root(stem string) string {
	if stem[0] >= '0' && stem[0] <= '9' {
		return stem
	}
	return stem[:min(5, len(stem))]
}

func heldShare(words []string, held map[string]bool) float64 {
	n := 0
	for _, w := range words {
		if held[w] {
			n++
		}
	}
	return ratio(n, len(words))
}

// hasAll reports whether words has all of some stems.
func hasAll(words map[string]bool, stems []string) bool {
	return !slices.ContainsFunc(stems, func(w string) bool { return !words[w] })
}

func ratio(got, n int) float64 { return float64(got) / float64(max(1, n)) }

// greedy picks n sentences, each the one that adds most to those before it.
func (p *evidenced) greedy(n int) []int {
	var picked []int
	left := slices.Clone(p.words)
	for len(picked) < n {
		at, most := -1, 0.0
		for i, s := range p.sentences {
			if got := heldShare(left, s.holds); got > most {
				at, most = i, got
			}
		}
		if at < 0 {
			break
		}
		picked = append(picked, at)
		left = slices.DeleteFunc(left, func(w string) bool { return p.sentences[at].holds[w] })
	}
	return picked
}

// focusChars is how much of long excerpts is read: what the reader takes in at once.
const focusChars = 800

// focus are the sentences nearest to the claim.
func (p *evidenced) focus() []int {
	in, n := slices.Clone(p.best), 0
	for _, i := range in {
		n += len(p.sentences[i].text) + 1
	}
	add := func(i int) {
		if size := len(p.sentences[i].text) + 1; !slices.Contains(in, i) && n+size <= focusChars {
			in, n = append(in, i), n+size
		}
	}
	order := make([]int, len(p.sentences))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.share[b], p.share[a]) })
	for _, i := range order {
		add(i)
		if i > 0 && p.sentences[i-1].of == p.sentences[i].of {
			add(i - 1) // what it may point back to
		}
	}
	return in
}

// joined are some sentences in their order, each excerpt's under its heading if wanted.
func (p *evidenced) joined(some []int, headings bool) string {
	var out []string
	last := -1
	for _, i := range slices.Sorted(slices.Values(some)) {
		s := p.sentences[i]
		if h := cleanText(p.excerpts[s.of].Heading); headings && s.of != last && h != "" {
			out = append(out, strings.TrimRight(h, ".")+".")
		}
		last = s.of
		out = append(out, s.text)
	}
	return strings.Join(out, " ")
}

// verbatim reports that the claim's words follow each other in an excerpt as they do
// in the claim.
func (p *evidenced) verbatim() bool {
	want := " " + lexicon.Plain(p.claim.text) + " "
	return len(p.words) >= minWords && slices.ContainsFunc(p.excerpts, func(x Excerpt) bool {
		return strings.Contains(" "+lexicon.Plain(cleanText(x.Text))+" ", want)
	})
}
