package run

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

const maxWordsBytes = 2000

// index is the words of a text, as hashes of their stems in ascending order.
type index []uint64

func newIndex(seed maphash.Seed, s string) index {
	tokens := lexicon.Tokens(s)
	x := make(index, len(tokens))
	for i, t := range tokens {
		x[i] = maphash.String(seed, t.Stem)
	}
	slices.Sort(x)
	return x
}

func (x index) count(seed maphash.Seed, stem string) int {
	h := maphash.String(seed, stem)
	from, _ := slices.BinarySearch(x, h)
	to, _ := slices.BinarySearch(x, h+1)
	return max(0, to-from)
}

// words is what is looked for. All of it must be there.
type words struct {
	stems    []string   // of single words, each once
	phrases  [][]string // words in their order, as wordOf gives them
	within   []string   // the stems of the words of the phrases
	literals []string   // folded texts in quotes, or alone, that have no word
}

func (w words) none() bool { return len(w.stems)+len(w.phrases)+len(w.literals) == 0 }

// parseWords reads what a person typed. What stands between two quotation marks is a
// phrase; a mark without its second is nothing. Words that are too common to tell
// anything count only if there is nothing else, and so does what has no word in it.
func parseWords(s string) words {
	var w words
	var loose strings.Builder
	rest := strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`).Replace(s)
	for {
		before, after, opens := strings.Cut(rest, `"`)
		phrase, next, closes := strings.Cut(after, `"`)
		if !opens || !closes {
			loose.WriteString(" " + before + " " + after)
			break
		}
		loose.WriteString(" " + before + " ")
		w.phrase(phrase)
		rest = next
	}
	var common []string
	for _, t := range lexicon.Tokens(loose.String()) {
		if t.Stop {
			common = append(common, t.Stem)
		} else if !slices.Contains(w.stems, t.Stem) {
			w.stems = append(w.stems, t.Stem)
		}
	}
	if w.none() {
		w.stems = slices.Compact(slices.Sorted(slices.Values(common)))
	}
	if w.none() {
		w.literals = append(w.literals, strings.Fields(fold(loose.String()))...)
	}
	return w
}

func (w *words) phrase(s string) {
	tokens := lexicon.Tokens(s)
	if len(tokens) == 0 {
		if text := fold(s); text != "" {
			w.literals = append(w.literals, text)
		}
		return
	}
	var phrase []string
	for _, t := range tokens {
		phrase, w.within = append(phrase, wordOf(t)), append(w.within, t.Stem)
	}
	w.phrases = append(w.phrases, phrase)
}

// wordOf is a word as phrases are compared: as it is written, but for its case. Only stems of plain letters are shorter.
func wordOf(t lexicon.Token) string {
	text := strings.ReplaceAll(t.Text, "’", "'")
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || c >= '0' && c <= '9' || c == '.' || c == ',' {
			return t.Stem
		}
	}
	return strings.ToLower(text)
}

// fold is a text as it is compared where there are no words in it.
func fold(s string) string { return strings.ToLower(plaintext.Fold(s)) }

type rank struct {
	asked int // words and phrases that are in the question
	times int // how often all of them are there
}

func (h *History) search(ctx context.Context, w words, hits []*found) ([]*found, error) {
	has := make([]bool, len(hits))
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, f := range hits {
		g.Go(func() error {
			f.rank, has[i] = h.match(ctx, w, f.digest)
			return nil
		})
	}
	_ = g.Wait() // none fails
	var kept []*found
	for i, f := range hits {
		if has[i] {
			kept = append(kept, f)
		}
	}
	return kept, canceled(ctx)
}

// answer is the answer of a run as plain text. One that cannot be read has no words.
func (h *History) answer(ctx context.Context, d *digest) string {
	if d.result.Valid() && d.unheard == "" && ctx.Err() == nil {
		if res, err := h.resultOf(ctx, d.result); err == nil {
			return Plain(res.Answer, len(res.Citations))
		}
	}
	return ""
}

func (h *History) match(ctx context.Context, w words, d *digest) (rank, bool) {
	var r rank
	count := func(asked, said int) bool {
		if asked > 0 {
			r.asked++
		}
		r.times += asked + said
		return asked+said > 0
	}
	for _, stem := range w.stems {
		if !count(d.asked.count(h.seed, stem), d.said.count(h.seed, stem)) {
			return r, false
		}
	}
	for _, stem := range w.within { // cheaper than to read the text
		if d.asked.count(h.seed, stem)+d.said.count(h.seed, stem) == 0 {
			return r, false
		}
	}
	if len(w.phrases)+len(w.literals) == 0 {
		return r, true
	}
	answer := h.answer(ctx, d)
	asked, said := lexicon.Tokens(d.entry.Question), lexicon.Tokens(answer)
	for _, p := range w.phrases {
		if !count(len(places(asked, p)), len(places(said, p))) {
			return r, false
		}
	}
	for _, text := range w.literals {
		if !count(strings.Count(fold(d.entry.Question), text), strings.Count(fold(answer), text)) {
			return r, false
		}
	}
	return r, true
}

// places are the tokens at which a phrase begins; at most 255 of them.
func places(tokens []lexicon.Token, phrase []string) []int {
	var at []int
	for i := 0; i+len(phrase) <= len(tokens) && len(at) < 255; i++ {
		j := 0
		for j < len(phrase) && wordOf(tokens[i+j]) == phrase[j] {
			j++
		}
		if j == len(phrase) {
			at = append(at, i)
		}
	}
	return at
}

const lead = 80

// around is the part of an answer where the words are, or its beginning.
func (h *History) around(ctx context.Context, w words, d *digest) string {
	plain := h.answer(ctx, d)
	if plain == "" {
		return d.entry.Answer
	}
	from := max(0, firstOf(w, plain)-lead)
	for from > 0 && !utf8.RuneStart(plain[from]) {
		from--
	}
	if from == 0 {
		return plaintext.Clip(plain, maxShown)
	}
	if space := strings.IndexByte(plain[from:from+lead/2], ' '); space >= 0 { // rather a whole word
		from += space + 1
	}
	return "…" + plaintext.Clip(plain[from:], maxShown)
}

func firstOf(w words, s string) int {
	tokens := lexicon.Tokens(s)
	for _, p := range w.phrases {
		if at := places(tokens, p); len(at) > 0 {
			return tokens[at[0]].Start
		}
	}
	for _, t := range tokens {
		if slices.Contains(w.stems, t.Stem) {
			return t.Start
		}
	}
	return 0
}
