// Package judge tells whether excerpts support a claim, without a language model.
// It owns the features in which the two are compared, the weights that were fitted
// for them, and the rule that makes a verdict of the numbers. It compares text with
// text: what is true, it does not know, and who wrote the claim is all the same.
//
// The judge fails closed. Where there is nothing to read, where the texts are not
// English, where there is too much of them, or where the numbers are not clear, the
// verdict is Unchecked, never Supported. Same texts, same verdict; with vectors the
// bits are those of the embedder.
package judge

import (
	"context"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
)

// Verdict is what the judge says of a claim.
type Verdict string

// The verdicts. Partial is a claim of which a part stands in the excerpts;
// Contradicted is one whose excerpts say otherwise.
const (
	Supported    Verdict = "supported"
	Partial      Verdict = "partial"
	Unsupported  Verdict = "unsupported"
	Contradicted Verdict = "contradicted"
	Unchecked    Verdict = "unchecked"
)

// Wire is the verdict as results carry it, which have no word for a contradiction
// but that it is no support.
func (v Verdict) Wire() marchwarden.Support {
	if v == Contradicted {
		return marchwarden.Unsupported
	}
	return marchwarden.Support(v)
}

// Opinion is a verdict and what it rests on.
type Opinion struct {
	Verdict Verdict
	// Sure means, of a verdict against a claim, that it outweighs another judge's word
	// for it: the excerpts deny the claim, or are far from it in meaning, too. Words
	// alone cannot tell a lack of support from other words for the same.
	Sure bool
	// Support is how likely people would call the claim supported, and Conflict how
	// likely contradicted; both are 0 where nothing could be compared.
	Support, Conflict float64
	// Reasons are what spoke, in words for people, the weightiest first.
	Reasons []string
}

// Judge holds claims against excerpts. It is safe for concurrent use.
type Judge struct {
	vectors embed.Embedder
	weights *Weights
}

// New makes a judge with the weights in the binary. The embedder may be nil; the
// judge asks it for a few sentences of each claim's excerpts.
func New(e embed.Embedder) *Judge { return With(shipped(), e) }

// With makes a judge with other weights.
func With(w *Weights, e embed.Embedder) *Judge { return &Judge{vectors: e, weights: w} }

// Limits of what is judged.
const (
	maxClaimChars    = 2000
	maxEvidenceChars = 1 << 20
	minWords         = 2 // content words of a claim
)

// Judge gives its opinion of a claim. Where there are no vectors after all it judges
// by the words; an error means only that ctx ended.
func (j *Judge) Judge(ctx context.Context, claim string, excerpts []string) (Opinion, error) {
	chars := 0
	for _, x := range excerpts {
		chars += len(x)
	}
	if chars > maxEvidenceChars || len(claim) > maxClaimChars {
		return Opinion{Verdict: Unchecked, Reasons: []string{"there is too much text to compare"}}, nil
	}
	if j.weights == nil {
		return Opinion{Verdict: Unchecked, Reasons: []string{"the judge has no weights"}}, nil
	}
	p := newPair(claim, excerpts)
	if why := p.unreadable(); why != "" {
		return Opinion{Verdict: Unchecked, Reasons: []string{why}}, nil
	}
	t, withVectors, err := p.features(ctx, j.vectors)
	if err != nil {
		return Opinion{}, err
	}
	m := &j.weights.Words
	if withVectors {
		m = &j.weights.Vectors
	}
	o := Opinion{Support: m.Support.Score(t.values), Conflict: m.Conflict.Score(t.values)}
	o.Verdict, o.Reasons = p.verdict(o, m.Cuts, t), p.reasons(t)
	o.Sure = o.Verdict == Contradicted || o.Verdict == Unsupported && withVectors && t.value("cos_window") < farOff
	return o, nil
}

// ByWords is the opinion of a judge without vectors.
func ByWords(claim string, excerpts []string) Opinion {
	o, err := New(nil).Judge(context.Background(), claim, excerpts)
	if err != nil {
		return Opinion{Verdict: Unchecked}
	}
	return o
}

// farOff is the cosine under which a claim and a few sentences speak of different
// things: of pairs that words call unsupported, people then found one in ten supported,
// otherwise up to one in four.
const farOff = 0.4

// Wire is the verdict for a result where there is no other judge's: what is unsupported
// by words alone is unchecked.
func (o Opinion) Wire() marchwarden.Support {
	if o.Verdict == Unsupported && !o.Sure {
		return marchwarden.Unchecked
	}
	return o.Verdict.Wire()
}

// Against says how the excerpts speak against the claim, or nothing if they do not.
func (o Opinion) Against() string {
	if o.Verdict != Contradicted || len(o.Reasons) == 0 {
		return ""
	}
	return o.Reasons[0]
}

// Unsure reports that a verdict says nothing.
func (o Opinion) Unsure() bool { return o.Verdict == Unchecked }

// unreadable says why claim and excerpts cannot be compared, or nothing.
func (p *pair) unreadable() string {
	tokens, stops := 0, 0
	for _, s := range p.ev.sentences {
		for _, t := range s.tokens {
			tokens++
			if t.Stop {
				stops++
			}
		}
	}
	own := 0
	for _, t := range p.claim.tokens {
		if t.Stop {
			own++
		}
	}
	switch {
	case len(p.words.stems) < minWords:
		return "the claim has too few words to compare"
	case tokens == 0:
		return "the excerpts have no text"
	case foreign(len(p.claim.tokens), own) || foreign(tokens, stops):
		return "the texts are not both English"
	}
	return ""
}

// foreign reports that a text of so many tokens has too few of the little words of
// English to be in it.
func foreign(tokens, stops int) bool { return tokens >= 8 && stops*12 < tokens }

// features are those by words, and those by vectors if they could be had.
func (p *pair) features(ctx context.Context, e embed.Embedder) (t table, withVectors bool, err error) {
	t = p.lexical()
	if e == nil {
		return t, false, nil
	}
	v, err := p.semantic(ctx, e)
	if ctx.Err() != nil {
		return t, false, ctx.Err()
	}
	if err != nil {
		return t, false, nil // words do
	}
	return table{append(t.names, v.names...), append(t.values, v.values...)}, true, nil
}

// partShare is how much of a claim's words the excerpts hold at least if they are
// said to support a part of it.
const partShare = 0.5

// absent is the share of a claim's words, words of the same root included, under which
// the excerpts speak of something else.
const absent = 0.15

// verdict is the rule. A claim that stands in an excerpt as it is needs no numbers, and
// no numbers make one supported whose nearest sentence seems to say otherwise.
func (p *pair) verdict(o Opinion, c Cuts, t table) Verdict {
	switch {
	case p.verbatim():
		return Supported
	case conflicts(t) && (outright(t) || o.Conflict >= c.Contradicted):
		return Contradicted
	case t.value("roots_all") < absent:
		return Unsupported
	case o.Support <= c.Unsupported && t.value("weighted_all") < partShare:
		return Unsupported
	case o.Support <= c.Unsupported:
		return Partial
	case o.Support < c.Supported || conflicts(t):
		return Unchecked
	case MissesNumber(p.claim.text, p.texts()):
		return Partial
	}
	return Supported
}

func (p *pair) texts() []string {
	out := make([]string, len(p.ev.sentences))
	for i, s := range p.ev.sentences {
		out[i] = s.text
	}
	return out
}

// How much of a claim the nearest sentence must say for a sign of conflict to count,
// and how much for a mere difference in denying, which may be about anything.
const (
	nearEnough  = 0.6
	nearlySame  = 0.7
	leastDenial = 0.3 // share of the nearest sentence that is the claim's
	sameWording = 0.6 // share of the claim's words that a sentence has in their order
)

// conflicts reports that the nearest sentence speaks of the same and gives another
// number, another year, the opposite word or direction, or denies where the claim does
// not. Probability alone never makes a contradiction.
func conflicts(t table) bool {
	near := t.value("weighted_1")
	if near >= nearlySame && t.value("best_density") >= leastDenial && t.value("polarity_conflict") > 0 {
		return true
	}
	return near >= nearEnough && t.value("number_conflict")+t.value("year_conflict")+t.value("opposites")+t.value("direction_conflict") > 0
}

// outright reports that a sentence is worded so much like the claim that a sign of
// conflict is enough.
func outright(t table) bool { return t.value("in_order") >= sameWording }

// verbatim reports that the claim's words follow each other in one of the excerpts as
// they do in the claim.
func (p *pair) verbatim() bool {
	want := line(p.claim)
	for i := range p.ev.sentences {
		have := ""
		for k := i; k < min(i+3, len(p.ev.sentences)); k++ { // a claim may be two sentences
			if have += line(p.ev.sentences[k]); strings.Contains(have, want) {
				return true
			}
		}
	}
	return false
}

// line is the words of a sentence in lower case, with a space around each.
func line(s sentence) string {
	var b strings.Builder
	b.WriteByte(' ')
	for _, t := range s.tokens {
		b.WriteString(strings.ToLower(t.Text))
		b.WriteString("  ")
	}
	return strings.TrimSuffix(b.String(), " ")
}

// Reading is a claim beside its excerpts in numbers, for fitting and measuring.
type Reading struct {
	Values  []float64 // in the order of Names
	Vectors bool      // those by vectors are among them
	// Conflict means that the nearest sentence seems to say otherwise, by a sign that
	// can be named, and Outright that it does so in the claim's own words.
	Conflict, Outright bool
}

// Read measures a pair. An error means only that ctx ended.
func Read(ctx context.Context, e embed.Embedder, claim string, excerpts []string) (Reading, error) {
	t, with, err := newPair(claim, excerpts).features(ctx, e)
	return Reading{t.values, with, conflicts(t), conflicts(t) && outright(t)}, err
}

// Names are those of the features, by words alone or by vectors, too.
func Names(vectors bool) []string {
	p := newPair("", nil)
	names := p.lexical().names
	if vectors {
		names = append(names, p.compare(nil, nil, nil, nil).names...)
	}
	return names
}

// Clauses are the parts of a claim that can stand or fall by themselves.
func Clauses(claim string) []string {
	var out []string
	for _, c := range clauses(read(claim)) {
		out = append(out, c.text)
	}
	return out
}
