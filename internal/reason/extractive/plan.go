package extractive

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// Limits of a plan.
const (
	maxQueries   = 4    // in one iteration
	coveredFloor = 0.6  // share of a part that one window must hold
	glanced      = 12   // windows that are looked at between two iterations
	followed     = 3    // names that are followed in one iteration
	bearing      = 0.3  // share of the question that a window or sentence must hold to bear on it
	settledFloor = 0.85 // share of the question from which a narrow question is settled
	thorough     = 8    // iterations from which names are followed also then: the answer may hang on another text
)

// Plan searches for the question and its parts first. Later it looks at what
// was found, and searches for what is missing and for names met beside the
// question's words. No query is asked twice.
func (*Reasoner) Plan(_ context.Context, st *reason.State) (reason.Plan, error) {
	q := lexicon.ReadQuestion(st.Request.Question, st.Request.Context)
	if len(q.Terms) == 0 {
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
		qs.done[lexicon.SameWords(s.Query)] = true
	}
	return qs
}

// add adds a search by words and meaning.
func (qs *queries) add(query, why string) { qs.put(reason.Search{Query: query, Reason: why}) }

// name adds a search for a name, or a word, as it is written.
func (qs *queries) name(query, why string) {
	qs.put(reason.Search{Query: query, Reason: why, ByWords: true})
}

func (qs *queries) put(s reason.Search) {
	s.Query = strings.TrimSpace(s.Query)
	key := lexicon.SameWords(s.Query)
	if s.Query == "" || qs.done[key] || len(qs.list) >= maxQueries {
		return
	}
	qs.done[key] = true
	qs.list = append(qs.list, s)
}

func opening(q *lexicon.Question) reason.Plan {
	qs := newQueries(nil)
	qs.add(q.Words(), "the words of the question")
	for _, p := range q.Phrases {
		qs.add(p, "quoted in the question")
	}
	d := fmt.Sprintf("A question of the kind %q: searching for its %s.", q.Kind, lexicon.Counted(len(q.Terms), "word", "words"))
	if len(q.Parts) > 1 {
		d = fmt.Sprintf("A question of %d parts: searching for the whole and for its parts.", len(q.Parts))
		for _, p := range q.Parts {
			qs.add(p.Query, fmt.Sprintf("one part of the question: %s", p.Label))
		}
	}
	if len(q.Names) > 0 && len(q.Names) <= 3 {
		for _, n := range q.Names {
			qs.name(n, "a name in the question")
		}
	}
	if len(q.Given) > 0 {
		qs.add(q.Words()+" "+strings.Join(q.Given[:min(2, len(q.Given))], " "), "the question with the names of the context")
	}
	return reason.Plan{Searches: qs.list, Decision: d}
}

func followUp(st *reason.State, q *lexicon.Question) reason.Plan {
	full := st.Meter.Usage().Sources >= st.Limits.MaxSources
	lk, _ := study(st, q, rank(q, st.Evidence, glanced), 0)
	if len(lk.windows) == 0 && len(st.Evidence.Sources()) > 0 {
		return reason.Plan{Decision: "The token budget has no room left to look at what was found."}
	}
	qs := newQueries(st.Searches)
	missing := lk.openParts()
	for _, p := range missing {
		qs.add(q.Parts[p].Query, fmt.Sprintf("nothing read so far answers %q", q.Parts[p].Label))
	}
	uncovered := lk.uncovered()
	complete := len(missing) == 0 && len(uncovered) == 0
	if !full && !lk.foreign() && st.Iteration <= lastHop(st) && (q.Broad || !complete || !lk.settled() || st.Limits.MaxIterations >= thorough) {
		qs.follow(lk.leads(trail(q, st)))
	}
	for _, t := range uncovered {
		qs.name(q.Terms[t].Text, fmt.Sprintf("%q stands in nothing read so far", q.Terms[t].Text))
	}
	if full {
		if !complete && len(qs.list) > 0 {
			st.Meter.Exhaust(budget.SourceCap(st.Limits.MaxSources))
		}
		return reason.Plan{Complete: complete, Decision: fmt.Sprintf("The cap of %d sources is reached.", st.Limits.MaxSources)}
	}
	return reason.Plan{Searches: qs.list, Complete: complete, Decision: decision(q, qs, missing, uncovered)}
}

// lastHop is the iteration in which names are followed for the last time. What is
// missing then may still be searched for by itself.
func lastHop(st *reason.State) int { return 1 + st.Limits.MaxIterations/2 }

func decision(q *lexicon.Question, qs *queries, missing, uncovered []int) string {
	lacks := make([]string, 0, len(missing)+len(uncovered))
	for _, p := range missing {
		lacks = append(lacks, q.Parts[p].Label)
	}
	for _, t := range uncovered {
		lacks = append(lacks, q.Terms[t].Text)
	}
	switch {
	case len(lacks) > 0:
		return fmt.Sprintf("Still missing: %s.", listed(lacks, 4))
	case len(qs.list) > 0:
		return fmt.Sprintf("All words are covered; following %s met beside them.", lexicon.Counted(len(qs.list), "name", "names"))
	}
	return "All parts of the question are covered and no new name is worth following."
}

// openParts are the parts that no sentence answers yet.
func (lk *look) openParts() []int {
	var open []int
	for p := range lk.q.Parts {
		best := 0.0
		for i := range lk.windows {
			best = max(best, lk.partShare(p, i))
		}
		if best < coveredFloor {
			open = append(open, p)
		}
	}
	return open
}

// uncovered are the terms that matter and stand in nothing read.
func (lk *look) uncovered() []int {
	held := lk.anywhere()
	var out []int
	for t, tm := range lk.q.Terms {
		if held[t] == 0 && !lexicon.Light(tm.Stem) && !lexicon.Vague(tm.Stem) {
			out = append(out, t)
		}
	}
	return out
}

// settled reports that one window holds nearly all that was asked, so that following
// names could only lead away from it.
func (lk *look) settled() bool {
	return slices.ContainsFunc(lk.windows, func(w window) bool { return lk.share(w.held) >= settledFloor })
}

// trail is the question before all that the searches have shown.
func trail(q *lexicon.Question, st *reason.State) *lexicon.MultiHop {
	var shown []string
	seen := map[string]bool{}
	for _, s := range st.Searches {
		for _, h := range s.Hits {
			if !seen[h.Locator] {
				seen[h.Locator] = true
				shown = append(shown, h.Title+" \n"+h.Snippet)
			}
		}
	}
	return lexicon.NewMultiHop(q, shown)
}

// leads are the names in what was read that may lead to the rest of the answer.
func (lk *look) leads(t *lexicon.MultiHop) []lexicon.Lead {
	var texts []lexicon.HopText
	at := map[*evidence.Source]int{}
	for i := range lk.windows {
		src := lk.windows[i].src
		k, ok := at[src]
		if !ok {
			k = len(texts)
			at[src] = k
			texts = append(texts, lexicon.HopText{Source: src.Page.Locator, Title: src.Page.Title})
		}
		for _, u := range lk.units(i) {
			texts[k].Sentences = append(texts[k].Sentences, u.text)
		}
	}
	return t.Leads(texts)
}

// follow adds the best leads whose query was not run yet.
func (qs *queries) follow(leads []lexicon.Lead) {
	before := len(qs.list)
	for _, l := range leads {
		if len(qs.list) < before+followed {
			qs.name(l.Query, fmt.Sprintf("%q was met in %s", l.Name, path.Base(l.Source)))
		}
	}
}
