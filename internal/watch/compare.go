package watch

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// State is what became of a claim, or of a source.
type State string

// The states that are news.
const (
	New          State = "new"          // it rests on what was not read before
	Gone         State = "gone"         // its evidence is, and the answer does not say it any more; a source: its place has none
	Changed      State = "changed"      // its evidence reads otherwise, and so does the answer; a source: a cited passage
	Contradicted State = "contradicted" // evidence of now cannot hold beside it
	Weakened     State = "weakened"     // it lost some of its evidence
	Retracted    State = "retracted"    // a registry says that the paper was taken back
)

// The states that are none. A claim that stands as it did is only counted.
const (
	unchanged   State = "unchanged"
	Unsure      State = "unsure"      // its sources could not be had, and the answer does not say it now
	Unsaid      State = "unsaid"      // its evidence stands, and the answer leaves it out now
	Also        State = "also"        // the answer says it now, and the evidence was read before
	Unreachable State = "unreachable" // of a source: that is not gone, and nothing is known
)

var news = []State{Contradicted, Gone, Changed, Weakened, Retracted, New}

// Report is an answer held against the one before. It is what a program for notice gets as
// JSON; fields are only ever added.
type Report struct {
	ID       marchwarden.TraceID `json:"id"` // of the watched question
	Question string              `json:"question"`
	At       time.Time           `json:"at"`
	TraceID  marchwarden.TraceID `json:"trace_id,omitzero"` // the answer
	Before   marchwarden.TraceID `json:"before,omitzero"`   // the answer before; the first has none
	Failed   string              `json:"failed,omitempty"`  // why there is no answer
	// Claims are those that do not stand as they did, and Unchanged how many do.
	Claims    []Claim  `json:"claims"`
	Unchanged int      `json:"unchanged"`
	Sources   []Source `json:"sources"` // of the answer before, and retracted ones of this one
	// Untold says that the program for notice is still to run, and Notice why it failed.
	Untold bool   `json:"untold,omitempty"`
	Notice string `json:"notice,omitempty"`
}

// Claim is a sentence of one of the two answers.
type Claim struct {
	State   State    `json:"state"`
	Text    string   `json:"text"`
	Now     string   `json:"now,omitempty"` // what the answer says in its place
	Sources []string `json:"sources,omitempty"`
	Detail  string   `json:"detail,omitempty"` // what contradicts it
}

// Source is a cited document that is not what it was.
type Source struct {
	State   State  `json:"state"`
	Locator string `json:"locator"`
	Title   string `json:"title,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// News reports whether there is something to tell.
func (r Report) News() bool {
	return slices.ContainsFunc(r.Claims, func(c Claim) bool { return slices.Contains(news, c.State) }) ||
		slices.ContainsFunc(r.Sources, func(s Source) bool { return s.State != Unreachable })
}

// comparison is two answers and what is known of the first one's evidence.
type comparison struct {
	before, after *marchwarden.Result
	texts         []string          // that were read for the answer before
	drifted       drift.Report      // of the answer before
	retracted     map[string]string // locators of papers that were taken back, each with what is known of it
	told          []string          // of these, those that were reported before
}

// report says what changed.
func (c comparison) report(ctx context.Context) (r Report) {
	r.Claims, r.Sources = []Claim{}, c.sources()
	add := func(claim Claim) {
		if claim.State == unchanged {
			r.Unchanged++
			return
		}
		r.Claims = append(r.Claims, claim)
	}
	pairs := c.rejoined(pairsOf(c.before.Claims, c.after.Claims))
	for i, p := range pairs { // those of the answer before come first, in its order
		if p.a == nil {
			add(c.fresh(*p.b))
			continue
		}
		claim, taken := c.old(ctx, i, p)
		if add(claim); p.b != nil && !taken {
			add(c.fresh(*p.b))
		}
	}
	return r
}

// rejoined also pairs claims that are worded otherwise and rest on the same passages.
func (c comparison) rejoined(pairs []pair) []pair {
	for i, a := range pairs {
		if a.a == nil || a.b != nil && (!a.changed || c.samePassages(*a.a, *a.b)) {
			continue
		}
		j := slices.IndexFunc(pairs, func(b pair) bool {
			return b.a == nil && c.samePassages(*a.a, *b.b)
		})
		if j < 0 {
			continue
		}
		pairs[i].b, pairs[j].b = pairs[j].b, a.b // one that was only alike is free again
		if a.b == nil {
			pairs = slices.Delete(pairs, j, j+1)
		}
	}
	return pairs
}

// old is what became of a claim of the answer before, and whether the claim that it is paired
// with speaks for it. One that is only alike does if the evidence is not what it was.
func (c comparison) old(ctx context.Context, i int, p pair) (claim Claim, taken bool) {
	hold := drift.Unsure
	if i < len(c.drifted.Claims) {
		hold = c.drifted.Claims[i].State
	}
	claim = Claim{Text: p.a.Text, Sources: locatorsOf(c.before, *p.a)}
	same := p.b != nil && (!p.changed || c.samePassages(*p.a, *p.b))
	taken = same || p.b != nil && hold != drift.Kept && !c.known(*p.b)
	if taken && p.a.Text != p.b.Text {
		claim.Now = p.b.Text
	}
	paper := slices.IndexFunc(claim.Sources, c.takenBack)
	switch against := c.against(ctx, *p.a); {
	case paper >= 0:
		claim.State, claim.Detail = Retracted, c.retracted[claim.Sources[paper]]
	case against != "":
		claim.State, claim.Detail = Contradicted, against
	case hold == drift.Lost && taken, hold == drift.Unsure && taken && !same:
		claim.State = Changed
	case hold == drift.Lost:
		claim.State = Gone
	case hold == drift.Weakened:
		claim.State = Weakened
	case same:
		claim.State = unchanged
	case hold == drift.Unsure:
		claim.State = Unsure
	default:
		claim.State = Unsaid
	}
	return claim, taken
}

// fresh is a claim that the answer before did not have.
func (c comparison) fresh(b marchwarden.Claim) Claim {
	claim := Claim{State: New, Text: b.Text, Sources: locatorsOf(c.after, b)}
	if c.known(b) {
		claim.State = Also
	}
	return claim
}

// sources are the documents of the answer before that are not what they were where they are cited,
// and papers of either answer that were taken back since.
func (c comparison) sources() []Source {
	all := []Source{}
	for _, s := range c.drifted.Sources {
		out := Source{Locator: s.Locator, Title: s.Title, Detail: s.Detail}
		lost := slices.ContainsFunc(s.Citations, func(n int) bool {
			return n >= 1 && n <= len(c.drifted.Passages) && (c.drifted.Passages[n-1].State == drift.Altered || c.drifted.Passages[n-1].State == drift.Missing)
		})
		switch {
		case s.Why == drift.Gone:
			out.State = Gone
		case s.State == drift.Unreachable:
			out.State = Unreachable
		case lost:
			out.State = Changed
		default:
			continue
		}
		all = append(all, out)
	}
	for _, res := range []*marchwarden.Result{c.before, c.after} {
		for _, cited := range res.Citations {
			if c.takenBack(cited.Locator) && !slices.ContainsFunc(all, func(s Source) bool { return s.State == Retracted && s.Locator == cited.Locator }) {
				all = append(all, Source{State: Retracted, Locator: cited.Locator, Title: cited.Title, Detail: c.retracted[cited.Locator]})
			}
		}
	}
	return all
}

// takenBack reports whether it is news that a paper was taken back.
func (c comparison) takenBack(locator string) bool {
	_, is := c.retracted[locator]
	return is && !slices.Contains(c.told, locator)
}

// known reports whether all that a claim of the answer rests on stood in what was read for the answer before.
func (c comparison) known(b marchwarden.Claim) bool {
	return !slices.ContainsFunc(cited(c.after, b), func(by marchwarden.Citation) bool { return !c.read(by) })
}

func (c comparison) read(by marchwarden.Citation) bool {
	quote := drift.Quote(by)
	return slices.ContainsFunc(c.before.Citations, func(was marchwarden.Citation) bool {
		return by.ContentHash != "" && was.ContentHash == by.ContentHash || evidence.Fold(drift.Quote(was)) == evidence.Fold(quote)
	}) || slices.ContainsFunc(c.texts, func(text string) bool {
		_, ok := evidence.Locate(text, quote)
		return ok
	})
}

// samePassages reports whether two claims rest on the same excerpts.
func (c comparison) samePassages(a, b marchwarden.Claim) bool {
	quotes := func(res *marchwarden.Result, claim marchwarden.Claim) (all []string) {
		for _, by := range cited(res, claim) {
			all = append(all, evidence.Fold(drift.Quote(by)))
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	was := quotes(c.before, a)
	return len(was) > 0 && slices.Equal(was, quotes(c.after, b))
}

// against is what the evidence of now says that cannot hold beside an excerpt of a claim; "" for nothing.
func (c comparison) against(ctx context.Context, a marchwarden.Claim) string {
	const then = "then " // before a locator: the page of that time is another document
	var set evidence.Set
	place := map[string]bool{}
	for _, by := range cited(c.before, a) {
		place[then+by.Locator+by.RawExcerpt] = true
		set.Add(fetch.Page{Locator: then + by.Locator + by.RawExcerpt}, drift.Quote(by))
	}
	now := map[string]string{}
	for _, by := range c.after.Citations {
		if !c.read(by) {
			now[by.Locator+by.RawExcerpt] = by.Locator
			set.Add(fetch.Page{Locator: by.Locator + by.RawExcerpt}, drift.Quote(by))
		}
	}
	if len(place) == 0 || len(now) == 0 {
		return ""
	}
	var among []evidence.ID
	for _, p := range set.Passages() {
		among = append(among, p.ID)
	}
	for _, found := range verify.Contradictions(ctx, nil, "", &set, among) {
		was, is := found.A, found.B
		if place[is.Locator] {
			was, is = is, was
		}
		if place[was.Locator] && now[is.Locator] != "" && about(a.Text, was.RawExcerpt) {
			return strings.TrimSpace(is.RawExcerpt) + " (" + now[is.Locator] + ")"
		}
	}
	return ""
}

// about reports whether a sentence has half of a claim's words: an excerpt may speak of other things, too.
func about(claim, sentence string) bool {
	words, has, common := lexicon.Terms(claim), lexicon.Terms(sentence), 0
	for _, w := range words {
		if slices.Contains(has, w) {
			common++
		}
	}
	return 2*common >= min(len(words), len(has))
}

// cited are the citations of a claim.
func cited(res *marchwarden.Result, claim marchwarden.Claim) (all []marchwarden.Citation) {
	for _, n := range claim.Citations {
		if n >= 1 && n <= len(res.Citations) {
			all = append(all, res.Citations[n-1])
		}
	}
	return all
}

func locatorsOf(res *marchwarden.Result, claim marchwarden.Claim) (all []string) {
	for _, by := range cited(res, claim) {
		if !slices.Contains(all, by.Locator) {
			all = append(all, by.Locator)
		}
	}
	return all
}

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
