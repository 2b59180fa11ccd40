package extractive

import (
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// together is the draft of a question of several clauses, put together from theirs.
func together(drafts []reason.Draft, parts []lexicon.Part) reason.Draft {
	var all reason.Draft
	for i, d := range drafts {
		if len(d.Claims) == 0 {
			all.Refusal, all.Closest = d.Refusal, append(all.Closest, d.Closest...)
			all.Gaps = append(all.Gaps, marchwarden.Gap{Topic: parts[i].Label, Category: marchwarden.SourceNotFound, Detail: "no sentence of the documents read answers this part of the question"})
			all.OpenQuestions = append(all.OpenQuestions, marchwarden.OpenQuestion{Question: parts[i].Question(), Priority: marchwarden.High,
				Context: "a part of the question that no sentence of the evidence answers"})
		} else {
			if !slices.ContainsFunc(all.Claims, func(o reason.Claim) bool { return o.Text == d.Claims[0].Text }) {
				all.Claims = append(all.Claims, d.Claims[0])
			}
			all.Match += d.Match / float64(len(drafts))
			all.Gaps = append(all.Gaps, d.Gaps...)
		}
		all.Contradictions, all.Discoveries = union(all.Contradictions, d.Contradictions), union(all.Discoveries, d.Discoveries)
	}
	all.OpenQuestions = all.OpenQuestions[:min(maxOpen, len(all.OpenQuestions))]
	all.Closest = all.Closest[:min(closest, len(all.Closest))]
	if len(all.Claims) > 0 {
		all.Refusal, all.Closest = "", nil
	}
	return all
}

// union adds to a list what it lacks.
func union[T comparable](list, more []T) []T {
	for _, e := range more {
		if !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}
