package watch

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
)

// pair is a claim of two answers. a or b is nil where it is in one only.
type pair struct {
	a, b    *marchwarden.Claim
	changed bool // the words or the verdict differ
}

// likeness is how much of their words two claims must share to be about the same.
const likeness = 0.6

// pairsOf puts the claims of two answers together: those that say the same, and then those
// that are most alike. What a has comes first, in its order, and what only b has after it.
func pairsOf(a, b []marchwarden.Claim) (all []pair) {
	taken := make([]bool, len(b))
	for i := range a {
		all = append(all, pair{a: &a[i]})
	}
	join := func(i, j int) {
		if all[i].b == nil && !taken[j] {
			all[i].b, taken[j] = &b[j], true
		}
	}
	same := map[string][]int{}
	for j := range b {
		same[wording(b[j])] = append(same[wording(b[j])], j)
	}
	for i := range a {
		for _, j := range same[wording(a[i])] {
			join(i, j)
		}
	}
	for _, m := range alike(all, b, taken) {
		join(m.i, m.j)
	}
	for i, p := range all {
		if p.b != nil {
			judged := p.a.Support != p.b.Support && !(p.a.Support.Stands() && p.b.Support.Stands())
			all[i].changed = judged || wording(*p.a) != wording(*p.b)
		}
	}
	for j := range b {
		if !taken[j] {
			all = append(all, pair{b: &b[j]})
		}
	}
	return all
}

type match struct {
	i, j int
	like float64
}

// alike are the claims without a partner that are about the same, the most alike first. They
// are so by their words: numbers are what changes. One word alone says nothing.
func alike(all []pair, b []marchwarden.Claim, taken []bool) (found []match) {
	theirs := make([]drift.Stems, len(b))
	for j := range b {
		if !taken[j] {
			theirs[j] = drift.StemsOf(b[j].Text).Words()
		}
	}
	for i, p := range all {
		if p.b != nil {
			continue
		}
		own := drift.StemsOf(p.a.Text).Words()
		for j := range b {
			if taken[j] {
				continue
			}
			if like := own.Like(theirs[j], 2); like >= likeness {
				found = append(found, match{i, j, like})
			}
		}
	}
	slices.SortStableFunc(found, func(x, y match) int { return cmp.Compare(y.like, x.like) })
	return found
}

// wording is a claim without quotes, dashes, case, white space and the mark at its end.
func wording(c marchwarden.Claim) string {
	return strings.TrimRightFunc(strings.ToLower(evidence.Fold(c.Text)), func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) })
}
