package extractive

import (
	"context"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// Limits of an answer.
const (
	maxSentences = 5
	rivalMargin  = 2.5  // how much weaker, in log-odds, the second sentence may be
	moreMargin   = 3.0  // the same for every further one of a broad question
	perDocument  = 1    // sentences of one document for a broad question, so that several are heard
	leastAbout   = -2   // what the reader must give a further sentence for being about the question
	nearlyOwn    = 0.75 // share of what the best holds of the question, without a reader,
	broadlyOwn   = 0.5  // and for a broad question
	// surelyAnswers is what the reader gives a window that it is sure of, in log-odds.
	surelyAnswers = 2
	longRow       = 200 // characters from which a row is told by the cells that matter
	overruled     = 0.8 // how much surer a reader must be of the contrary, of two readings, to overrule whether a sentence denies
)

// Write answers from the evidence with whole sentences, items and rows of it. It
// never spends more than the budget has room for; with no room for a single window it
// refuses and says so.
func (*Reasoner) Write(ctx context.Context, st *reason.State) (reason.Draft, error) {
	if d, ok := computed(st); ok {
		return d, nil
	}
	q := lexicon.ReadQuestion(st.Request.Question, st.Request.Context)
	if inSections(st, &q) {
		d, err := report(ctx, st, &q)
		return shortened(st, d), err
	}
	parts := clauses(&q, st)
	if len(parts) == 0 {
		d, err := write(ctx, st, &q)
		return shortened(st, d), err
	}
	drafts := make([]reason.Draft, len(parts))
	for i, p := range parts {
		var err error
		if drafts[i], err = write(ctx, st, p); err != nil {
			return reason.Draft{}, err
		}
	}
	return shortened(st, together(drafts, q.Parts)), nil
}

// clauses are the questions that a question of several clauses asks, each by itself,
// or none. A comparison is one question.
func clauses(q *lexicon.Question, st *reason.State) []*lexicon.Question {
	if len(q.Parts) < 2 || q.Kind == lexicon.AskCompare {
		return nil
	}
	var out []*lexicon.Question
	for _, p := range q.Parts {
		text := p.Label
		if len(p.Subject) > 0 { // it leans on the first
			text = p.Query
		}
		one := lexicon.ReadQuestion(text, st.Request.Context)
		out = append(out, &one)
	}
	return out
}

func write(ctx context.Context, st *reason.State, q *lexicon.Question) (reason.Draft, error) {
	lk, list, unread, err := candidates(ctx, st, q)
	if err != nil {
		return reason.Draft{}, err
	}
	list = lk.newest(list)
	if len(list) == 0 {
		return lk.refuse(st, nil, unread, 0), nil
	}
	list, via, err := lk.follow(ctx, st, list)
	if err != nil {
		return reason.Draft{}, err
	}
	by := &withoutReader
	if lk.wasRead() {
		by = &withReader
	}
	match := sigmoid(odds(list, by.right)) * float64(len(lk.windows)) / float64(len(lk.windows)+len(unread)) // of what should have been read
	if odds(list, by.exists) < by.refuse && (lk.earlier || !lk.states(list[0])) || lk.elsewhere(list[0], via != nil) {
		return lk.refuse(st, list, unread, match), nil
	}
	picks := lk.choose(list)
	if via != nil {
		picks = []answer{list[0], *via}
	}
	claims := pay(st, lk.claims(picks, match < by.hedge))
	if len(claims) == 0 {
		return lk.refuse(st, nil, lk.windows, 0), nil
	}
	d := reason.Draft{Claims: claims, Contradictions: lk.quarrels(ctx, st), Match: match}
	if match >= by.hedge/2 { // a wild guess is not put into a word
		d.Short = lk.short(ctx, st, picks[0])
	}
	d.Gaps = lk.gaps(st, unread, match)
	d.Discoveries = lk.discoveries(st)
	return d, nil
}

// candidates are what may answer a question, the best first, and the windows that were
// left unread.
func candidates(ctx context.Context, st *reason.State, q *lexicon.Question) (lk *look, list []answer, unread []window, err error) {
	ws := rank(q, st.Evidence, considered+perPart*(len(q.Parts)-1))
	mean(ctx, st, q, ws)
	lk, unread = study(st, q, ws, min(answerRoom, st.Meter.FreeRoom()/3))
	if err := lk.read(ctx, st); err != nil {
		return nil, nil, nil, err
	}
	list = lk.answers()
	return lk, list, unread, lk.closer(ctx, st, q.Text, list)
}

// states reports a sentence that is the question turned round: the question's words stand
// in it in their order with no other between them, and the answer is before or after.
func (lk *look) states(a answer) bool {
	terms, span := lk.q.Terms, lk.windows[a.at].src.Text[a.words.Start:max(a.words.Start, a.words.End)]
	if len(terms) < 2 || span == "" {
		return false
	}
	said := lexicon.Terms(a.text)
	for _, stem := range lexicon.Terms(span) {
		if slices.ContainsFunc(terms, func(t lexicon.Term) bool { return lexicon.Alike(t, stem) > 0 }) {
			return false
		}
	}
	for ; len(said) >= len(terms); said = said[1:] {
		at := 0
		for at < len(terms) && lexicon.Alike(terms[at], said[at]) == 1 {
			at++
		}
		if at == len(terms) {
			return true
		}
	}
	return false
}

// foreign reports a question with names of which none stands in anything that was
// looked at: it is about something else. A month may be written as a number.
func (lk *look) foreign() bool {
	held := lk.anywhere()
	names := false
	for t, tm := range lk.q.Terms {
		if _, _, month := lexicon.FirstDate("1 " + tm.Text); !tm.Name || month {
			continue
		}
		if held[t] > 0 {
			return false
		}
		names = true
	}
	return names
}

// elsewhere reports an answer about something else than is asked: none of the names of
// the question stands in anything that was read, or it asks for the X of Y and the
// window has nothing of X, or no name, unless that was followed here. A reader that is
// sure knows better, but for an X of Y whose name stands nowhere.
func (lk *look) elsewhere(a answer, followed bool) bool {
	x := slices.IndexFunc(lk.q.Terms, func(t lexicon.Term) bool { return t.Stem == lk.q.Asked })
	switch {
	case lk.foreign():
		return x >= 0 || !sure(a)
	case x < 0 || followed || sure(a):
		return false
	}
	return lk.windows[a.at].held[x] == 0 || a.feats[featNames] == 1
}

// sure reports that the reader is sure of an answer, whatever words it lacks.
func sure(a answer) bool {
	return max(a.feats[featAnswers], a.feats[featCloserAnswers]) >= surelyAnswers
}

// pay charges the answer and drops sentences from its end until it fits; the meter
// then knows that the budget cut it short.
func pay(st *reason.State, claims []reason.Claim) []reason.Claim {
	for ; len(claims) > 0; claims = claims[:len(claims)-1] {
		price := 0
		for _, c := range claims {
			price += lexicon.EstimateTokens(c.Text) + labelCost
		}
		if res, err := st.Meter.Reserve(price); err == nil {
			res.Settle(price)
			break
		}
	}
	return claims
}

// choose picks what is said, the answer first. A narrow question gets one sentence,
// and the next best if it is nearly as good; a broad one gets more; a question that
// hangs on two documents both.
func (lk *look) choose(list []answer) []answer {
	picks := []answer{list[0]}
	most, broad, each := 2, maxSentences, perDocument
	if lk.long {
		most, broad, each = maxSentences, reportSentences, reportDocument
	}
	add := func(a answer) {
		if len(picks) < broad && !slices.ContainsFunc(picks, func(p answer) bool { return lexicon.Plain(p.text) == lexicon.Plain(a.text) }) {
			picks = append(picks, a)
		}
	}
	if lk.q.Kind == lexicon.AskHowTo {
		if way, ok := lk.shown(list[0]); ok {
			add(way)
		}
	}
	if named := lk.named(list); len(named) > 0 {
		for _, a := range named {
			add(a)
		}
	} else if b, ok := lk.bridge(list); ok {
		add(b)
	}
	margin := rivalMargin
	if lk.q.Broad {
		margin, most = moreMargin, broad
	}
	if !lk.wasRead() {
		margin *= 2 // words alone set sentences further apart
	}
	given := map[*evidence.Source]int{lk.windows[list[0].at].src: 1}
	for _, a := range list[1:min(closely, len(list))] {
		if len(picks) >= most || a.score < list[0].score-margin {
			break
		}
		src := lk.windows[a.at].src
		if lk.bears(a, list[0]) && !(lk.q.Broad && lk.q.Kind != lexicon.AskCompare && given[src] >= each) {
			add(a)
			given[src]++
		}
	}
	return picks
}

// bears reports that a further sentence bears on the question: the reader does not
// call it irrelevant or, without one, it holds nearly as much of the question as the
// best does.
func (lk *look) bears(a, best answer) bool {
	if a.feats[featRead] > 0 {
		return a.feats[featThin] == 0 && a.feats[featCloserAbout] > leastAbout
	}
	least := nearlyOwn
	if lk.q.Broad {
		least = broadlyOwn
	}
	return a.feats[featThin] == 0 && a.feats[featOwn] >= least*best.feats[featOwn]
}

// Limits of what ties two documents together.
const (
	bridgeGain  = 0.1 // share of the question that the other document must add
	bridgeTitle = 4   // letters of a title that a text must name
	maxNamed    = 2   // documents that are heard because the question names them
)

// named are the best sentences of other documents whose titles stand in the question:
// it compares them, or goes from one to the other.
func (lk *look) named(list []answer) []answer {
	var out []answer
	seen := map[*evidence.Source]bool{lk.windows[list[0].at].src: true}
	for _, a := range list[1:] {
		src := lk.windows[a.at].src
		if len(out) < maxNamed && !seen[src] && a.feats[featThin] == 0 && says(lk.q.Text, src.Page.Title) {
			seen[src] = true
			out = append(out, a)
		}
	}
	return out
}

// bridge is the sentence of another document that the best answer hangs on: it holds
// what the question names and the answer's window lacks, and one of the two documents
// names the other.
func (lk *look) bridge(list []answer) (answer, bool) {
	w := &lk.windows[list[0].at]
	best, top := answer{}, 0.0
	for _, a := range list[1:] {
		o := &lk.windows[a.at]
		if o.src == w.src || a.feats[featThin] > 0 || !says(w.Text, o.src.Page.Title) && !says(o.Text, w.src.Page.Title) {
			continue
		}
		gain := 0.0
		for t, h := range o.held {
			gain += lk.idf[t] * max(0, h-w.held[t])
		}
		gain /= max(lk.total, 1e-9)
		if v := gain + a.feats[featOwn]; gain >= bridgeGain && v > top {
			best, top = a, v
		}
	}
	return best, top > 0
}

// says reports that a text has a title in it, as whole words.
func says(text, title string) bool {
	title, _, _ = strings.Cut(title, " (")
	title = lexicon.Plain(title)
	return len(title) >= bridgeTitle && strings.Contains(" "+lexicon.Plain(text)+" ", " "+title+" ")
}

// together is the draft of a question of several clauses, put together from theirs.
func together(drafts []reason.Draft, parts []lexicon.Part) reason.Draft {
	var all reason.Draft
	for i, d := range drafts {
		if len(d.Claims) == 0 {
			all.Refusal, all.Closest = d.Refusal, append(all.Closest, d.Closest...)
			all.Gaps = append(all.Gaps, marchwarden.Gap{Topic: parts[i].Label, Category: marchwarden.SourceNotFound, Detail: "no sentence of the documents read answers this part of the question"})
			all.OpenQuestions = append(all.OpenQuestions, marchwarden.OpenQuestion{Question: parts[i].Question(), Priority: marchwarden.High,
				Context: "a part of the question that no sentence of the evidence answers"})
		} else {
			if !slices.ContainsFunc(all.Claims, func(o reason.Claim) bool { return o.Text == d.Claims[0].Text }) {
				all.Claims = append(all.Claims, d.Claims[0])
			}
			all.Match += d.Match / float64(len(drafts))
			all.Gaps = append(all.Gaps, d.Gaps...)
		}
		all.Contradictions, all.Discoveries = union(all.Contradictions, d.Contradictions), union(all.Discoveries, d.Discoveries)
	}
	all.OpenQuestions = all.OpenQuestions[:min(maxOpen, len(all.OpenQuestions))]
	all.Closest = all.Closest[:min(closest, len(all.Closest))]
	if len(all.Claims) > 0 {
		all.Refusal, all.Closest = "", nil
	}
	return all
}

func union[T comparable](list, more []T) []T {
	for _, e := range more {
		if !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}
