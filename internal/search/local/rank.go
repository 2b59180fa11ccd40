package local

// This part puts found texts in order. It owns what is done with candidates once
// the index has named them: how a score by words and a likeness of meaning are made
// one, which words of the best texts are looked for as well, and which texts say the
// same again. It keeps no index, reads no folders and knows no model. The same input
// gives the same order on every machine, if the vectors are the same.
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
)

// How many texts of one search are compared by meaning: making a vector takes
// thousands of times as long as finding a text by its words. FirstTexts are compared
// before the query is widened (see Feedback), MaxTexts altogether. With 16, 32, 64 and
// 128 in one round nDCG@10 on half of SciFact was .776, .783, .788 and .789.
const (
	FirstTexts = 16
	MaxTexts   = 32
)

// WholeTexts is how many texts a library may have for all of them to be compared with
// every query: about what one can wait for, once. In folders of ordinary papers the
// text that answers is then among the first twenty for .91 of the questions, instead
// of .81 by words.
const WholeTexts = 80

// leastLike is the cosine from which a text without a word of the query is found.
const leastLike = 0.15

// wordShare is what the score by words counts in a fused score, where a cosine is
// brought from -1…1 to 0…1: as much as .4 beside .6 of the cosine itself. Shares of .2,
// .3, .4 and .5 gave nDCG@10 of .725, .735, .735 and .727 on SciFact, .565, .586, .585
// and .590 on CACM, .442, .441, .438 and .433 on Cranfield, and .833, .847, .852 and
// .854 paragraphs in the first place on SQuAD, where words alone had .833.
const wordShare = 0.4 / (0.4 + 2*0.6)

// Found is a text that was found by its words.
type Found struct {
	Title string  // of its document; "" for none
	Text  string  // the part that matches best
	Words float64 // how well it matches by words; 0 for not at all
}

// Placed is a text in an order: its place in the list that was ordered, and its score,
// which is above 0.
type Placed struct {
	At    int
	Score float64
}

// Reader orders texts for one query. It is not safe for concurrent use.
type Reader struct {
	embed embed.Embedder
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

// Order puts texts in order, best first. They come in order of their scores by words,
// which decides between equals. The first of them are ordered by their words and their
// meaning, and go before the rest: as many as have been compared by the reader before,
// or can be without its comparing more than limit altogether. Texts that say the same
// as a better one come last; those that are found neither by their words nor by their
// meaning are left out.
//
// An error of the embedder that is not ctx's own costs the meaning and not the order,
// which is that by words then, and for good.
func (r *Reader) Order(ctx context.Context, found []Found, limit int) ([]Placed, error) {
	placed := make([]Placed, len(found))
	for i, f := range found {
		placed[i] = Placed{i, f.Words}
	}
	if r.Reads() && len(found) > 1 {
		if err := r.compare(ctx, found, limit); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
			r.embed = nil
		} else {
			r.fuse(placed, found)
		}
	}
	placed = slices.DeleteFunc(placed, func(p Placed) bool {
		cosine, known := r.known[found[p.At].said()]
		return found[p.At].Words <= 0 && !(r.Reads() && known && cosine >= leastLike)
	})
	copiesLast(placed, found)
	return placed, nil
}

// compare makes the vectors that may still be made.
func (r *Reader) compare(ctx context.Context, found []Found, limit int) error {
	var texts []string
	for _, f := range found {
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
func (f Found) said() string {
	var b strings.Builder
	if head, _, _ := strings.Cut(f.Text, "\n"); f.Title != "" && strings.TrimSpace(strings.TrimLeft(head, "#")) != f.Title {
		b.WriteString(f.Title + "\n")
	}
	for line := range strings.Lines(f.Text) {
		if strings.ContainsFunc(line, unicode.IsLetter) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// fuse scores texts by words and meaning and sorts them; those whose meaning was not
// looked at stay behind the others.
func (r *Reader) fuse(placed []Placed, found []Found) {
	var head, rest []Placed
	var words, meaning []float64
	for _, p := range placed {
		if cosine, known := r.known[found[p.At].said()]; known {
			head = append(head, p)
			words, meaning = append(words, p.Score), append(meaning, cosine)
		} else {
			rest = append(rest, p)
		}
	}
	if len(head) == 0 {
		return
	}
	for i, score := range fused(words, meaning) {
		head[i].Score = score
	}
	slices.SortStableFunc(head, func(a, b Placed) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.At, b.At))
	})
	behind(head[len(head)-1].Score, rest)
	copy(placed, append(head, rest...))
}

// fused makes one score of two for each text: words is how well it matches by words,
// above 0, and meaning the cosine of its vector and the query's. The score by words
// counts as a part of the highest one, the cosine as it is, so that the order of two
// texts does not depend on which others were compared. The lists are of one length;
// the scores are between 0 and 1.
//
// Scaling both to what lies between their lowest and their highest, and standard
// scores, were as good on CACM and Cranfield.
func fused(words, meaning []float64) []float64 {
	highest := 0.0
	for _, w := range words {
		highest = max(highest, w)
	}
	scores := make([]float64, len(words))
	for i, w := range words {
		// The conversions keep a compiler from rounding the sum once instead of thrice.
		scores[i] = float64(wordShare*(w/max(highest, 1e-9))) + float64((1-wordShare)*float64((1+meaning[i])/2))
	}
	return scores
}

// behind lowers scores, which fall, so that they fall from below a limit.
func behind(limit float64, placed []Placed) {
	if len(placed) == 0 {
		return
	}
	first := placed[0].Score
	for i := range placed {
		placed[i].Score *= limit / first * 0.999
	}
}

// maxCopies is how many texts are looked through for copies.
const maxCopies = 128

// copiesLast moves texts that say the same as a better one behind all others.
func copiesLast(placed []Placed, found []Found) {
	head := placed[:min(len(placed), maxCopies)]
	texts := make([]string, len(head))
	for i, p := range head {
		texts[i] = found[p.At].Text
	}
	var kept, copies []Placed
	for i, of := range copiesOf(texts) {
		if of < 0 {
			kept = append(kept, head[i])
		} else {
			copies = append(copies, head[i])
		}
	}
	if len(copies) == 0 {
		return
	}
	kept = append(kept, placed[len(head):]...)
	behind(kept[len(kept)-1].Score, copies)
	copy(placed, append(kept, copies...))
}
