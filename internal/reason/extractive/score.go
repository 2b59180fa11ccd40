package extractive

import (
	"cmp"
	"context"
	"math"
	"regexp"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// answer is a sentence, item or row that may answer, and which of its words do.
type answer struct {
	unit
	words marchwarden.Span // in the document; empty where no words stand out
	date  lexicon.Date     // of the statement, as far as it is known
	feats [numFeatures]float64
	score float64 // log-odds that this answers, before the calibration
	bonus float64 // beside what the features give
}

func (a *answer) weigh(weights *[numFeatures]float64) {
	a.score = a.bonus
	for f, w := range weights {
		a.score += w * a.feats[f]
	}
}

func order(list []answer) {
	slices.SortStableFunc(list, func(a, b answer) int { return cmp.Compare(b.score, a.score) })
}

// What an answer is scored by.
const (
	featAnswers = iota // the reader: this window answers the question
	featAbout          // the reader: it is about the question
	featSpan           // the reader: these words answer
	featRead           // the reader has read it at all
	featOwn            // share of the question's weight in the sentence and its headings
	featWindow         // the same for the window
	featRank           // its window's score by words, as a share of the best one's
	featNear           // cosine of question and window
	featNames          // share of the question's names that the window lacks
	featNumbers        // share of its numbers that the window lacks
	featDate           // 1 where the date fits the one asked for, -1 where it is another
	featThin           // says nothing by itself: a question, a word or two
	// What a closer look gives: the same of the sentence by itself, under its headings.
	featCloserAnswers
	featCloserAbout
	featCloserSpan
	featCloserNear
	numFeatures
)

// answers are the candidates, best first. Each sentence, item or row is there once.
func (lk *look) answers() []answer {
	read := lk.wasRead()
	weights := &withoutReader.weights
	if read {
		weights = &withReader.weights
	}
	asked, _, dated := lexicon.FirstDate(lk.q.Text)
	var out []answer
	for i := range lk.windows {
		if read && lk.windows[i].reading == nil {
			continue // what promised less was left unread
		}
		for _, a := range lk.candidates(i) {
			if lk.q.Known[lexicon.Plain(a.text)] || isQuestion(a.text) || lk.shouts(a.text) || lk.loud[lk.windows[i].src] && presses.MatchString(a.text) || !lk.earlier && flat(a.text) == a.passage.Heading {
				continue
			}
			a.date = lk.dateOf(a.unit)
			if dated {
				a.feats[featDate] = agreement(asked, a.date, a.text)
			}
			if lk.q.Kind == lexicon.AskDefine && defines(lk.q, a.text) {
				a.bonus += definesIt
			}
			if !lk.earlier && (lk.asks(a.passage.Heading) || lk.told(a)) {
				a.bonus += headed
			}
			a.weigh(weights)
			if !lk.earlier && lk.q.Kind != lexicon.AskHowTo && !sure(a) && (evidence.IsCode(a.text) || strings.HasPrefix(a.text, "//")) {
				continue
			}
			out = append(out, a)
		}
	}
	order(out)
	return out
}

// presses is how a text speaks that wants to be taken for the answer.
var presses = regexp.MustCompile(`(?i)\b(?:(?:the|correct|right|only|real) answer|answer(?: is\b|:))`)

// shouts reports a sentence that says the question back, word for word, and goes on. An
// answer has the words of a question in another order; a text that is made to be found
// has them as they were asked.
func (lk *look) shouts(text string) bool {
	asked := " " + lexicon.Plain(lk.q.Text) + " "
	if strings.Count(asked, " ") < 4 || presses.MatchString(lk.q.Text) || !strings.Contains(" "+lexicon.Plain(text)+" ", asked) {
		return false
	}
	return lk.q.Kind != lexicon.AskWhat || strings.Contains(asked, " what ") || strings.Contains(asked, " which ") || presses.MatchString(text)
}

// hush finds the documents in which a sentence shouts. They are no measure for the rest.
func (lk *look) hush() {
	lk.loud = map[*evidence.Source]bool{}
	for i := range lk.windows {
		for _, u := range lk.units(i) {
			if !isQuestion(u.text) && lk.shouts(u.text) {
				lk.loud[lk.windows[i].src] = true
			}
		}
	}
	most := 0.0
	for _, w := range lk.windows {
		if !lk.loud[w.src] {
			most = max(most, w.words)
		}
	}
	for i := range lk.windows {
		if len(lk.loud) > 0 && most > 0 {
			lk.windows[i].words = min(1, lk.windows[i].words/most)
		}
	}
}

func isQuestion(text string) bool { return strings.HasSuffix(strings.TrimSpace(text), "?") }

// closely is how many answers get a closer look.
const closely = 12

// closer reads the best answers to a question again, each by itself, and puts them in a
// new order: what stands beside a sentence in its window may answer in its stead.
func (lk *look) closer(ctx context.Context, st *reason.State, question string, list []answer) error {
	if !lk.wasRead() || st.Vectors == nil || len(list) == 0 {
		return nil
	}
	top, rest := list[:min(closely, len(list))], list[min(closely, len(list)):]
	lowest := top[len(top)-1].score
	passages, texts := make([]reader.Passage, len(top)), []string{question}
	for i, a := range top {
		w := &lk.windows[a.at]
		from, to := lk.shows(a.unit)
		passages[i] = reader.Passage{Heading: w.Path, Text: w.Text[from:to]}
		texts = append(texts, w.Path+". "+passages[i].Text)
	}
	readings, err := st.Reader.Read(ctx, question, passages)
	if err != nil {
		return err
	}
	vectors, err := st.Vectors.Embed(ctx, texts)
	if err != nil { // the run says so by itself
		return ctx.Err()
	}
	for i := range top {
		r, f := &readings[i], &top[i].feats
		f[featCloserAnswers], f[featCloserAbout], f[featCloserSpan] = clamp(r.Answerable, 10), clamp(r.Relevance, 10), clamp(r.SpanScore, 12)
		f[featCloserNear] = max(0, vectors[0].Dot(vectors[i+1]))
		if top[i].bonus >= headed { // the reader need not see it
			for _, k := range []int{featAnswers, featAbout, featCloserAnswers, featCloserAbout} {
				f[k] = max(f[k], surelyAnswers)
			}
		}
		w := &lk.windows[top[i].at]
		from, _ := lk.shows(top[i].unit)
		if sp, ok := w.Span(from+r.Span.Start, from+r.Span.End); ok {
			top[i].words = sp
		}
		top[i].weigh(&withReader.closer)
	}
	order(top)
	for i := range rest { // they stay behind, as far as they were from each other
		rest[i].score += top[len(top)-1].score - lowest
	}
	return nil
}

// shows is where a window shows a sentence with what it leads to, or a row with the names of its
// columns.
func (lk *look) shows(u unit) (from, to int) {
	w := &lk.windows[u.at]
	from, to, ok := w.At(lk.led(u))
	if !ok {
		return 0, len(w.Text)
	}
	if u.passage.Columns != nil {
		from = strings.LastIndexByte(w.Text[:from], '\n') + 1
	}
	return from, to
}

// definesIt is what a sentence gains that says what a thing is where that is asked.
const definesIt = 2.0

// defines reports a sentence that begins with what is asked about, and says what it is.
func defines(q *lexicon.Question, text string) bool {
	toks := lexicon.Tokens(text)
	for i := 0; i+1 < min(len(toks), len(q.Terms)+4); i++ {
		if len(q.Terms) > 0 && toks[i].Stem == q.Terms[len(q.Terms)-1].Stem {
			switch strings.ToLower(toks[i+1].Text) {
			case "is", "are", "was", "were", "means", "refers", "stands":
				return true
			}
		}
	}
	return false
}

// headed is what a sentence gains under a heading that asks nearly the same, as in lists of frequent questions, or that
// says when what is asked about was released.
const headed = 3.5

// asks reports a heading that is a question, and holds most of this one and little else.
func (lk *look) asks(heading string) bool {
	if !isQuestion(heading) || len(lk.q.Terms) < 2 { // one word alone may be asked of anything
		return false
	}
	words := lexicon.TermSet(heading)
	both := 0.0
	for t, h := range lk.holds(heading) {
		if tm := lk.q.Terms[t]; h == 0 && (tm.Name || tm.Number) {
			return false
		}
		both += h
	}
	return 2*both >= mostlySame*float64(len(words)+len(lk.q.Terms))
}

// told reports an answer whose heading has the version or the date that is asked for: one that holds most of the question,
// or, where a date of release is asked for, any below the numbers of the question.
func (lk *look) told(a answer) bool {
	heading, _, ok := lk.above(a)
	if !ok || lk.q.Kind != lexicon.AskWhen {
		return ok && a.feats[featOwn] >= mostlySame
	}
	return asksRelease.MatchString(lk.q.Text) && slices.ContainsFunc(lk.q.Terms, func(t lexicon.Term) bool { return t.Number }) &&
		lk.lost(&window{held: lk.holds(heading)}, func(t lexicon.Term) bool { return t.Number }) == 0
}

var asksRelease = regexp.MustCompile(`(?i)^when\b.*\b(released?|published|c[ao]me out|issued)\b`)

// mostlySame is how many of the words of two questions are the same where both ask one thing.
const mostlySame = 0.66

func (lk *look) wasRead() bool {
	return slices.ContainsFunc(lk.windows, func(w window) bool { return w.reading != nil })
}

// candidates are the sentences of a window: of one that was read, those with the
// words that the reader points at; of any other, those that hold a word of the question.
func (lk *look) candidates(i int) []answer {
	w := &lk.windows[i]
	var out []answer
	for _, u := range lk.units(i) {
		a := answer{unit: u}
		if r := w.reading; r != nil {
			from, to, shown := w.At(u.span)
			for _, s := range r.Spans {
				if shown && s.Span.Start >= from && s.Span.Start < to {
					sp, _ := w.Span(s.Span.Start, min(s.Span.End, to))
					a.words = sp
					a.feats[featSpan] = clamp(s.Score, 12)
					break
				}
			}
			if a.words == (marchwarden.Span{}) {
				a.feats[featSpan] = -12
			}
			a.feats[featRead], a.feats[featAnswers], a.feats[featAbout] = 1, clamp(r.Answerable, 10), clamp(r.Relevance, 10)
		}
		held := lk.holds(w.head() + u.text)
		if w.reading == nil && slices.Max(append(held, 0)) == 0 {
			continue
		}
		a.feats[featOwn], a.feats[featWindow] = lk.share(held), lk.share(w.held)
		a.feats[featRank], a.feats[featNear] = w.words, w.near
		a.feats[featNames] = lk.lost(w, func(t lexicon.Term) bool { return t.Name })
		a.feats[featNumbers] = lk.lost(w, func(t lexicon.Term) bool { return t.Number })
		a.feats[featThin] = thin(u.text)
		out = append(out, a)
	}
	return out
}

func clamp(v, most float64) float64 { return max(-most, min(most, v)) }

// lost is the share of some of the question's terms that a window lacks.
func (lk *look) lost(w *window, which func(lexicon.Term) bool) float64 {
	n, lost := 0.0, 0.0
	for t, tm := range lk.q.Terms {
		if which(tm) {
			n++
			lost += 1 - w.held[t]
		}
	}
	return lost / max(1, n)
}

// thin is 1 for what says nothing by itself: a word without a number.
func thin(text string) float64 {
	content := 0
	number := false
	for _, t := range lexicon.Tokens(text) {
		if !t.Stop {
			content++
		}
		number = number || t.Number
	}
	if content == 0 || content < 2 && !number {
		return 1
	}
	return 0
}

// What tells whether the first of the answers is right, and whether there is one at
// all: its own features, and these.
const (
	oddsScore  = numFeatures + iota // its score
	oddsMargin                      // how far the next is behind, at most farBehind
	oddsMost                        // the most that the reader gave any window for answering
	oddsSpan                        // and any words
	numOdds
)

const farBehind = 3

// odds are the log-odds by one of the fitted lines.
func odds(list []answer, line [numOdds + 1]float64) float64 {
	var x [numOdds]float64
	copy(x[:], list[0].feats[:])
	x[oddsScore], x[oddsMargin], x[oddsMost], x[oddsSpan] = list[0].score, farBehind, -10, -12
	if len(list) > 1 {
		x[oddsMargin] = min(farBehind, list[0].score-list[1].score)
	}
	for _, a := range list {
		x[oddsMost], x[oddsSpan] = max(x[oddsMost], a.feats[featAnswers]), max(x[oddsSpan], a.feats[featSpan])
	}
	sum := line[numOdds] // the bias
	for i, v := range x {
		sum += line[i] * v
	}
	return sum
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
