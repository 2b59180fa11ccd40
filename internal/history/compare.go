package history

import (
	"slices"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
)

// Kind says how something of two results stands to each other.
type Kind string

// The kinds.
const (
	Both    Kind = "both"    // in both, the same
	Changed Kind = "changed" // in both, and not the same
	Moved   Kind = "moved"   // the same text of a source at another place
	OnlyA   Kind = "only_a"
	OnlyB   Kind = "only_b"
)

// Comparison is two results side by side. In every list what A has comes first, in its
// order, and what only B has after it.
type Comparison struct {
	A, B    Side
	Claims  []ClaimPair
	Sources []SourcePair
	Gaps    []GapPair
	Factors []Factor // of the confidence, itself first
}

// Side is what one result says in numbers.
type Side struct {
	TraceID                                 marchwarden.TraceID
	Confidence                              marchwarden.Unit
	Factors                                 marchwarden.ConfidenceFactors
	Cost                                    marchwarden.CostMetadata
	Claims, Citations, Gaps, Contradictions int
}

// SourcePair is a cited document. A or B is nil where it is in one only.
type SourcePair struct {
	Kind Kind
	A, B *Source
	// Shared is how many excerpts of it both cite.
	Shared int
}

// Source is a document that a result cites.
type Source struct {
	Locator   string // as it is first cited
	Title     string
	Published string
	Authority marchwarden.Authority
	Citations []int // counted from one

	hashes   map[string]bool
	excerpts map[string]bool
}

// GapPair is something that was not found. A or B is nil where only one looked for it in
// vain; Changed is a gap with another reason.
type GapPair struct {
	Kind Kind
	A, B *marchwarden.Gap
}

// Factor is the confidence or one of its factors, by its name in the wire form.
type Factor struct {
	Name string
	A, B string
	Same bool
}

// Compare holds two results against each other. It looks at nothing but them; nil is a
// result with nothing in it. The same results give the same comparison.
func Compare(a, b *marchwarden.Result) Comparison {
	if a == nil {
		a = &marchwarden.Result{}
	}
	if b == nil {
		b = &marchwarden.Result{}
	}
	ca, cb := claimsOf(a), claimsOf(b)
	c := Comparison{A: sideOf(a), B: sideOf(b), Claims: pairClaims(ca, cb), Sources: pairSources(sourcesOf(a), sourcesOf(b)), Gaps: pairGaps(a.Gaps, b.Gaps)}
	c.A.Claims, c.B.Claims = len(ca), len(cb)
	c.Factors = factorsOf(c.A, c.B)
	return c
}

// Same reports whether claims, sources, gaps and confidence are the same.
func (c Comparison) Same() bool {
	return !slices.ContainsFunc(c.Claims, func(p ClaimPair) bool { return p.Kind != Both || p.Support }) &&
		!slices.ContainsFunc(c.Sources, func(p SourcePair) bool { return p.Kind != Both }) &&
		!slices.ContainsFunc(c.Gaps, func(p GapPair) bool { return p.Kind != Both }) &&
		!slices.ContainsFunc(c.Factors, func(f Factor) bool { return !f.Same })
}

func sideOf(r *marchwarden.Result) Side {
	return Side{TraceID: r.TraceID, Confidence: r.Confidence, Factors: r.ConfidenceFactors, Cost: r.CostMetadata,
		Citations: len(r.Citations), Gaps: len(r.Gaps), Contradictions: len(r.Contradictions)}
}

// factorsOf are the confidence and what it was computed from, side by side.
func factorsOf(a, b Side) []Factor {
	unit := func(u marchwarden.Unit) string { return strconv.FormatFloat(float64(u), 'f', 2, 64) }
	list := func(s Side) []string {
		f := s.Factors
		return []string{unit(s.Confidence), strconv.Itoa(f.NumCorroboratingSources), string(f.SourceAuthority), strconv.FormatBool(f.ContradictionDetected),
			unit(f.QuerySpecificityMatch), strconv.FormatBool(f.BudgetExhausted), string(f.Recency)}
	}
	names := []string{"confidence", "num_corroborating_sources", "source_authority", "contradiction_detected", "query_specificity_match", "budget_exhausted", "recency"}
	inA, inB := list(a), list(b)
	out := make([]Factor, len(names))
	for i, name := range names {
		out[i] = Factor{Name: name, A: inA[i], B: inB[i], Same: inA[i] == inB[i]}
	}
	return out
}

// sourcesOf are the documents that a result cites, in the order in which it does.
func sourcesOf(r *marchwarden.Result) []*Source {
	var all []*Source
	at := map[string]*Source{}
	for i, c := range r.Citations {
		s := at[place(c.Locator)]
		if s == nil {
			s = &Source{Locator: c.Locator, Title: c.Title, Published: c.Published, Authority: c.Authority, hashes: map[string]bool{}, excerpts: map[string]bool{}}
			at[place(c.Locator)], all = s, append(all, s)
		}
		s.Citations = append(s.Citations, i+1)
		if c.ContentHash != "" {
			s.hashes[c.ContentHash] = true
		}
		if text := evidence.Fold(c.RawExcerpt); text != "" && c.RawExcerpt != marchwarden.ExcerptNonText {
			s.excerpts[text] = true
		}
	}
	return all
}

// place is where a document is, by which citations of it are put together: a line or a
// page within it does not count.
func place(loc string) string {
	if canonical, ok := locator.Canonical(loc); ok {
		return canonical
	}
	document, _, _ := strings.Cut(loc, "#")
	return document
}

// pairSources puts the documents of two results together: first those at the same place,
// then those with the same text.
func pairSources(a, b []*Source) []SourcePair {
	byPlace, byHash := map[string]*Source{}, map[string][]*Source{}
	for _, s := range b {
		byPlace[place(s.Locator)] = s
	}
	partner, taken := make([]*Source, len(a)), map[*Source]bool{}
	for i, s := range a {
		if other := byPlace[place(s.Locator)]; other != nil {
			partner[i], taken[other] = other, true
		}
	}
	for _, s := range b {
		for hash := range s.hashes {
			if !taken[s] {
				byHash[hash] = append(byHash[hash], s)
			}
		}
	}
	var out []SourcePair
	for i, s := range a {
		if partner[i] != nil {
			out = append(out, SourcePair{Kind: alike(s, partner[i]), A: s, B: partner[i], Shared: common(s.excerpts, partner[i].excerpts)})
			continue
		}
		if other := movedTo(s, byHash, taken); other != nil {
			taken[other] = true
			out = append(out, SourcePair{Kind: Moved, A: s, B: other, Shared: common(s.excerpts, other.excerpts)})
			continue
		}
		out = append(out, SourcePair{Kind: OnlyA, A: s})
	}
	for _, s := range b {
		if !taken[s] {
			out = append(out, SourcePair{Kind: OnlyB, B: s})
		}
	}
	return out
}

// movedTo is the first source of the other result that is not taken and has a text of s; nil if there is
// none.
func movedTo(s *Source, byHash map[string][]*Source, taken map[*Source]bool) *Source {
	var found *Source
	for hash := range s.hashes {
		for _, other := range byHash[hash] {
			if !taken[other] && (found == nil || other.Citations[0] < found.Citations[0]) {
				found = other
			}
		}
	}
	return found
}

// alike says whether a document at one place has the same text in both. Where a text was
// not stored, nothing speaks against it.
func alike(a, b *Source) Kind {
	if len(a.hashes) > 0 && len(b.hashes) > 0 && common(a.hashes, b.hashes) == 0 {
		return Changed
	}
	return Both
}

func common(a, b map[string]bool) int {
	n := 0
	for k := range a {
		if b[k] {
			n++
		}
	}
	return n
}

// pairGaps puts gaps of one category about one topic together.
func pairGaps(a, b []marchwarden.Gap) []GapPair {
	key := func(g marchwarden.Gap) string { return string(g.Category) + " " + fold(g.Topic) }
	rest := map[string][]*marchwarden.Gap{}
	for i := range b {
		rest[key(b[i])] = append(rest[key(b[i])], &b[i])
	}
	paired := map[*marchwarden.Gap]bool{}
	var out []GapPair
	for i := range a {
		same := rest[key(a[i])]
		if len(same) == 0 {
			out = append(out, GapPair{Kind: OnlyA, A: &a[i]})
			continue
		}
		p := GapPair{Kind: Both, A: &a[i], B: same[0]}
		if fold(p.A.Detail) != fold(p.B.Detail) {
			p.Kind = Changed
		}
		rest[key(a[i])], paired[same[0]] = same[1:], true
		out = append(out, p)
	}
	for i := range b {
		if !paired[&b[i]] {
			out = append(out, GapPair{Kind: OnlyB, B: &b[i]})
		}
	}
	return out
}
