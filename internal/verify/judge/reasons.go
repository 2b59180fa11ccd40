package judge

import (
	"fmt"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// maxNamed is how many words a reason names.
const maxNamed = 4

// reasons are what speaks for and against a claim, as far as words and numbers
// show: first what conflicts, then what is missing, then what is there.
func (p *pair) reasons(t table) []string {
	var out []string
	for _, r := range []struct{ feature, says string }{
		{"number_conflict", "the nearest sentence gives another value in the same unit"},
		{"year_conflict", "the nearest sentence gives another year"},
		{"opposites", "the nearest sentence has a word of the opposite sense"},
		{"direction_conflict", "claim and nearest sentence point in opposite directions"},
		{"polarity_conflict", "one of claim and nearest sentence denies and the other does not"},
		{"hearsay_evidence_only", "the nearest sentence reports it as somebody's word"},
		{"doubt_evidence_only", "the nearest sentence is less certain than the claim"},
		{"scope_claim_only", "the claim is more sweeping than the nearest sentence"},
	} {
		if t.value(r.feature) > 0 {
			out = append(out, r.says)
		}
	}
	if t.value("numbers_all") < 1 {
		out = append(out, "a number of the claim is not in the excerpts")
	}
	var missing []string
	for _, tok := range p.claim.tokens {
		if !tok.Stop && !tok.Number && p.ev.has(tok.Stem) == 0 && len(missing) < maxNamed {
			missing = append(missing, tok.Text)
		}
	}
	if len(missing) > 0 {
		out = append(out, "not in the excerpts: "+strings.Join(missing, ", "))
	}
	out = append(out, fmt.Sprintf("%.0f%% of the claim's words are in the excerpts, %.0f%% in three sentences together", 100*t.value("words_all"), 100*t.value("weighted_window")))
	if c := t.value("cos_window"); c > 0 {
		out = append(out, fmt.Sprintf("nearest in meaning: %.2f of 1", c))
	}
	return out
}

// Shares reports that a sentence and texts have a content word in common.
func Shares(sentence string, texts []string) bool {
	words := map[string]bool{}
	for _, t := range texts {
		for _, w := range lexicon.Terms(t) {
			words[w] = true
		}
	}
	for _, w := range lexicon.Terms(sentence) {
		if words[w] {
			return true
		}
	}
	return false
}
