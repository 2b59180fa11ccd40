package extractive

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// Limits of a plan.
const (
	maxQueries   = 4    // in one iteration
	coveredFloor = 0.6  // share of a part that one sentence with its neighbours must hold
	bridgeFloor  = 0.3  // share of the question that a sentence must hold for its names to be followed
	leastGlance  = 600  // tokens
	settledFloor = 0.85 // share of the question from which a narrow question is settled
)

// Plan searches for the question and its parts first. Later it looks at what
// was found, and searches for what is missing and for names met beside the
// question's words. No query is asked twice.
func (*Reasoner) Plan(ctx context.Context, st *reason.State) (reason.Plan, error) {
	if err := ended(ctx); err != nil {
		return reason.Plan{}, err
	}
	q := analyse(st.Request.Question, st.Request.Context, st.Now.Year())
	if len(q.terms) == 0 {
		return reason.Plan{Decision: "The question has no word that could be searched for."}, nil
	}
	if len(st.Searches) == 0 {
		return opening(&q), nil
	}
	return followUp(st, &q), nil
}

// queries collects searches, each once and none that was run.
type queries struct {
	done map[string]bool
	list []reason.Search
}

func newQueries(ran []reason.Searched) *queries {
	qs := &queries{done: map[string]bool{}}
	for _, s := range ran {
		qs.done[queryKey(s.Query)] = true
	}
	return qs
}

// queryKey makes queries of the same words the same query.
func queryKey(s string) string {
	stems := lexicon.Terms(s)
	if len(stems) == 0 {
		return strings.ToLower(s)
	}
	slices.Sort(stems)
	return strings.Join(slices.Compact(stems), " ")
}

func (qs *queries) add(query, why string) {
	query = strings.TrimSpace(query)
	key := queryKey(query)
	if query == "" || qs.done[key] || len(qs.list) >= maxQueries {
		return
	}
	qs.done[key] = true
	qs.list = append(qs.list, reason.Search{Query: query, Reason: why})
}

func opening(q *question) reason.Plan {
	qs := newQueries(nil)
	qs.add(contentWords(q), "the words of the question")
	for _, p := range q.phrases {
		qs.add(p, "quoted in the question")
	}
	if len(q.parts) > 1 {
		for _, i := range evenly(len(q.parts), maxQueries-1) {
			qs.add(q.parts[i].query, fmt.Sprintf("one part of the question: %s", q.parts[i].label))
		}
	}
	if len(q.names) > 0 && len(q.names) <= 3 {
		for _, n := range q.names {
			qs.add(n, "a name in the question")
		}
	}
	if names := contextNames(q); len(names) > 0 {
		qs.add(contentWords(q)+" "+strings.Join(names, " "), "the question with the names of the context")
	}
	d := fmt.Sprintf("A question of the kind %q: searching for its %s.", q.kind, plural(len(q.terms), "word", "words"))
	if len(q.parts) > 1 {
		d = fmt.Sprintf("A question of %d parts (%s): searching for the whole and for its parts.", len(q.parts), partLabels(q))
	}
	return reason.Plan{Searches: qs.list, Decision: d}
}

// contextNames are the first two names of the context that the question lacks.
func contextNames(q *question) []string {
	var out []string
	for _, n := range q.given {
		if len(out) < 2 && !slices.Contains(q.names, n) {
			out = append(out, n)
		}
	}
	return out
}

// contentWords is the question without the words that only ask, unless nothing
// else is in it.
func contentWords(q *question) string {
	var words, all []string
	for _, t := range q.terms {
		all = append(all, t.text)
		if !lightWords[t.stem] || t.name {
			words = append(words, t.text)
		}
	}
	if len(words) < 2 {
		words = all
	}
	return strings.Join(words, " ")
}

// evenly picks n of total positions, spread over all, first and last included.
func evenly(total, n int) []int {
	if total <= n {
		n = total
	}
	out := make([]int, 0, n)
	for i := range n {
		at := 0
		if n > 1 {
			at = i * (total - 1) / (n - 1)
		}
		out = append(out, at)
	}
	return slices.Compact(out)
}

func followUp(st *reason.State, q *question) reason.Plan {
	if len(st.Evidence.Sources()) == 0 {
		return broaden(st, q)
	}
	full := st.Meter.Usage().Sources >= st.Limits.MaxSources
	ranked := evidence.Pack(rank(q, st.Evidence, wanted(st.Limits, len(q.parts))), glance(st))
	if len(ranked) == 0 {
		return broaden(st, q)
	}
	r, _ := study(st, q, ranked, 0)
	if len(r.sents) == 0 {
		return reason.Plan{Decision: "The token budget has no room left to look at what was found."}
	}
	qs := newQueries(st.Searches)
	missing := r.openParts()
	for _, p := range missing {
		qs.add(q.parts[p].query, fmt.Sprintf("nothing read so far answers %q", q.parts[p].label))
	}
	uncovered := r.uncovered()
	for _, t := range uncovered {
		qs.add(q.terms[t].text, fmt.Sprintf("%q stands in nothing read so far", q.terms[t].text))
	}
	complete := len(missing) == 0 && len(uncovered) == 0
	if !q.nameAmong(uncovered) && st.Iteration <= 1+st.Limits.MaxIterations/2 && (q.broad || !complete || !r.settled()) {
		qs.follow(r.bridges())
	}
	if full {
		if !complete && len(qs.list) > 0 {
			st.Meter.Exhaust(fmt.Sprintf("cap of %d sources", st.Limits.MaxSources))
		}
		return reason.Plan{Complete: complete, Decision: fmt.Sprintf("The cap of %d sources is reached.", st.Limits.MaxSources)}
	}
	return reason.Plan{Searches: qs.list, Complete: complete, Decision: decision(q, qs, missing, uncovered)}
}

// glance is how many tokens one look at the evidence between iterations may
// cost: half of the budget, spread over all iterations, and a few passages at
// least.
func glance(st *reason.State) int {
	return max(leastGlance, st.Limits.TokenBudget/(2*max(1, st.Limits.MaxIterations)))
}

func decision(q *question, qs *queries, missing, uncovered []int) string {
	lacks := make([]string, 0, len(missing)+len(uncovered))
	for _, p := range missing {
		lacks = append(lacks, q.parts[p].label)
	}
	for _, t := range uncovered {
		lacks = append(lacks, q.terms[t].text)
	}
	switch {
	case len(qs.list) == 0 && len(lacks) == 0:
		return "All parts of the question are covered and no new name is worth following."
	case len(qs.list) == 0:
		return fmt.Sprintf("No further query would help with what is missing: %s.", listed(lacks, 4))
	case len(lacks) == 0:
		return fmt.Sprintf("All words are covered; following %s met beside them.", plural(len(qs.list), "name", "names"))
	}
	return fmt.Sprintf("Still missing: %s.", listed(lacks, 4))
}

// broaden searches single words when whole queries found nothing to read.
func broaden(st *reason.State, q *question) reason.Plan {
	qs := newQueries(st.Searches)
	terms := slices.Clone(q.terms)
	slices.SortStableFunc(terms, func(a, b term) int { return cmp.Compare(b.weight, a.weight) })
	for _, t := range terms {
		if !lightWords[t.stem] {
			qs.add(t.text, "the longer queries found nothing to read")
		}
	}
	d := "Nothing was found to read; trying single words."
	if len(qs.list) == 0 {
		d = "Nothing was found to read and every word has been tried."
	}
	return reason.Plan{Searches: qs.list, Decision: d}
}

// openParts are the parts that no sentence answers yet.
func (r *reading) openParts() []int {
	var open []int
	for p := range r.q.parts {
		best := 0.0
		for i := range r.sents {
			best = max(best, r.partShare(p, i))
		}
		if best < coveredFloor {
			open = append(open, p)
		}
	}
	return open
}

// nameAmong reports a name among terms. Where the very subject of a question is
// unknown, other names lead nowhere.
func (q *question) nameAmong(terms []int) bool {
	return slices.ContainsFunc(terms, func(t int) bool { return q.terms[t].name })
}

// uncovered are the terms that matter and stand in nothing read.
func (r *reading) uncovered() []int {
	held := r.anywhere()
	var out []int
	for t, tm := range r.q.terms {
		if held[t] == 0 && !lightWords[tm.stem] && !vague[tm.stem] {
			out = append(out, t)
		}
	}
	return out
}

// settled reports that one sentence with its neighbours holds nearly all that
// was asked, so that following names could only lead away from it.
func (r *reading) settled() bool {
	best := r.best()
	return best >= 0 && r.share(r.window(best)) >= settledFloor
}

// bridge is a name met beside the question's words, worth a query of its own.
type bridge struct {
	name, query, why, locator string
	weight                    float64
}

// bridges finds names in the sentences that speak most to the question. A name
// is worth more the more of the question stands beside it and the more sources
// mention it; one that the question or a title names needs no query.
func (r *reading) bridges() []bridge {
	found := map[string]*bridge{}
	sources := map[string]map[int]bool{}
	var order []*bridge
	for i := range r.sents {
		s := &r.sents[i]
		for _, n := range lexicon.Names(s.text) {
			if sources[n] == nil {
				sources[n] = map[int]bool{}
			}
			sources[n][s.source.N] = true
			if s.feat[featOwn] == 0 || s.feat[featNear] < bridgeFloor || s.feat[featThin] == 1 || !r.followable(n) {
				continue
			}
			b := found[n]
			if b == nil {
				b = &bridge{name: n}
				found[n] = b
				order = append(order, b)
			}
			if w := s.feat[featOwn] + 0.3*s.feat[featNear]; w > b.weight {
				beside := r.strongest(s)
				b.weight, b.query = w, n
				if !slices.Contains(lexicon.Terms(n), lexicon.Stem(beside)) {
					b.query += " " + beside
				}
				b.locator = s.source.Page.Locator
				b.why = fmt.Sprintf("%q was met in %s next to %q", n, path.Base(s.source.Page.Locator), beside)
			}
		}
	}
	for _, b := range order {
		b.weight += 0.2 * float64(min(len(sources[b.name]), 4))
		if strings.Contains(b.name, " ") { // "Wasatch Front" leads further than "Swiss"
			b.weight += 0.3
		}
	}
	slices.SortStableFunc(order, func(a, b *bridge) int { return cmp.Compare(b.weight, a.weight) })
	out := make([]bridge, len(order))
	for i, b := range order {
		out[i] = *b
	}
	return out
}

// follow adds up to two names that no query has had yet.
func (qs *queries) follow(bridges []bridge) {
	added := 0
	for _, b := range bridges {
		if added < 2 && !qs.asked(b.name) {
			qs.add(b.query, b.why)
			added++
		}
	}
}

// asked reports whether some query has had all the words of a name.
func (qs *queries) asked(name string) bool {
	for key := range qs.done {
		words := strings.Fields(key)
		if !slices.ContainsFunc(lexicon.Terms(name), func(s string) bool { return !slices.Contains(words, s) }) {
			return true
		}
	}
	return false
}

// scales are named after people and places and yet name neither.
var scales = stemSet("Fahrenheit Celsius Kelvin Richter Monday Tuesday Wednesday Thursday Friday Saturday Sunday")

// followable names are not in the question and not what a source is about.
func (r *reading) followable(name string) bool {
	stems := lexicon.Terms(name)
	if len(stems) == 0 || len(name) < 4 {
		return false
	}
	if !slices.ContainsFunc(stems, func(s string) bool { return !inQuestion(r.q, s) && !months[s] && !scales[s] }) {
		return false
	}
	seen := map[int]bool{}
	for i := range r.sents {
		src := r.sents[i].source
		if seen[src.N] {
			continue
		}
		seen[src.N] = true
		title := lexicon.Terms(src.Page.Title)
		if !slices.ContainsFunc(stems, func(s string) bool { return !slices.Contains(title, s) }) {
			return false
		}
	}
	return true
}

// strongest is the heaviest question word of a sentence.
func (r *reading) strongest(s *sentence) string {
	best := -1
	for t := range r.q.terms {
		if s.own[t] > 0 && (best < 0 || r.idf[t]*s.own[t] > r.idf[best]*s.own[best]) {
			best = t
		}
	}
	if best < 0 {
		return ""
	}
	return r.q.terms[best].text
}
