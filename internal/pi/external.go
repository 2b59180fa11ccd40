package pi

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// External researchers are those whom the user has brought in, for a reason: one that
// gives no answer is missed, one that gives an answer is heard, and one that was left
// out is asked where ours are unsure.

// external reports whether a member is one of them. A run recorded before they were heeded has none.
func (b *book) external(name string) bool {
	return b.since(4) && !b.own(name)
}

// own reports whether a member is one of this program's researchers.
func (b *book) own(name string) bool { return b.members[name].Trust == dispatch.Own }

// unheard names the external researchers that were sent and gave no answer, and says how.
func (b *book) unheard() []string {
	var out []string
	for _, jr := range b.journeys {
		answered := func(o *journey) bool { return o.Researcher == jr.Researcher && !o.lost && o.res != nil }
		if !b.external(jr.Researcher) || slices.ContainsFunc(b.journeys, answered) {
			continue
		}
		how := jr.Researcher + " did not answer"
		if !jr.lost && jr.unasked {
			how = jr.Researcher + " was not reached"
		}
		if !slices.Contains(out, how) {
			out = append(out, how)
		}
	}
	return out
}

// mostHeard is how many sentences of an external researcher are kept beside what is written of all evidence.
const mostHeard = 5

// unsaid are the claims of an external researcher that a draft does not say, on evidence that stood the check.
func (f *findings) unsaid(d reason.Draft, jr *journey) []reason.Claim {
	words := map[string]bool{}
	for _, c := range d.Claims {
		maps.Copy(words, lexicon.TermSet(c.Text))
	}
	claims := slices.DeleteFunc(f.adopt([]*journey{jr}).Claims, func(c reason.Claim) bool { return saidBy(words, c.Text) })
	return claims[:min(mostHeard, len(claims))]
}

// saidBy reports whether words say a claim: all its numbers are among them or, where it has none, half its words.
func saidBy(words map[string]bool, claim string) bool {
	terms := lexicon.Terms(claim)
	missing := func(w string) bool { return !words[w] }
	if numbers := slices.DeleteFunc(slices.Clone(terms), func(w string) bool { return !strings.ContainsFunc(w, unicode.IsDigit) }); len(numbers) > 0 {
		return !slices.ContainsFunc(numbers, missing)
	}
	return 2*len(slices.DeleteFunc(slices.Clone(terms), missing)) >= len(terms)
}

// unsure is the confidence of a report of ours below which those are asked, too, whose scope has no word of it.
const unsure = 0.4

// seconds are the rihlas of a second opinion: by external researchers, where ours are unsure of their answer.
func (b *book) seconds(jr *journey) []Sending {
	if jr.depth > 0 || !b.asksAll(jr) || b.external(jr.Researcher) || jr.admitted == 0 || jr.res.Confidence >= unsure {
		return nil
	}
	var out []Sending
	for _, m := range b.inv.Members {
		if _, asked := b.asked[key(m.Name, jr.Question)]; b.external(m.Name) && !asked {
			out = append(out, Sending{m.Name, jr.Question, jr.Researcher + " is unsure of its answer"})
		}
	}
	return out
}
