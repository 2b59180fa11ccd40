package judge

import (
	"regexp"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// sentence is one sentence as the features see it.
type sentence struct {
	text   string
	tokens []lexicon.Token
	words  []string        // stems of its content words, in order
	holds  map[string]bool // the same, and the stems of everything else
}

// noise is what stands in texts and says nothing: reference marks, addresses, tags.
var noise = regexp.MustCompile(`\[\d{1,4}(?:[,–-]\s?\d{1,4})*\]|https?://\S+|www\.\S+|</?[a-z]{1,10}/?>`)

// clean is a text without noise, on one line.
func clean(s string) string {
	return strings.Join(strings.Fields(noise.ReplaceAllString(s, " ")), " ")
}

func read(s string) sentence {
	out := sentence{text: s, tokens: lexicon.Tokens(s), holds: map[string]bool{}}
	for _, t := range out.tokens {
		out.holds[t.Stem] = true
		if !t.Stop {
			out.words = append(out.words, t.Stem)
		}
	}
	return out
}

// words are the content words of a claim, each once, with what they weigh.
type words struct {
	stems  []string
	weight []float64
	sum    float64
}

// What a word weighs that may be a name, and a number; any other weighs one.
const heavy = 1.5

// weigh gives every content word of a claim its weight. How rare words are in general
// was tried as a weight and told no more than this.
func weigh(c sentence) words {
	var w words
	for i, t := range c.tokens {
		if t.Stop || slices.Contains(w.stems, t.Stem) {
			continue
		}
		x := 1.0
		if t.Number || t.Capital && i > 0 {
			x = heavy
		}
		w.stems = append(w.stems, t.Stem)
		w.weight = append(w.weight, x)
		w.sum += x
	}
	return w
}

// share is the weight of the words that are held, of all.
func (w words) share(held func(stem string) float64) float64 {
	if w.sum == 0 {
		return 0
	}
	got := 0.0
	for i, s := range w.stems {
		got += w.weight[i] * held(s)
	}
	return got / w.sum
}

// evidence is what a claim is held against.
type evidence struct {
	sentences []sentence
	all       map[string]bool // stems of all of it
	prefixes  map[string]bool // the first letters of long stems
	excerpts  int
	chars     int
}

// prefixLetters is how many letters two long words share that have one root:
// "direct" and "directorate".
const prefixLetters = 5

func gather(excerpts []string) evidence {
	e := evidence{all: map[string]bool{}, prefixes: map[string]bool{}, excerpts: len(excerpts)}
	for _, x := range excerpts {
		e.chars += len(x)
		for _, span := range lexicon.Sentences(x) {
			s := read(clean(x[span.Start:span.End]))
			if len(s.tokens) == 0 {
				continue
			}
			e.sentences = append(e.sentences, s)
			for stem := range s.holds {
				e.all[stem] = true
				if p := prefix(stem); p != "" {
					e.prefixes[p] = true
				}
			}
		}
	}
	return e
}

// prefix is the first letters of a stem, "" of a short one and of a number.
func prefix(stem string) string {
	if len(stem) < prefixLetters || stem[0] >= '0' && stem[0] <= '9' {
		return ""
	}
	return stem[:prefixLetters]
}

// has is 1 if the evidence holds a word, and one half if it holds one of the same root.
func (e *evidence) has(stem string) float64 {
	if e.all[stem] {
		return 1
	}
	if p := prefix(stem); p != "" && e.prefixes[p] {
		return 0.5
	}
	return 0
}

// clause is a part of a claim.
type clause struct {
	text  string
	words []string // stems of its content words
}

// clauses splits a claim into its parts: at semicolons, colons, dashes and
// brackets, at commas, and before words that join one statement to another. A part
// with fewer than two content words belongs to the one before it, or after it.
func clauses(c sentence) []clause {
	type piece struct {
		lexicon.Span
		words []string
	}
	pieces := []piece{{}}
	for _, t := range c.tokens {
		p := &pieces[len(pieces)-1]
		gap := c.text[p.End:t.Start]
		if strings.ContainsAny(gap, ";:,()–—[]") || strings.Contains(gap, " - ") || joiners[strings.ToLower(t.Text)] {
			if len(p.words) >= 2 {
				pieces = append(pieces, piece{Span: lexicon.Span{Start: t.Start}})
				p = &pieces[len(pieces)-1]
			}
		}
		p.End = t.End
		if !t.Stop {
			p.words = append(p.words, t.Stem)
		}
	}
	if n := len(pieces); n > 1 && len(pieces[n-1].words) < 2 {
		last := &pieces[n-2]
		last.End, last.words = pieces[n-1].End, append(last.words, pieces[n-1].words...)
		pieces = pieces[:n-1]
	}
	var out []clause
	for _, p := range pieces {
		if len(p.words) > 0 {
			out = append(out, clause{c.text[p.Start:p.End], p.words})
		}
	}
	return out
}

var joiners = set(`and but or which who whom whose that while where when whereas because although though since after before
	if unless until despite including such as so than`)

func set(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}
