package run

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"
	"unicode/utf8"

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

// parseWords are the stems of the words that are looked for, each once. Words that are too
// common to tell anything count only if there is nothing else.
func parseWords(s string) (stems []string) {
	var common []string
	for _, t := range lexicon.Tokens(s) {
		if t.Stop {
			common = append(common, t.Stem)
		} else if !slices.Contains(stems, t.Stem) {
			stems = append(stems, t.Stem)
		}
	}
	if len(stems) == 0 {
		stems = slices.Compact(slices.Sorted(slices.Values(common)))
	}
	return stems
}

type rank struct {
	asked int // words that are in the question
	times int // how often all of them are there
}

// match reports whether a run has all the words, in its question or its answer.
func (h *History) match(stems []string, d *digest) (r rank, all bool) {
	for _, stem := range stems {
		asked, said := d.asked.count(h.seed, stem), d.said.count(h.seed, stem)
		if asked+said == 0 {
			return r, false
		}
		if asked > 0 {
			r.asked++
		}
		r.times += asked + said
	}
	return r, true
}

const lead = 80

// around is the part of an answer where the first of the words is, or its beginning. One that
// cannot be read has no other.
func (h *History) around(ctx context.Context, stems []string, d *digest) string {
	if !d.result.Valid() || d.unheard != "" {
		return d.entry.Answer
	}
	res, err := h.resultOf(ctx, d.result)
	if err != nil {
		return d.entry.Answer
	}
	plain := Plain(res.Answer, len(res.Citations))
	from := 0
	for _, t := range lexicon.Tokens(plain) {
		if slices.Contains(stems, t.Stem) {
			from = max(0, t.Start-lead)
			break
		}
	}
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
