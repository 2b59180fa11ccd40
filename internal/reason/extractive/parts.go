package extractive

import (
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/question"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// together is the draft of a question of several clauses, put together from theirs.
type together struct {
	reason.Draft
	parts int
}

// take adds what answers one clause, or that nothing does.
func (t *together) take(d reason.Draft, p question.Part) {
	for _, c := range d.Claims[:min(1, len(d.Claims))] {
		if !slices.ContainsFunc(t.Claims, func(o reason.Claim) bool { return o.Text == c.Text }) {
			t.Claims = append(t.Claims, c)
		}
	}
	if len(d.Claims) == 0 {
		t.Closest = append(t.Closest, d.Closest...)
		t.Gaps = append(t.Gaps, marchwarden.Gap{Topic: p.Label, Category: marchwarden.SourceNotFound, Detail: "no sentence of the documents read answers this part of the question"})
		t.OpenQuestions = append(t.OpenQuestions, marchwarden.OpenQuestion{Question: asked(p.Label), Priority: marchwarden.High,
			Context: "a part of the question that no sentence of the evidence answers"})
		t.Refusal = d.Refusal
	} else {
		t.Gaps, t.OpenQuestions = append(t.Gaps, d.Gaps...), append(t.OpenQuestions, d.OpenQuestions...)
	}
	for _, c := range d.Contradictions {
		if !slices.Contains(t.Contradictions, c) {
			t.Contradictions = append(t.Contradictions, c)
		}
	}
	for _, e := range d.Discoveries {
		if !slices.Contains(t.Discoveries, e) {
			t.Discoveries = append(t.Discoveries, e)
		}
	}
	t.Match = (t.Match*float64(t.parts) + answered(d)) / float64(t.parts+1)
	t.parts++
}

// answered is how likely a draft is right: not at all where it refuses.
func answered(d reason.Draft) float64 {
	if len(d.Claims) == 0 {
		return 0
	}
	return d.Match
}

// draft is the whole, bounded as a draft of one question is.
func (t *together) draft() reason.Draft {
	d := t.Draft
	d.OpenQuestions = d.OpenQuestions[:min(maxOpen, len(d.OpenQuestions))]
	d.Closest = d.Closest[:min(closest, len(d.Closest))]
	if len(d.Claims) > 0 {
		d.Refusal, d.Closest = "", nil
	}
	return d
}
