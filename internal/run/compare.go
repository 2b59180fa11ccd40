package run

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
)

// Comparison is two results side by side. In every list what A has comes first, in its
// order, and what only B has after it.
type Comparison struct {
	A, B    Side
	Claims  []Pair[marchwarden.Claim]
	Sources []Pair[Source]
	Gaps    []Pair[marchwarden.Gap]
	Factors []Factor // of the confidence, itself first
}

// Side is one of two results. A result that lists no claims has the sentences of its
// answer, unchecked.
type Side struct {
	*marchwarden.Result
	Claims []marchwarden.Claim
}

// Pair is something of two results. A or B is nil where it is in one only.
type Pair[T any] struct {
	A, B *T
	// Changed says of a claim in both that its words or its verdict differ.
	Changed bool
}

// Source is a document that a result cites.
type Source struct {
	Locator string // as it is first cited
	Title   string

	hashes []string
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
	c := Comparison{A: sideOf(a), B: sideOf(b)}
	c.Claims = pairClaims(c.A.Claims, c.B.Claims)
	// Documents at the same place belong together, and then those with the same text.
	c.Sources = pairBy(sourcesOf(c.A.Result), sourcesOf(c.B.Result), func(s Source) []string { return []string{place(s.Locator)} }, func(s Source) []string { return s.hashes })
	c.Gaps = pairBy(c.A.Gaps, c.B.Gaps, func(g marchwarden.Gap) []string { return []string{string(g.Category) + " " + fold(g.Topic)} })
	c.Factors = factorsOf(c.A, c.B)
	return c
}

func sideOf(r *marchwarden.Result) Side {
	if r == nil {
		r = &marchwarden.Result{}
	}
	s := Side{Result: r, Claims: r.Claims}
	if len(r.Claims) > 0 {
		return s
	}
	text := Plain(r.Answer, len(r.Citations))
	for _, span := range lexicon.Sentences(text) {
		if sentence := strings.TrimSpace(text[span.Start:span.End]); sentence != "" {
			s.Claims = append(s.Claims, marchwarden.Claim{Text: sentence, Support: marchwarden.Unchecked})
		}
	}
	return s
}

func factorsOf(a, b Side) []Factor {
	unit := func(u marchwarden.Unit) string { return strconv.FormatFloat(float64(u), 'f', 2, 64) }
	x, y := a.ConfidenceFactors, b.ConfidenceFactors
	out := []Factor{
		{Name: "confidence", A: unit(a.Confidence), B: unit(b.Confidence)},
		{Name: "num_corroborating_sources", A: strconv.Itoa(x.NumCorroboratingSources), B: strconv.Itoa(y.NumCorroboratingSources)},
		{Name: "source_authority", A: string(x.SourceAuthority), B: string(y.SourceAuthority)},
		{Name: "contradiction_detected", A: strconv.FormatBool(x.ContradictionDetected), B: strconv.FormatBool(y.ContradictionDetected)},
		{Name: "query_specificity_match", A: unit(x.QuerySpecificityMatch), B: unit(y.QuerySpecificityMatch)},
		{Name: "budget_exhausted", A: strconv.FormatBool(x.BudgetExhausted), B: strconv.FormatBool(y.BudgetExhausted)},
		{Name: "recency", A: string(x.Recency), B: string(y.Recency)},
	}
	for i, f := range out {
		out[i].Same = f.A == f.B
	}
	return out
}

// matching says which items of two lists belong together.
type matching struct {
	partner []int  // of each item of the first list, its place in the second; -1 for none
	taken   []bool // items of the second list that have a partner
}

func newMatching(a, b int) *matching {
	m := &matching{partner: make([]int, a), taken: make([]bool, b)}
	for i := range m.partner {
		m.partner[i] = -1
	}
	return m
}

func (m *matching) pair(i, j int) {
	if m.partner[i] < 0 && !m.taken[j] {
		m.partner[i], m.taken[j] = j, true
	}
}

// byKey pairs items that share a key, the first with the first.
func byKey[T any](m *matching, a, b []T, keys func(T) []string) {
	at := map[string][]int{}
	for j, item := range b {
		for _, key := range keys(item) {
			at[key] = append(at[key], j)
		}
	}
	for i, item := range a {
		for _, key := range keys(item) {
			for _, j := range at[key] {
				m.pair(i, j)
			}
		}
	}
}

func pairs[T any](m *matching, a, b []T) []Pair[T] {
	var out []Pair[T]
	for i := range a {
		p := Pair[T]{A: &a[i]}
		if j := m.partner[i]; j >= 0 {
			p.B = &b[j]
		}
		out = append(out, p)
	}
	for j := range b {
		if !m.taken[j] {
			out = append(out, Pair[T]{B: &b[j]})
		}
	}
	return out
}

func sourcesOf(r *marchwarden.Result) []Source {
	var all []Source
	at := map[string]int{}
	for _, c := range r.Citations {
		i, known := at[place(c.Locator)]
		if !known {
			i = len(all)
			at[place(c.Locator)], all = i, append(all, Source{Locator: c.Locator, Title: c.Title})
		}
		if c.ContentHash != "" && !slices.Contains(all[i].hashes, c.ContentHash) {
			all[i].hashes = append(all[i].hashes, c.ContentHash)
		}
	}
	return all
}

// place is where a document is, whatever the line or page within it.
func place(loc string) string {
	if canonical, ok := locator.Canonical(loc); ok {
		return canonical
	}
	document, _, _ := strings.Cut(loc, "#")
	return document
}

// pairBy puts items together that share a key, of each kind of keys in turn.
func pairBy[T any](a, b []T, kinds ...func(T) []string) []Pair[T] {
	m := newMatching(len(a), len(b))
	for _, keys := range kinds {
		byKey(m, a, b, keys)
	}
	return pairs(m, a, b)
}

const (
	// likeness is how much of their words two claims must share to be about the same.
	likeness = 0.6
	// maxCompared is how many claims of a result are looked at for likeness; those behind
	// them are only the same or not.
	maxCompared = 400
)

func pairClaims(a, b []marchwarden.Claim) []Pair[marchwarden.Claim] {
	m := newMatching(len(a), len(b))
	byKey(m, a, b, func(c marchwarden.Claim) []string { return []string{wording(c)} })
	pairAlike(m, a, b)
	out := pairs(m, a, b)
	for i, p := range out {
		if p.A != nil && p.B != nil {
			judged := p.A.Support != p.B.Support && !(p.A.Support.Stands() && p.B.Support.Stands())
			out[i].Changed = judged || wording(*p.A) != wording(*p.B)
		}
	}
	return out
}

// wording is a claim without quotes, dashes, case, white space and the mark at its end.
func wording(c marchwarden.Claim) string {
	return strings.TrimRightFunc(strings.ToLower(evidence.Fold(c.Text)), func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) })
}

func pairAlike(m *matching, a, b []marchwarden.Claim) {
	type match struct {
		i, j int
		like float64
	}
	var all []match
	stems := make([]Stems, len(b))
	for j := range min(len(b), maxCompared) {
		stems[j] = StemsOf(b[j].Text)
	}
	for i := range min(len(a), maxCompared) {
		if m.partner[i] >= 0 {
			continue
		}
		own := StemsOf(a[i].Text)
		for j := range min(len(b), maxCompared) {
			if like := own.Like(stems[j]); !m.taken[j] && like >= likeness {
				all = append(all, match{i, j, like})
			}
		}
	}
	slices.SortFunc(all, func(x, y match) int {
		return cmp.Or(cmp.Compare(y.like, x.like), cmp.Compare(x.i, y.i), cmp.Compare(x.j, y.j))
	})
	for _, found := range all {
		m.pair(found.i, found.j)
	}
}

// Stems are the words that say what a text is about, in order and each once. Numbers are what it
// says about that.
type Stems []string

// StemsOf are those of a text.
func StemsOf(text string) Stems {
	var stems Stems
	for _, t := range lexicon.Tokens(text) {
		if !t.Stop && !t.Number {
			stems = append(stems, t.Stem)
		}
	}
	slices.Sort(stems)
	return slices.Compact(stems)
}

// With is the words of both.
func (a Stems) With(b Stems) Stems {
	both := slices.Concat(a, b)
	slices.Sort(both)
	return slices.Compact(both)
}

// Like is the share of words that two texts have in common; one word alone says nothing.
func (a Stems) Like(b Stems) float64 {
	shared := 0
	for _, stem := range a {
		if _, ok := slices.BinarySearch(b, stem); ok {
			shared++
		}
	}
	if shared < 2 {
		return 0
	}
	return 2 * float64(shared) / float64(len(a)+len(b))
}
