package local

// This part puts found texts in order: how a score by words and a likeness of meaning
// are made one, which words of the best texts are looked for as well, and which texts say
// the same again. The same input gives the same order on every machine, if the vectors are
// the same.
//
// The constants were chosen on CACM, Cranfield and the training claims of SciFact, and
// held against the questions of SQuAD, which ask for one known paragraph; the figures
// stand beside each of them.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/inverted"
)

const (
	// FirstTexts of one search are compared by meaning before the query is widened (see
	// Feedback), MaxTexts altogether: making a vector takes thousands of times as long as
	// finding a text by its words. With 16, 32, 64 and 128 in one round nDCG@10 on half of
	// SciFact was .776, .783, .788 and .789.
	FirstTexts = 16
	MaxTexts   = 32
	// WholeTexts is how many texts a library may have for all of them to be compared with
	// every query: about what one can wait for, once. In folders of ordinary papers the
	// text that answers is then among the first twenty for .91 of the questions, instead
	// of .81 by words.
	WholeTexts = 80
	// leastLike is the cosine from which a text without a word of the query is found.
	leastLike = 0.15
	// wordShare is what the score by words counts in a fused score, where a cosine is
	// brought from -1…1 to 0…1: as much as .4 beside .6 of the cosine itself. Shares of
	// .2, .3, .4 and .5 gave nDCG@10 of .725, .735, .735 and .727 on SciFact, .565, .586,
	// .585 and .590 on CACM, .442, .441, .438 and .433 on Cranfield, and .833, .847, .852
	// and .854 paragraphs in the first place on SQuAD, where words alone had .833.
	wordShare = 0.4 / (0.4 + 2*0.6)
	// maxCopies is how many texts are looked through for copies.
	maxCopies = 128
)

// Reader orders texts for one query. It is not safe for concurrent use.
type Reader struct {
	embed embed.Embedder // nil where words decide alone
	query string
	of    embed.Vector       // of the query, once it is known
	known map[string]float64 // cosines by text
}

// NewReader returns a reader for a query. Without an embedder, nil, words decide alone.
func NewReader(e embed.Embedder, query string) *Reader {
	return &Reader{embed: e, query: query, known: map[string]float64{}}
}

// Reads reports whether meaning is looked at: there is an embedder, and it has not
// failed.
func (r *Reader) Reads() bool { return r.embed != nil }

// Order puts texts in order, best first, and gives their hits scores above 0. They come in
// order of their scores by words, which decides between equals. The first of them are
// ordered by their words and their meaning, and go before the rest: as many as have been
// compared by the reader before, or can be without its comparing more than limit
// altogether. Texts that say the same as a better one come last; those that are found
// neither by their words nor by their meaning are left out.
//
// An error of the embedder that is not ctx's own costs the meaning and not the order,
// which is that by words then, and for good.
func (r *Reader) Order(ctx context.Context, texts []*found, limit int) ([]*found, error) {
	for _, f := range texts {
		f.hit.Score = f.score
	}
	if r.Reads() && len(texts) > 1 {
		if err := r.compare(ctx, texts, limit); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
			r.embed = nil
		} else {
			texts = r.fuse(texts)
		}
	}
	return copiesLast(slices.DeleteFunc(slices.Clone(texts), func(f *found) bool {
		cosine, known := r.known[f.said()]
		return f.score <= 0 && !(r.Reads() && known && cosine >= leastLike)
	})), nil
}

// compare makes the vectors that may still be made.
func (r *Reader) compare(ctx context.Context, list []*found, limit int) error {
	var texts []string
	for _, f := range list {
		said := f.said()
		if _, known := r.known[said]; known || slices.Contains(texts, said) {
			continue
		}
		if len(r.known)+len(texts) >= limit {
			break
		}
		texts = append(texts, said)
	}
	asked := texts
	if r.of == nil {
		asked = append([]string{r.query}, texts...)
	}
	if len(asked) == 0 {
		return nil
	}
	vectors, err := r.embed.Embed(ctx, asked)
	if err == nil && len(vectors) != len(asked) {
		err = fmt.Errorf("%s gave %d vectors for %d texts", r.embed.ID(), len(vectors), len(asked))
	}
	if err != nil {
		return err
	}
	if r.of == nil {
		r.of, vectors = vectors[0], vectors[1:]
	}
	for i, v := range vectors {
		r.known[texts[i]] = r.of.Dot(v)
	}
	return nil
}

// said is what a text says: its title and its lines that hold a word.
func (f *found) said() string {
	var b strings.Builder
	if head, _, _ := strings.Cut(f.hit.Snippet, "\n"); f.title != "" && strings.TrimSpace(strings.TrimLeft(head, "#")) != f.title {
		b.WriteString(f.title + "\n")
	}
	for line := range strings.Lines(f.hit.Snippet) {
		if strings.ContainsFunc(line, unicode.IsLetter) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// fuse scores texts by words and meaning, between 0 and 1, and sorts them; those whose
// meaning was not looked at stay behind the others. The score by words counts as a part of
// the highest one, the cosine as it is, so that the order of two texts does not depend on
// which others were compared.
//
// Scaling both to what lies between their lowest and their highest, and standard
// scores, were as good on CACM and Cranfield.
func (r *Reader) fuse(texts []*found) []*found {
	var head, rest []*found
	highest := 1e-9
	for _, f := range texts {
		if _, known := r.known[f.said()]; known {
			head = append(head, f)
			highest = max(highest, f.score)
		} else {
			rest = append(rest, f)
		}
	}
	for _, f := range head {
		// The conversions keep a compiler from rounding the sum once instead of thrice.
		meaning := float64((1 + r.known[f.said()]) / 2)
		f.hit.Score = float64(wordShare*(f.score/highest)) + float64((1-wordShare)*meaning)
	}
	slices.SortStableFunc(head, func(a, b *found) int { return cmp.Compare(b.hit.Score, a.hit.Score) })
	return behind(head, rest)
}

// behind puts texts behind others, and lowers their scores, which fall, so that they fall
// from below the last one's.
func behind(head, texts []*found) []*found {
	if len(head) == 0 || len(texts) == 0 {
		return append(head, texts...)
	}
	limit, first := head[len(head)-1].hit.Score, texts[0].hit.Score
	for _, f := range texts {
		f.hit.Score *= limit / first * 0.999
	}
	return append(head, texts...)
}

// copiesLast moves texts that say the same as a better one behind all others. Texts that
// are only nearly the same are told apart on purpose: two that differ in one number, one
// name or one "not" may contradict each other, and both are wanted.
func copiesLast(texts []*found) []*found {
	var kept, copies []*found
	seen := map[string]bool{}
	for i, f := range texts {
		// Letter case, marks and white space do not matter.
		words := strings.Join(strings.FieldsFunc(strings.ToLower(f.hit.Snippet), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }), " ")
		if i < maxCopies && seen[words] {
			copies = append(copies, f)
		} else {
			kept = append(kept, f)
			seen[words] = words != "" // texts without words are never copies
		}
	}
	return behind(kept, copies)
}

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

// Feedback adds to what a query looks for the words that stand out in texts which seem
// to answer it, as far as the scores of their hits say. The weights of the result add up to 1. idf tells how rare a word is;
// its errors are passed on. Without any words to add the query's come back, and a query
// that looks for nothing stays one.
func Feedback(query []inverted.Term, texts []*found, idf func(stem string) (float64, error)) ([]inverted.Term, error) {
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
func telling(texts []*found, idf func(stem string) (float64, error)) ([]inverted.Term, error) {
	weights := map[string]float64{}
	for _, f := range texts {
		stems := contentStems(f.hit.Snippet)
		for _, stem := range stems {
			weights[stem] += f.hit.Score / float64(len(stems))
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
