package history

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// ClaimPair is a claim of two results: in both as it is, in both and changed, or in one.
// A or B is nil where only one makes it.
type ClaimPair struct {
	Kind Kind
	A, B *marchwarden.Claim
	// Support says that the verdict on it is another.
	Support bool
	// Of a claim that changed, Numbers says that another number is in it, Denied that one
	// denies what the other says, and Edits is how A became B, word by word.
	Numbers bool
	Denied  bool
	Edits   []drift.Edit
}

const (
	// likeness is how much of their words two claims must share to be about the same.
	likeness = 0.6
	// maxCompared is how many claims of a result are looked at for likeness; those behind
	// them are only the same or not.
	maxCompared = 400
)

// claimsOf are the claims of a result. One that lists none has the sentences of its
// answer, of which nobody has judged how they are supported.
func claimsOf(r *marchwarden.Result) []marchwarden.Claim {
	if len(r.Claims) > 0 {
		return r.Claims
	}
	text := plain(r.Answer, len(r.Citations))
	var claims []marchwarden.Claim
	for _, s := range lexicon.Sentences(text) {
		if sentence := strings.TrimSpace(text[s.Start:s.End]); sentence != "" {
			claims = append(claims, marchwarden.Claim{Text: sentence, Support: marchwarden.Unchecked})
		}
	}
	return claims
}

// pairClaims puts the claims of two results together: first those in the same words, then
// the most alike.
func pairClaims(a, b []marchwarden.Claim) []ClaimPair {
	partner, taken := make([]int, len(a)), make([]bool, len(b))
	same := map[string][]int{}
	for j := range b {
		same[wording(b[j])] = append(same[wording(b[j])], j)
	}
	for i := range a {
		partner[i] = -1
		if left := same[wording(a[i])]; len(left) > 0 {
			partner[i], taken[left[0]] = left[0], true
			same[wording(a[i])] = left[1:]
		}
	}
	pairAlike(a, b, partner, taken)
	var out []ClaimPair
	for i := range a {
		if j := partner[i]; j >= 0 {
			out = append(out, pairOf(&a[i], &b[j]))
			continue
		}
		out = append(out, ClaimPair{Kind: OnlyA, A: &a[i]})
	}
	for j := range b {
		if !taken[j] {
			out = append(out, ClaimPair{Kind: OnlyB, B: &b[j]})
		}
	}
	return out
}

// wording is a claim as it is told whether two say the same: quotes, dashes, case, white
// space and the mark at its end do not count.
func wording(c marchwarden.Claim) string {
	return strings.TrimRightFunc(strings.ToLower(evidence.Fold(c.Text)), func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) })
}

// pairAlike finds partners for the claims that have none, the most alike first.
func pairAlike(a, b []marchwarden.Claim, partner []int, taken []bool) {
	type match struct {
		i, j int
		like float64
	}
	var all []match
	stems := make([][]string, len(b))
	for j := range min(len(b), maxCompared) {
		stems[j] = stemsOf(b[j])
	}
	for i := range min(len(a), maxCompared) {
		if partner[i] >= 0 {
			continue
		}
		own := stemsOf(a[i])
		for j := range min(len(b), maxCompared) {
			if like := alikeness(own, stems[j]); !taken[j] && like >= likeness {
				all = append(all, match{i, j, like})
			}
		}
	}
	slices.SortFunc(all, func(x, y match) int {
		return cmp.Or(cmp.Compare(y.like, x.like), cmp.Compare(x.i, y.i), cmp.Compare(x.j, y.j))
	})
	for _, m := range all {
		if partner[m.i] < 0 && !taken[m.j] {
			partner[m.i], taken[m.j] = m.j, true
		}
	}
}

// stemsOf are the words of a claim that say what it is about, each once, in order.
// Numbers are what it says about that.
func stemsOf(c marchwarden.Claim) []string {
	var stems []string
	for _, t := range lexicon.Tokens(c.Text) {
		if !t.Stop && !t.Number {
			stems = append(stems, t.Stem)
		}
	}
	slices.Sort(stems)
	return slices.Compact(stems)
}

// alikeness is the share of words that two claims have in common. Of one word alone
// nothing follows.
func alikeness(a, b []string) float64 {
	shared := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch c := strings.Compare(a[i], b[j]); {
		case c == 0:
			shared, i, j = shared+1, i+1, j+1
		case c < 0:
			i++
		default:
			j++
		}
	}
	if shared < 2 {
		return 0
	}
	return 2 * float64(shared) / float64(len(a)+len(b))
}

// pairOf says what differs between two claims about the same.
func pairOf(a, b *marchwarden.Claim) ClaimPair {
	p := ClaimPair{Kind: Both, A: a, B: b, Support: a.Support != b.Support && !(a.Support.Stands() && b.Support.Stands())}
	if wording(*a) != wording(*b) {
		p.Kind, p.Edits = Changed, drift.Diff(a.Text, b.Text)
		p.Numbers = !slices.Equal(numbersOf(a.Text), numbersOf(b.Text))
		p.Denied = lexicon.Negated(a.Text) != lexicon.Negated(b.Text)
	}
	return p
}

// number is a quantity as it is compared.
type number struct {
	value float64
	unit  string
}

// numbersOf are the numbers of a text in ascending order.
func numbersOf(s string) []number {
	var all []number
	for _, q := range lexicon.Quantities(s) {
		if !math.IsNaN(q.Value) {
			all = append(all, number{q.Value, q.Unit})
		}
	}
	slices.SortFunc(all, func(a, b number) int { return cmp.Or(cmp.Compare(a.value, b.value), strings.Compare(a.unit, b.unit)) })
	return all
}
