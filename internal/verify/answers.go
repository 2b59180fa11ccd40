package verify

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
)

// inquiry is a question.
type inquiry struct {
	text  string
	terms []string // stems of its words, each once
	names []string // those of names: what is asked about
}

func inquire(question string) *inquiry {
	q := &inquiry{text: question, names: lexicon.Terms(strings.Join(lexicon.Names(question), " "))}
	for _, w := range lexicon.Terms(question) {
		if !slices.Contains(q.terms, w) {
			q.terms = append(q.terms, w)
		}
	}
	return q
}

// beyond is the question without the words of a text.
func (q *inquiry) beyond(text string) *inquiry {
	held := lexicon.TermSet(text)
	return &inquiry{terms: slices.DeleteFunc(slices.Clone(q.terms), func(w string) bool { return held[w] })}
}

func (q *inquiry) share(text string) float64 {
	if len(q.terms) == 0 {
		return 1
	}
	return heldShare(q.terms, lexicon.TermSet(text))
}

// statedValue is what a sentence says, and where in it.
type statedValue struct {
	text  string
	start int
}

func (v statedValue) stems() []string { return lexicon.Terms(v.text) }

// answer is what a document answers the question with.
type answer struct {
	*statement
	statedValue
	score float64 // how surely
}

// window is a part of a document that may answer the question.
type window struct {
	evidence.Window
	source *evidence.Source
	share  float64
}

// answers are what a reader finds in the windows that bear most on the question, the
// surest of each document.
func (q *inquiry) answers(ctx context.Context, r reader.Reader, all []*statement) []answer {
	if len(q.terms) == 0 {
		return nil
	}
	windows := q.windows(all)
	passages := make([]reader.Passage, len(windows))
	for i, w := range windows {
		passages[i] = reader.Passage{Heading: w.Path, Text: w.Text}
	}
	read, err := r.Read(ctx, q.text, passages)
	if err != nil || len(read) != len(windows) {
		return nil
	}
	best := map[*evidence.Source]answer{}
	for i, w := range windows {
		span, ok := w.Span(read[i].Span.Start, read[i].Span.End)
		if !ok || read[i].SpanScore <= answered {
			continue
		}
		if a, ok := placed(all, w.source, span); ok && (best[w.source].statement == nil || read[i].SpanScore > best[w.source].score) {
			a.score = read[i].SpanScore
			best[w.source] = a
		}
	}
	return slices.SortedFunc(maps.Values(best), func(a, b answer) int { return cmp.Compare(a.source.N, b.source.N) })
}

func (q *inquiry) windows(all []*statement) []window {
	among := map[*evidence.Passage]bool{}
	var sources []*evidence.Source
	for _, s := range all {
		among[&s.source.Passages[s.passage]] = true
		if !slices.Contains(sources, s.source) {
			sources = append(sources, s.source)
		}
	}
	if len(sources) < 2 {
		return nil // nothing to compare
	}
	var out []window
	for _, src := range sources {
		for w := range src.Windows() {
			if !slices.ContainsFunc(w.Passages, func(i int) bool { return among[&src.Passages[i]] }) {
				continue
			}
			if share := q.share(w.Path + " " + w.Text); share >= relevantFloor {
				out = append(out, window{w, src, share})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b window) int { return cmp.Compare(b.share, a.share) })
	return out[:min(maxWindows, len(out))]
}

// placed finds the sentence that a stretch of a document stands in.
func placed(all []*statement, src *evidence.Source, at marchwarden.Span) (answer, bool) {
	for _, s := range all {
		if s.source == src && s.start <= at.Start && at.End <= s.start+len(s.text) {
			return answer{statement: s, statedValue: statedValue{src.Text[at.Start:at.End], at.Start - s.start}}, true
		}
	}
	return answer{}, false
}

// How sure a reader must be of an answer, and that two contradict each other: of one
// thing, and where that cannot be told.
const answered, sureAnswers, sureAlone = 0, 0.3, 0.9

// opposed are the pairs of answers that cannot both be right, of what seems to be one
// thing, the surest first.
func (q *inquiry) opposed(found []answer) []*pair {
	var out []*pair
	slices.SortStableFunc(found, func(a, b answer) int { return cmp.Compare(b.score, a.score) })
	for i, b := range found {
		for _, a := range found[:i] {
			p := &pair{a: a.statement, b: b.statement, va: a.statedValue, vb: b.statedValue, on: "answer", weight: 2 + a.relevant + b.relevant, bound: sureAnswers}
			same, told := q.sameThing(a, b)
			if !told {
				p.bound = sureAlone
			}
			if (same || !told) && differ(a, b) {
				out = append(out, p)
			}
		}
	}
	return out
}

// differ reports whether two answers cannot both be right: they have no word in common,
// neither stands in the other's sentence, they are of one sort, and they are not said of
// different years.
func differ(a, b answer) bool {
	const digits = "0123456789"
	x, y := a.stems(), b.stems()
	if len(x) == 0 || len(y) == 0 || a.holds(y) || b.holds(x) || strings.ContainsAny(a.statedValue.text, digits) != strings.ContainsAny(b.statedValue.text, digits) {
		return false
	}
	if slices.ContainsFunc(x, func(w string) bool { return slices.Contains(y, w) && !calendar[w] }) {
		return false
	}
	p, q := lexicon.Quantities(a.statedValue.text), lexicon.Quantities(b.statedValue.text)
	if len(p) == 1 && len(q) == 1 && (p[0].Unit != q[0].Unit || p[0].Unit != "year" && near(p[0].Value, q[0].Value)) {
		return false
	}
	ya, yb := a.years(), b.years()
	return len(ya) == 0 || len(yb) == 0 || slices.ContainsFunc(ya, func(y int) bool { return slices.Contains(yb, y) })
}

func (s *statement) holds(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool {
		return !slices.ContainsFunc(s.toks, func(t lexicon.Token) bool { return t.Stem == w })
	})
}

// years are those that a sentence names beside an answer.
func (a answer) years() []int {
	var out []int
	for _, t := range a.toks {
		if y := t.Year(); y > 0 && (t.End <= a.statedValue.start || t.Start >= a.statedValue.start+len(a.statedValue.text)) {
			out = append(out, y)
		}
	}
	return out
}

// scene is the names and numbers around the sentences of one passage: in the title and
// the beginning of its document, and in the passages next to it.
type scene map[string]bool

func newScene(src *evidence.Source, p evidence.Passage) scene {
	parts := []string{src.Page.Title, p.Heading}
	if p.Index > 2 {
		parts = append(parts, src.Passages[0].Text)
	}
	for _, n := range src.Passages[max(0, p.Index-2):min(len(src.Passages), p.Index+1)] {
		parts = append(parts, n.Text)
	}
	sc := scene{}
	for _, t := range lexicon.Tokens(strings.Join(parts, "\n")) {
		if !t.Stop && (t.Number || t.Capital && !calendar[t.Stem]) {
			sc[t.Stem] = true
		}
	}
	return sc
}

// agreement is how many names and numbers two scenes have in common, some aside, and
// how many the poorer one has.
func (sc scene) agreement(o scene, aside []string) (common, poorer int) {
	sizes := [2]int{}
	for i, side := range []scene{sc, o} {
		for w := range side {
			if !slices.Contains(aside, w) {
				sizes[i]++
				if i == 0 && o[w] {
					common++
				}
			}
		}
	}
	return common, min(sizes[0], sizes[1])
}

// How many of the names and numbers around two sentences must agree for these to be of
// one thing: a name alone is shared by many.
const (
	sceneFewest = 3   // fewest that tell anything
	shortScene  = 0.4 // of short sentences that differ in an amount
	answerScene = 0.6 // of sentences with different answers
)

// sameThing reports whether two answers are of one thing, and whether that can be told:
// the sentences do not begin with different names, and most of the names and numbers
// around them agree.
func (q *inquiry) sameThing(a, b answer) (same, told bool) {
	aside := slices.Concat(q.terms, a.stems(), b.stems())
	named := func(x answer) bool { // the sentence begins with a name that is not the answer
		return x.statedValue.start > 0 && slices.ContainsFunc(x.toks, func(t lexicon.Token) bool { return t.Stem == x.first && t.Capital })
	}
	asked := func(w string) bool { return a.scene[w] != b.scene[w] } // it is named around one of them only
	if named(a) && named(b) && !a.words[b.first] && !b.words[a.first] || slices.ContainsFunc(q.names, asked) {
		return false, true
	}
	common, poorer := a.scene.agreement(b.scene, aside)
	return common >= sceneFewest && float64(common) >= answerScene*float64(poorer), poorer >= sceneFewest
}
