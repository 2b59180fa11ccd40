package drift

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// word is a word of a text, and which word of the excerpt it is, or elsewhere.
type word struct {
	start, end int
	id         int
	weight     float64
}

const elsewhere = -1

// vocabulary is an excerpt as words.
type vocabulary struct {
	ids     map[string]int // by stem
	excerpt []word
	need    []int     // how often the excerpt has each word
	weights []float64 // of each word
	total   float64
}

func newVocabulary(excerpt string) *vocabulary {
	v := &vocabulary{ids: map[string]int{}}
	eachWord(excerpt, func(start, end int, core string) {
		stem := lexicon.Stem(core)
		id, ok := v.ids[stem]
		if !ok {
			id = len(v.need)
			v.ids[stem], v.need, v.weights = id, append(v.need, 0), append(v.weights, weigh(core))
		}
		v.need[id]++
		w := word{start, end, id, v.weights[id]}
		v.excerpt, v.total = append(v.excerpt, w), v.total+w.weight
	})
	return v
}

func (v *vocabulary) read(text string) []word {
	seen := map[string]word{} // a word comes again and again
	words := make([]word, 0, len(text)/6)
	eachWord(text, func(start, end int, core string) {
		k, ok := seen[core]
		if !ok {
			k = word{id: elsewhere, weight: weigh(core)}
			if id, ok := v.ids[lexicon.Stem(core)]; ok {
				k = word{id: id, weight: v.weights[id]}
			}
			seen[core] = k
		}
		words = append(words, word{start, end, k.id, k.weight})
	})
	return words
}

func weigh(core string) float64 {
	if lexicon.IsStop(core) {
		return stopWeight
	}
	return 1
}

// eachWord calls fn with every stretch without white space that holds a letter or
// digit, and with what is left of it without the punctuation at its ends.
func eachWord(s string, fn func(start, end int, core string)) {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if unicode.IsSpace(r) {
			i += n
			continue
		}
		end := len(s)
		if at := strings.IndexFunc(s[i:], unicode.IsSpace); at >= 0 {
			end = i + at
		}
		if core := strings.TrimFunc(s[i:end], func(r rune) bool { return !wordRune(r) }); core != "" {
			fn(i, end, core)
		}
		i = end
	}
}

// bestWindow finds where as many words as the excerpt has share most with it; the
// first of several such places. It is false if they share nothing.
func (v *vocabulary) bestWindow(words []word) (at int, ok bool) {
	n := len(v.excerpt)
	have := make([]int, len(v.need))
	score, best := 0.0, 0.0
	for i, w := range words {
		if w.id != elsewhere {
			if have[w.id]++; have[w.id] <= v.need[w.id] {
				score += w.weight
			}
		}
		if out := i - n; out >= 0 {
			if w := words[out]; w.id != elsewhere {
				if have[w.id]--; have[w.id] < v.need[w.id] {
					score -= w.weight
				}
			}
		}
		if score > best+1e-9 {
			best, at = score, max(0, i-n+1)
		}
	}
	return at, best > 0
}

// part is a stretch of words, to being after the last.
type part struct{ from, to int }

// trim drops the words at the ends that the excerpt does not have.
func (v *vocabulary) trim(words []word, p part) part {
	for p.from < p.to && words[p.from].id == elsewhere {
		p.from++
	}
	for p.from < p.to && words[p.to-1].id == elsewhere {
		p.to--
	}
	return p
}

// before is where the passage begins of which p is the part that was found: as many
// words earlier as the excerpt has before the first word of p, within a paragraph.
func (v *vocabulary) before(text string, words []word, p part) int {
	lead := slices.IndexFunc(v.excerpt, func(e word) bool { return e.id == words[p.from].id })
	at := p.from
	for ; lead > 0 && at > 0 && !paragraphEnds(text[words[at-1].end:words[at].start]); lead-- {
		at--
	}
	return at
}

// after is where it ends.
func (v *vocabulary) after(text string, words []word, p part) int {
	at, trail := p.to-1, 0
	for i, e := range v.excerpt {
		if e.id == words[at].id {
			trail = len(v.excerpt) - 1 - i
		}
	}
	for ; trail > 0 && at+1 < len(words) && !paragraphEnds(text[words[at].end:words[at+1].start]); trail-- {
		at++
	}
	return at
}

func paragraphEnds(gap string) bool { return strings.Count(gap, "\n") > 1 }

// likeness is the share of words that a passage and the excerpt have in common, from
// 0 to 1, in whatever order. What has fewer than two words that say something in
// common is not alike, unless the excerpt has no more.
func (v *vocabulary) likeness(words []word) float64 {
	have := make([]int, len(v.need))
	total, common, telling := 0.0, 0.0, 0
	for _, w := range words {
		total += w.weight
		if w.id == elsewhere {
			continue
		}
		if have[w.id]++; have[w.id] <= v.need[w.id] {
			common += w.weight
			if w.weight == 1 {
				telling++
			}
		}
	}
	if total == 0 || telling < 2 && common < v.total-1e-9 {
		return 0
	}
	return 2 * common / (total + v.total)
}

// tighten drops words at the ends, as many as make a part most like the excerpt: what is left of a
// passage may be shorter.
func (v *vocabulary) tighten(words []word, p part) part {
	best, most := p, -1.0
	try := func(o part) {
		if o = v.trim(words, o); v.likeness(words[o.from:o.to]) > most+1e-9 {
			best, most = o, v.likeness(words[o.from:o.to])
		}
	}
	for from := p.from; from < p.to; from++ {
		try(part{from, p.to})
	}
	for from, to := best.from, best.to; to > from; to-- {
		try(part{from, to})
	}
	return best
}

// Op is what happened to words.
type Op string

// The operations.
const (
	Same    Op = "same"
	Removed Op = "removed"
	Added   Op = "added"
)

// Edit is a stretch of words with one thing happened to it.
type Edit struct {
	Op   Op     `json:"op"`
	Text string `json:"text"`
}

// maxCells bounds the work of a diff; what is larger differs as a whole.
const maxCells = 4 << 20

// Diff says how one passage became another, word by word, with as many words kept as
// can be. Words are the same if they fold to the same; white space does not count.
// The edits hold the words of both as they are, one space apart.
func Diff(was, now string) []Edit {
	a, b := strings.Fields(was), strings.Fields(now)
	if len(a)*len(b) > maxCells {
		return []Edit{{Removed, strings.Join(a, " ")}, {Added, strings.Join(b, " ")}}
	}
	fa, fb := folded(a), folded(b)
	// common[i][j] is how many words a[i:] and b[j:] have in common, in order.
	common := make([][]int32, len(a)+1)
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if fa[i] == fb[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var edits []Edit
	add := func(op Op, text string) {
		if last := len(edits) - 1; last >= 0 && edits[last].Op == op {
			edits[last].Text += " " + text
			return
		}
		edits = append(edits, Edit{op, text})
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && fa[i] == fb[j]:
			add(Same, b[j])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			add(Removed, a[i])
			i++
		default:
			add(Added, b[j])
			j++
		}
	}
	return edits
}

func folded(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = evidence.Fold(w)
	}
	return out
}
