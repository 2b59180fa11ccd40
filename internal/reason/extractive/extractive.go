// Package extractive is the reasoner that needs no language model. It searches for the
// words of the question, lets the reader read the passages that may answer, and answers
// with sentences, items and rows of the sources, word for word. It owns how windows are
// chosen for reading, the score that decides what answers and whether anything does, and
// what is said. It runs no search, reads no file and cuts no excerpt: the loop and the
// grounding gate do that.
//
// Everything it knows is in the reason.State it is given, so that one state always gives
// the same plan and the same draft. Reading is charged to the state's meter as a model's
// reading would be. Without a reader it ranks by words and vectors, and is less sure.
package extractive

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// id names this reasoner. Its number rises with every change that can alter a draft.
const id = "extractive/4"

// Limits of what is read.
const (
	laterShare = 0.4 // share of the question that a hit of a follow-up must show
	firstReads = 3   // pages that are read before anything is known, at least, or on the word of the engine alone
	laterReads = 2   // at most, for a narrow question: each may change what to look for
	rankBase   = 3   // how much the first hit of a search is worth more than the next
	lesser     = 0.6 // what a hit of another search counts of one of the whole question
	labelCost  = 8   // tokens that the label of a passage or claim costs
)

// What a hit is worth beside its rank: the share of the question that it shows,
// and being about something that the question names.
const (
	shareWeight = 0.3
	titleWeight = 0.5
)

// Reasoner answers by extraction. It holds no state and is safe for concurrent
// use; the state it is given is not.
type Reasoner struct{}

var _ reason.Reasoner = (*Reasoner)(nil)

// New makes the reasoner.
func New() *Reasoner { return &Reasoner{} }

// ID is "extractive/4".
func (*Reasoner) ID() string { return id }

// Choose fuses the hits of this iteration's queries and drops what shares no
// word with the question. Where that leaves nothing to begin with, the first pages
// of the web are taken as the engine ranks them: titles such as "Home", snippets
// that are empty and other languages say nothing against a page.
func (*Reasoner) Choose(st *reason.State, _ []search.Hit) []reason.Read {
	q := lexicon.ReadQuestion(st.Request.Question, st.Request.Context)
	read := map[string]bool{}
	for _, s := range st.Evidence.Sources() {
		read[s.Page.Locator] = true
	}
	var list, blind []candidate
	way := trail(&q, st)
	leads := met(st, &q, way)
	for _, c := range offers(st) {
		if read[c.hit.Locator] || st.Failed[c.hit.Locator] != nil {
			continue
		}
		c.weigh(&q, way, leads)
		switch {
		case c.linked, st.Iteration < 2 && !c.onTheWeb(), c.share > 0 && (st.Iteration < 2 || c.share >= laterShare):
			list = append(list, c)
		case c.onTheWeb():
			c.why = "ranked high by the engine, though its title and snippet hardly show a word of the question"
			blind = append(blind, c)
		}
	}
	left := st.Limits.MaxSources - st.Meter.Usage().Sources
	rounds := max(1, lastHop(st)-st.Iteration+1)
	n := min(laterReads, (left+rounds-1)/rounds)
	if st.Iteration < 2 {
		n = max(firstReads, left*3/5) // the rest is for what these lead to
		if slices.ContainsFunc(list, func(c candidate) bool { return c.onTheWeb() }) {
			n = firstReads // pages cost more than files
		}
	}
	if q.Broad {
		n = max(n, (left+1)/2)
	}
	if len(list) == 0 && (st.Iteration < 2 || len(read) == 0) {
		list, n = blind, firstReads
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.hit.Locator, b.hit.Locator))
	})
	out := make([]reason.Read, 0, n)
	for _, c := range list[:max(0, min(n, left, len(list)))] {
		out = append(out, reason.Read{Locator: c.hit.Locator, Reason: c.why})
	}
	return out
}

// candidate is a hit with its place among all.
type candidate struct {
	hit   search.Hit
	score float64
	share float64 // of the question's words that its title and snippet show
	// linked says that it takes up a name met in what was read.
	linked bool
	why    string
}

// onTheWeb reports a hit of a search engine of the web, which has seen more of the
// page than it tells. An index of local files has told all that matched.
func (c *candidate) onTheWeb() bool {
	scheme, _, ok := strings.Cut(c.hit.Locator, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// offers are all hits of the run so far, each with its best rank.
func offers(st *reason.State) []candidate {
	at := map[string]int{}
	var list []candidate
	for n, s := range st.Searches {
		worth := 1.0
		if n > 0 {
			worth = lesser
		}
		for rank, h := range s.Hits {
			i, ok := at[h.Locator]
			if !ok {
				i = len(list)
				at[h.Locator] = i
				list = append(list, candidate{hit: h})
			} else if !strings.Contains(list[i].hit.Snippet, h.Snippet) {
				list[i].hit.Snippet += " \n" + h.Snippet // another part of the document
			}
			list[i].score = max(list[i].score, worth/float64(rankBase+rank))
		}
	}
	return list
}

// met are the leads in what Plan has looked at, and paid for, in this iteration.
func met(st *reason.State, q *lexicon.Question, way *lexicon.MultiHop) []lexicon.Lead {
	if st.Iteration < 2 || len(st.Evidence.Sources()) == 0 {
		return nil
	}
	lk := &look{q: q, windows: rank(q, st.Evidence, glanced)}
	lk.weigh(st.Evidence)
	return lk.leads(way)
}

// pathMarks separate the words of a locator.
var pathMarks = strings.NewReplacer("-", " ", "_", " ", "/", " ", ".", " ")

// weigh prefers hits whose title and snippet show the question's words, and those that
// take up a name met in what was read.
func (c *candidate) weigh(q *lexicon.Question, way *lexicon.MultiHop, leads []lexicon.Lead) {
	stems := lexicon.Terms(c.hit.Title + " \n" + c.hit.Snippet + " \n" + pathMarks.Replace(c.hit.Locator))
	var shown []string
	sum, all := 0.0, 0.0
	for _, t := range q.Terms {
		w := t.Weight
		if lexicon.Vague(t.Stem) {
			w *= 0.35
		}
		all += w
		if slices.Contains(stems, t.Stem) {
			sum += w
			shown = append(shown, t.Text)
		}
	}
	c.share = sum / max(all, 1)
	c.why = "shows " + listed(shown, 5)
	if len(shown) == 0 {
		c.why = "found by what it is about, not by its words"
	}
	o := way.Offer(c.hit.Locator, c.hit.Title, c.hit.Snippet)
	c.score += shareWeight * o.Share
	if o.Titled {
		c.score += titleWeight
	}
	if link, by := way.Link(o, leads); by != nil {
		c.score += link
		c.linked = true
		c.why = fmt.Sprintf("takes up %q, met in %s", by.Name, path.Base(by.Source))
	}
}

func listed(words []string, n int) string {
	if len(words) > n {
		return strings.Join(words[:n], ", ") + fmt.Sprintf(" and %d more", len(words)-n)
	}
	return strings.Join(words, ", ")
}
