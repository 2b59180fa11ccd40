package extractive

import (
	"cmp"
	"context"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/question"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive/answerable"
)

// Limits of an answer.
const (
	refuseBelow     = 0.03 // Match under which nothing is said
	partlyBelow     = 0.3  // Match of a sentence alone under which it supports partly
	meantFloor      = 0.5  // cosine from which a sentence speaks of the subject in other words
	lostCeiling     = 0.7  // share of the words that may stand nowhere,
	knownMatch      = 0.2  // unless Match is as high as this
	tailFloor       = 0.55 // share of the best score that a further sentence needs
	rivalFloor      = 0.65 // the same for a narrow question
	wholeParagraphs = 2    // of the best passages are read with the rest of their paragraphs,
	wholeReach      = 3    // as far as so many passages before and behind them
	alikeFloor      = 0.6  // shared words from which one sentence may repeat another
	partFloor       = 0.5  // share of a part that a sentence must hold to answer it
	strayShare      = 0.15 // share of what the best sentence has of the question that another needs
	rivalShare      = 0.7  // share of the best score from which a sentence stands for itself
	otherPart       = 0.4  // what a sentence loses as an answer to one part if it answers another
	// lostNameShare is what is left of Match where the document of the answer does
	// not know the place or the owner that is asked about.
	lostNameShare = 0.2
	answerRoom    = 1200 // tokens kept for the answer itself, where there are that many
)

// pick is a sentence chosen for the answer.
type pick struct {
	at     int              // index into reading.sents
	window marchwarden.Span // what its citation shows
	also   []int            // the same sentence in other sources
	part   int              // the part of the question it answers, whole, or -1
	rank   int              // 0 is the best
}

// whole is the part of a sentence that speaks to most parts at once.
const whole = -2

// Write answers from the evidence with whole sentences of it. It reads the best
// passages that the budget has room for and never spends more; with no room for
// a single passage it refuses and says so.
func (*Reasoner) Write(ctx context.Context, st *reason.State) (reason.Draft, error) {
	if err := ended(ctx); err != nil {
		return reason.Draft{}, err
	}
	q := question.Read(st.Request.Question, st.Request.Context, st.Now.Year())
	ranked := wholly(st.Evidence, rank(&q, st.Evidence, wanted(st.Limits, len(q.Parts))))
	keep := min(answerRoom, st.Meter.Room()/3)
	r, unread := study(st, &q, ranked, keep)
	r.mean(ctx, st.Vectors)
	best := r.best()
	if best < 0 {
		return refuse(st, &q, r, unread, 0), nil
	}
	answerable.Show(ctx, r.evidence(best))
	match := r.answers(best) * heard(len(ranked), len(unread))
	if match < refuseBelow || r.foreign(match) && r.sents[best].titled < meantFloor || r.besides(best) {
		return refuse(st, &q, r, unread, min(match, refuseBelow)), nil
	}
	picks := r.choose(size(st, &q))
	quarrel := r.quarrelsOf(st.Evidence, ranked)
	claims := pay(st, r.claims(picks, quarrel, st.Evidence))
	if len(claims) == 0 {
		return refuse(st, &q, read(&q, st.Evidence, nil), ranked, 0), nil
	}
	d := reason.Draft{Claims: claims, Contradictions: quarrel, Match: match}
	d.Gaps = r.gaps(st, picks, unread, match)
	d.OpenQuestions = r.openQuestions(st, picks)
	d.Discoveries = append(r.discoveries(st), quarrelEvents(quarrel)...)
	return d, nil
}

// wholly adds the rest of the paragraphs that the first passages stand in, which may
// go on without a word of the question.
func wholly(set *evidence.Set, ranked []evidence.Scored) []evidence.Scored {
	in := map[evidence.ID]bool{}
	for _, p := range ranked {
		in[p.ID] = true
	}
	for _, p := range ranked[:min(wholeParagraphs, len(ranked))] {
		src, _, _ := set.Passage(p.ID)
		for _, o := range src.Passages {
			if o.Paragraph == p.Paragraph && !in[o.ID] && !o.IsHeading && max(o.Index-p.Index, p.Index-o.Index) <= wholeReach {
				in[o.ID] = true
				ranked = append(ranked, evidence.Scored{Passage: o})
			}
		}
	}
	return ranked
}

// size is how many sentences the answer may have.
func size(st *reason.State, q *question.Question) int {
	n := 5
	switch {
	case st.Limits.TokenBudget <= 6000:
		n = 3
	case st.Limits.TokenBudget > 40000:
		n = 7
	}
	if q.Broad {
		n += 2
	}
	return max(n, min(len(q.Parts)+1, 10))
}

// best is the sentence with the highest score that says something about the
// question, or -1.
func (r *reading) best() int {
	best := -1
	for i := range r.sents {
		if r.usable(i) && (best < 0 || r.sents[i].score > r.sents[best].score) {
			best = i
		}
	}
	return best
}

// foreign reports a question about something that nothing read knows: none of
// its names stands anywhere or, of a question without names, hardly a word does and
// the best sentence promises little.
// Rarity does not count here: what was read was found by the words it has.
func (r *reading) foreign(match float64) bool {
	held := r.anywhere()
	names, found, lost, all := 0, 0.0, 0.0, 0.0
	for t, tm := range r.q.Terms {
		lost += tm.Weight * (1 - held[t])
		all += tm.Weight
		if tm.Name {
			names++
			found += held[t]
		}
	}
	if names > 0 {
		return found == 0
	}
	return lost > lostCeiling*all && match < knownMatch
}

// choose picks up to n sentences, best first.
func (r *reading) choose(n int) []pick {
	order := make([]int, 0, len(r.sents))
	for i := range r.sents {
		if r.usable(i) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.sents[b].score, r.sents[a].score) })
	var picks []pick
	if len(order) == 0 {
		return nil
	}
	if len(r.q.Parts) > 1 {
		if i := r.overview(order); i >= 0 {
			picks = r.take(picks, i, whole)
		}
		for p := range r.q.Parts {
			if i := r.bestFor(p, order, picks); i >= 0 && len(picks) < n {
				picks = r.take(picks, i, p)
			}
		}
	}
	lead := &r.sents[order[0]]
	floor := tailFloor
	together := !slices.ContainsFunc(picks, func(p pick) bool { return !r.beside(p.at, order[0]) })
	if together {
		most := n + 1
		if r.q.Broad { // what else there is to be heard has room, too
			most = n - min(n/2, r.rivals(order, floor))
		} else {
			floor = rivalFloor
		}
		picks = r.company(r.take(picks, order[0], -1), order[0], most)
	}
	for _, i := range r.spread(order) {
		if len(picks) >= n || r.sents[i].score < floor*lead.score {
			break
		}
		if together && r.beside(i, order[0]) || r.strays(i, order[0]) {
			continue // company has chosen in the best one's paragraph
		}
		picks = r.take(picks, i, -1)
	}
	for k := range picks {
		picks[k].rank = k
	}
	return picks
}

// strays reports that a sentence is about something else than the best one: it
// has no name of the question where the best one has, none of the question's words
// that name the best one's section or document, or hardly any that the best one has,
// in itself or around it. Such a sentence shares another word with the question by
// accident. Of a definition, only its section and other definitions are heard further.
func (r *reading) strays(i, best int) bool {
	a, b := &r.sents[i], &r.sents[best]
	if b.feat[featNames] > 0 && a.feat[featNames] == 0 {
		return true
	}
	if a.source == b.source && a.passage.Heading == b.passage.Heading {
		return false
	}
	if r.q.Kind == question.Define && a.feat[featType] == 0 && b.feat[featType] > 0 {
		return true
	}
	topic, on := false, false
	for t, h := range r.topicOf(b) {
		if h > 0 && !question.Light(r.q.Terms[t].Stem) {
			topic, on = true, on || a.credit[t] > 0
		}
	}
	if topic && !on {
		return true
	}
	if a.score >= rivalShare*b.score {
		return false
	}
	shared, all := 0.0, 0.0
	for t, h := range r.sents[best].own {
		all += r.idf[t] * h
		shared += r.idf[t] * min(h, r.sents[i].credit[t])
	}
	return shared < strayShare*all
}

// usable sentences speak to the question and are not known to the caller.
func (r *reading) usable(i int) bool {
	s := &r.sents[i]
	return (s.feat[featOwn] > 0 || s.titled >= meantFloor) && s.feat[featThin] < 1 && !r.q.Known[question.Plain(s.text)]
}

// spread lowers, for a broad question, the sentences of a document that has
// already given its best, so that several documents are heard.
func (r *reading) spread(order []int) []int {
	if !r.q.Broad {
		return order
	}
	given := map[int]int{}
	lowered := make(map[int]float64, len(order))
	for _, i := range order {
		n := r.sents[i].source.N
		lowered[i] = r.sents[i].score * (1 - 0.15*float64(min(given[n], 4)))
		given[n]++
	}
	out := slices.Clone(order)
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(lowered[b], lowered[a]) })
	return out
}

// take adds a sentence unless it is there already or repeats one. The same sentence
// of another source corroborates; what merely repeats one is not cited. A sentence
// that leans on another brings that one too.
func (r *reading) take(picks []pick, i, part int) []pick {
	for k := range picks {
		if r.saysSame(picks[k].at, i) {
			r.corroborate(&picks[k], i)
			return picks
		}
	}
	if slices.ContainsFunc(picks, func(p pick) bool { return r.repeats(p.at, i) }) {
		return picks
	}
	if base := r.leansOn(i); base >= 0 && r.sents[base].feat[featThin] < 1 && !r.q.Known[question.Plain(r.sents[base].text)] {
		if !slices.ContainsFunc(picks, func(p pick) bool { return p.at == base }) {
			picks = r.place(picks, base, part)
		}
	}
	return r.place(picks, i, part)
}

// corroborate adds the same sentence of another source to a pick, each source once.
func (r *reading) corroborate(p *pick, i int) {
	src := r.sents[i].source
	if src == r.sents[p.at].source || len(p.also) == 2 || slices.ContainsFunc(p.also, func(a int) bool { return r.sents[a].source == src }) {
		return
	}
	p.also = append(p.also, i)
}

// place adds a pick. Sentences that stand in a window already cited share it.
func (r *reading) place(picks []pick, i, part int) []pick {
	s := &r.sents[i]
	for _, p := range picks {
		if r.sents[p.at].source == s.source && p.window.Start <= s.span.Start && s.span.End <= p.window.End {
			return append(picks, pick{at: i, window: p.window, part: part})
		}
	}
	return append(picks, pick{at: i, window: around(s.source, s.span), part: part})
}

// around is what a citation of the sentence shows: it and the sentences of its
// paragraph around it, as far as an excerpt may go.
func around(src *evidence.Source, sentence marchwarden.Span) marchwarden.Span {
	return evidence.Around(src.Text, src.Passages, sentence, marchwarden.MaxExcerptChars)
}

// claims turns picks into sentences in reading order, and ends with the
// sentences that disagree, each with its own citation.
func (r *reading) claims(picks []pick, quarrel []marchwarden.Contradiction, set *evidence.Set) []reason.Claim {
	ordered := r.arrange(picks)
	var out []reason.Claim
	said := map[string]bool{}
	for k, p := range ordered {
		s := &r.sents[p.at]
		c := reason.Claim{
			Text: flat(s.text), Passages: []evidence.ID{s.passage.ID}, Spans: []marchwarden.Span{p.window},
			Paragraph: k == 0 || r.breaks(ordered, k), Support: marchwarden.Supported,
		}
		if r.alone(p.at) < partlyBelow {
			c.Support = marchwarden.Partial
		}
		for _, a := range p.also {
			o := &r.sents[a]
			said[question.Plain(o.text)] = true
			c.Passages = append(c.Passages, o.passage.ID)
			c.Spans = append(c.Spans, around(o.source, o.span))
		}
		said[question.Plain(s.text)] = true
		out = append(out, c)
	}
	return append(out, quoteQuarrels(quarrel, set, said)...)
}

// arrange puts the best sentence first, then the others by document, documents
// by their best sentence and each in its own order. Parts keep their order.
func (r *reading) arrange(picks []pick) []pick {
	lead := map[int]int{} // source number → rank of its best pick
	for _, p := range picks {
		n := r.sents[p.at].source.N
		if _, ok := lead[n]; !ok {
			lead[n] = p.rank
		}
	}
	group := func(p pick) int {
		switch {
		case p.part == whole:
			return -1
		case p.part >= 0:
			return p.part
		}
		return len(r.q.Parts) + lead[r.sents[p.at].source.N]
	}
	first := func(p pick) int { // the best sentence, and the one it leans on
		if p.part >= 0 || p.at == picks[0].at || p.rank == 1 && r.leansOn(p.at) == picks[0].at {
			return 0
		}
		return 1
	}
	out := slices.Clone(picks)
	slices.SortStableFunc(out, func(a, b pick) int {
		return cmp.Or(cmp.Compare(group(a), group(b)), cmp.Compare(first(a), first(b)), cmp.Compare(r.sents[a.at].span.Start, r.sents[b.at].span.Start))
	})
	return out
}

// breaks starts the second paragraph of a longer answer where the document or
// the part changes, about half way.
func (r *reading) breaks(picks []pick, k int) bool {
	if len(picks) < 5 || k < 2 || len(picks)-k < 2 {
		return false
	}
	changed := func(j int) bool {
		return picks[j].part != picks[j-1].part || r.sents[picks[j].at].source != r.sents[picks[j-1].at].source
	}
	for j := len(picks) / 2; j < len(picks)-1; j++ {
		if changed(j) {
			return j == k
		}
	}
	return false
}

// flat is a sentence on one line without the bullet of a list.
func flat(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	for _, b := range []string{"- ", "* ", "+ ", "• ", "– "} {
		s = strings.TrimPrefix(s, b)
	}
	return strings.TrimSpace(s)
}
