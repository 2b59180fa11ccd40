package verify

// This part tells whether excerpts support a claim, without a language model. It
// owns the words and rules by which the two are compared, what a reader is asked about
// them, the weights that were fitted, and the rule that makes a verdict. It compares text
// with text: what is true, it does not know.
//
// The judge fails closed. Where there is nothing to read, or too much, or no English, or
// the numbers are not clear, the verdict is VerdictUnchecked. Same texts and same reader, same
// verdict.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
)

// Verdict is what the judge says of a claim.
type Verdict string

// The verdicts. Of a Partial claim a part stands in the excerpts.
const (
	VerdictSupported    Verdict = "supported"
	VerdictPartial      Verdict = "partial"
	VerdictUnsupported  Verdict = "unsupported"
	VerdictContradicted Verdict = "contradicted"
	VerdictUnchecked    Verdict = "unchecked"
)

// Wire is the verdict as results carry it: there a contradiction is no support.
func (v Verdict) Wire() marchwarden.Support {
	if v == VerdictContradicted {
		return marchwarden.Unsupported
	}
	return marchwarden.Support(v)
}

// Excerpt is a text that a claim rests on, and what stands above it: "Title › Heading".
type Excerpt struct{ Heading, Text string }

func (x Excerpt) words() map[string]bool { return lexicon.TermSet(x.Heading + "\n" + x.Text) }

// Opinion is a verdict and what it rests on.
type Opinion struct {
	Verdict Verdict
	// Support is how likely people would call the claim supported, and Conflict how
	// likely contradicted; both are 0 where nothing could be compared.
	Support, Conflict float64
	// Reasons are what spoke, in words for people, the weightiest first.
	Reasons []string
}

// Against says how the excerpts speak against the claim, or nothing if they do not.
func (o Opinion) Against() string {
	if o.Verdict == VerdictContradicted {
		return o.Reasons[0] // there is one at least
	}
	return ""
}

// Judge holds claims against excerpts. It is safe for concurrent use.
type Judge struct {
	reader  reader.Reader
	weights *Weights
}

// NewJudge makes a judge with the weights in the binary. The reader may be nil: then words
// alone decide, and only a claim that has all its words from the excerpts is supported.
func NewJudge(r reader.Reader) *Judge { return NewJudgeWith(shipped(), r) }

// NewJudgeWith makes a judge with other weights.
func NewJudgeWith(w *Weights, r reader.Reader) *Judge { return &Judge{r, w} }

// Limits of what is judged.
const (
	maxClaimChars    = 2000
	maxEvidenceChars = 1 << 20
	minWords         = 2 // content words of a claim
)

// Judge gives its opinion of a claim. Where the reader fails it judges by the words; an
// error means only that ctx ended.
func (j *Judge) Judge(ctx context.Context, claim string, excerpts []Excerpt) (Opinion, error) {
	chars := 0
	for _, x := range excerpts {
		chars += len(x.Text) + len(x.Heading)
	}
	if chars > maxEvidenceChars || len(claim) > maxClaimChars {
		return Opinion{Verdict: VerdictUnchecked, Reasons: []string{"there is too much text to compare"}}, nil
	}
	p := newEvidenced(claim, excerpts)
	if p.verbatim() {
		return Opinion{Verdict: VerdictSupported, Support: 1, Reasons: []string{"the claim stands in the excerpts as it is"}}, nil
	}
	if why := p.unreadable(); why != "" {
		return Opinion{Verdict: VerdictUnchecked, Reasons: []string{why}}, nil
	}
	r, err := p.measure(ctx, j.reader)
	if err != nil {
		return Opinion{}, err
	}
	m := &j.weights.Words
	if r.Read {
		m = &j.weights.Reader
	}
	o := Opinion{Support: m.Support.Score(r.Values)}
	o.Conflict = r.Contradicted * (1 - o.Support)
	o.Verdict, o.Reasons = p.verdict(o, m.Cuts, r), p.reasons(r)
	return o, nil
}

// ClaimReading is a claim beside its excerpts in numbers, for fitting and measuring.
type ClaimReading struct {
	Values []float64 // in the order of FeatureNames
	Read   bool      // a reader has read them
	// Entailed and Contradicted are what the reader says, the mean of all it was asked;
	// most is the most that it says for the claim.
	Entailed, Contradicted, most float64
	found                        findings
}

// Ruled reports that support is ruled out, however likely: there is a sign against the
// claim, or the reader does not find it entailed, or contradicted as well. Without a
// reader every content word must be in the excerpts, and most of them side by side.
func (r ClaimReading) Ruled(c Cuts) bool {
	if !r.Read {
		return r.Otherwise() || len(r.found.missing) > 0 || r.found.denying || r.Values[pairsAt] < nearlyCopied
	}
	return r.Otherwise() || r.Entailed < c.Entailed || r.Contradicted >= mostDenied
}

// Opposed reports that words are against the claim and the reader does not find it
// entailed at all: then the claim is contradicted if the reader says so.
func (r ClaimReading) Opposed() bool {
	return (r.Otherwise() || r.found.denying) && r.most < unentailed
}

// Otherwise reports signs against the claim: numbers and names that the excerpts lack, and
// what turns its sense.
func (r ClaimReading) Otherwise() bool {
	return len(r.found.numbers)+len(r.found.names)+len(r.found.flips) > 0
}

// ReadClaim measures a pair. An error means only that ctx ended.
func ReadClaim(ctx context.Context, r reader.Reader, claim string, excerpts []Excerpt) (ClaimReading, error) {
	return newEvidenced(claim, excerpts).measure(ctx, r)
}

func (p *evidenced) measure(ctx context.Context, r reader.Reader) (ClaimReading, error) {
	out := ClaimReading{found: p.look()}
	out.Values = p.lexical(out.found)
	if r == nil {
		return out, nil
	}
	asked := p.pairs()
	said, err := r.Relate(ctx, asked)
	if err != nil || len(said) != len(asked) {
		return out, ctx.Err() // words do
	}
	out.Read = true
	out.Entailed = mean(said, func(s reader.Relation) float64 { return s.Entailed })
	out.Contradicted = mean(said, func(s reader.Relation) float64 { return s.Contradicted })
	for _, s := range said {
		out.most = max(out.most, s.Entailed)
	}
	out.Values = append(out.Values, out.Entailed, out.Contradicted, out.most, said[0].Entailed)
	return out, nil
}

// mean is that of what was said, of the logarithms of its odds: one that is sure counts more.
func mean(said []reader.Relation, of func(reader.Relation) float64) float64 {
	sum := 0.0
	for _, s := range said {
		p := min(max(of(s), 1e-6), 1-1e-6)
		sum += math.Log(p / (1 - p))
	}
	return 1 / (1 + math.Exp(-sum/float64(len(said))))
}

// unreadable says why claim and excerpts cannot be compared, or nothing.
func (p *evidenced) unreadable() string {
	var tokens []lexicon.Token
	for _, s := range p.sentences {
		tokens = append(tokens, s.tokens...)
	}
	foreign := func(tokens []lexicon.Token) bool { // too few of the little words of English
		stops := 0
		for _, t := range tokens {
			if t.Stop {
				stops++
			}
		}
		return len(tokens) >= 8 && stops*12 < len(tokens)
	}
	switch {
	case len(p.words) < minWords:
		return "the claim has too few words to compare"
	case len(tokens) == 0:
		return "the excerpts have no text"
	case foreign(p.claim.tokens) || foreign(tokens):
		return "the texts are not both English"
	}
	return ""
}

const (
	// mostDenied is how likely no part of the excerpts may contradict a supported claim, and
	// unentailed how likely one that they do not support at all may follow from them.
	mostDenied, unentailed = 0.5, 0.1
	// sameWording and nearlyCopied are the shares of a claim's pairs of words that the
	// excerpts have where words alone decide against it, and for it.
	sameWording, nearlyCopied = 0.6, 0.8
	// absent and partShare are the shares of a claim's words under which the excerpts speak
	// of something else, and under which they may.
	absent, partShare = 0.15, 0.34
)

// verdict is the rule. Probability alone never makes a contradiction.
func (p *evidenced) verdict(o Opinion, c Cuts, r ClaimReading) Verdict {
	switch held := r.Values[0]; {
	case r.Opposed() && r.Contradicted >= c.Contradicted, !r.Read && r.found.outright && r.Values[pairsAt] >= sameWording:
		return VerdictContradicted
	case held < absent && r.most < c.Entailed, held < partShare && r.Read && r.most < unentailed:
		return VerdictUnsupported
	case r.Ruled(c):
		return VerdictPartial
	case o.Support < c.Supported:
		return VerdictUnchecked
	}
	return VerdictSupported
}

// reasons are what speaks for and against a claim: first what differs, then what is
// missing, then what the reader says.
func (p *evidenced) reasons(r ClaimReading) []string {
	out := slices.Clone(r.found.flips)
	if r.found.denying {
		out = append(out, "the claim denies, and the excerpts do not in such words")
	}
	for _, l := range []struct {
		what string
		list []string
	}{{"numbers that are not in the excerpts: ", r.found.numbers}, {"names that are not in the excerpts: ", r.found.names}, {"not in the excerpts: ", r.found.missing}} {
		if len(l.list) > 0 {
			out = append(out, l.what+strings.Join(l.list[:min(4, len(l.list))], ", "))
		}
	}
	if r.Read {
		out = append(out, fmt.Sprintf("read together: entailed %.2f, contradicted %.2f", r.Entailed, r.Contradicted))
	}
	return append(out, fmt.Sprintf("%.0f%% of the claim's words are in the excerpts, %.0f%% in three sentences together", 100*r.Values[0], 100*r.Values[1]))
}

// CheckSupport judges the claims of a result once more that were not called quoted or
// unsupported, each by the excerpts that it cites, and notes on the report which of
// them the excerpts deny or say nothing of. What the judge merely cannot confirm is no
// problem. The reader may be nil. An error means only that ctx ended.
func CheckSupport(ctx context.Context, r reader.Reader, res *marchwarden.Result, report *Report) error {
	j := NewJudge(r)
	for i, c := range res.Claims {
		if c.Support == marchwarden.Quoted || c.Support == marchwarden.Unsupported || report.Claims[i].Problem != "" {
			continue
		}
		var excerpts []Excerpt
		for _, n := range c.Citations {
			if x := res.Citations[n-1]; x.RawExcerpt != marchwarden.ExcerptNonText {
				excerpts = append(excerpts, Excerpt{Heading: x.Title, Text: x.RawExcerpt})
			}
		}
		o, err := j.Judge(ctx, c.Text, excerpts)
		if err != nil {
			return err
		}
		if o.Verdict.Wire() == marchwarden.Unsupported {
			report.Claims[i].Problem = fmt.Sprintf("it is called %s, and judged again it is %s: %s", c.Support, o.Verdict, strings.Join(o.Reasons[:min(maxReasons, len(o.Reasons))], "; "))
		}
	}
	return nil
}

// maxReasons is how much of an opinion a problem names.
const maxReasons = 3
