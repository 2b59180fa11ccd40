package extractive

import (
	"cmp"
	"context"
	"math"
	"path"
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// How much is looked at for one question.
const (
	considered = 32   // windows that are compared by words and by meaning
	perPart    = 5    // more of them for each part of a question
	readFirst  = 8    // of these, how many the reader reads at once
	readMost   = 20   // and how many in all,
	sureEnough = 4    // unless one answers as surely as this, in log-odds
	nearWeight = 1.5  // of the cosine beside the share of the best score by words
	answerRoom = 1200 // tokens kept for the answer itself, where there are that many
)

// window is a window of the evidence and what it has of the question.
type window struct {
	evidence.Window
	src     *evidence.Source
	held    []float64 // how well it and the headings above it hold each term, 0 to 1
	words   float64   // its score by words, as a share of the best one's
	near    float64   // cosine of its vector and the question's; middling without vectors
	reading *reader.Reading
}

// head is what stands above a window: the name of its document, and its headings.
func (w *window) head() string {
	return pathMarks.Replace(path.Base(w.src.Page.Locator)) + "\n" + w.Path + "\n"
}

// look is what was looked at for a question, the most promising windows first.
type look struct {
	q       *lexicon.Question
	windows []window
	idf     []float64                 // how much of the question hangs on each term: weight times rarity
	loud    map[*evidence.Source]bool // documents in which a sentence shouts
	total   float64                   // the sum of idf
	earlier bool                      // answers are picked, and shown, by earlier rules
	long    bool                      // the answer is a report
}

// study pays for windows that may answer. Keep is held back for what is written
// afterwards. What does not fit is returned unread, and the meter has
// then noted that the budget ended the reading.
func study(st *reason.State, q *lexicon.Question, ws []window, keep int) (lk *look, unread []window) {
	res, err := st.Meter.Reserve(cost(ws) + keep)
	for err != nil && len(ws) > 0 {
		unread = append(unread, ws[len(ws)-1])
		ws = ws[:len(ws)-1]
		if room := st.Meter.FreeRoom() - keep; cost(ws) <= room {
			res, err = st.Meter.Reserve(cost(ws))
		}
	}
	if err == nil {
		res.Settle(cost(ws))
	}
	lk = &look{q: q, windows: ws, earlier: st.Evidence.Earlier, long: inSections(st, q)}
	lk.weigh(st.Evidence)
	return lk, unread
}

func cost(ws []window) int {
	n := 0
	for _, w := range ws {
		n += lexicon.EstimateTokens(w.Text) + labelCost
	}
	return n
}

// rank orders the windows of the evidence by the words of the question and of its
// parts. Where few have any, the first windows of the documents fill up: they were
// found by their meaning.
func rank(q *lexicon.Question, set *evidence.Set, most int) []window {
	scores := map[evidence.ID]float64{}
	count := func(stems []string, weight float64) {
		ranked := set.Rank(stems, 0)
		for _, p := range ranked {
			scores[p.ID] = max(scores[p.ID], weight*p.Score/ranked[0].Score)
		}
	}
	var stems []string
	for _, t := range q.Terms {
		stems = append(stems, t.Stem)
		if n := set.Holding(t.Stem); t.Number && !set.Earlier && n > 0 && n <= rareNumber {
			count([]string{t.Stem}, partWeight)
		}
	}
	count(stems, 1)
	if len(q.Parts) > 1 {
		for _, p := range q.Parts {
			count(p.Stems, partWeight)
		}
	}
	var all []window
	fill := 0
	for _, src := range set.Sources() {
		for w := range src.Windows() {
			one := window{Window: w, src: src, near: middling}
			for _, i := range w.Passages {
				one.words = max(one.words, scores[src.Passages[i].ID])
			}
			if one.words == 0 {
				fill++
			}
			if one.words > 0 || fill <= most { // of a large document, most hold no word
				all = append(all, one)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b window) int { return cmp.Compare(b.words, a.words) })
	return all[:min(most, len(all))]
}

// middling is the cosine of a window that may answer, for want of a vector.
const middling = 0.45

// partWeight is what the best window for one part of a question, or for a number in it, counts.
const partWeight = 0.9

// rareNumber is in how many passages, or under whose heads, a number stands that leads to them, such as that of a version.
const rareNumber = 12

// weigh finds what each window holds, and how rare each term is.
func (lk *look) weigh(set *evidence.Set) {
	passages := set.Len()
	lk.idf = make([]float64, len(lk.q.Terms))
	for i := range lk.windows {
		w := &lk.windows[i]
		w.held = lk.holds(w.head() + w.Text)
	}
	lk.hush()
	for t, tm := range lk.q.Terms {
		n := float64(set.Holding(tm.Stem))
		lk.idf[t] = tm.Weight * math.Sqrt(math.Log(1+(float64(passages)-n+0.5)/(max(n, 1)+0.5)))
		lk.total += lk.idf[t]
	}
}

// holds is how well a text holds each term.
func (lk *look) holds(text string) []float64 {
	held := make([]float64, len(lk.q.Terms))
	seen := map[string]bool{}
	for _, tok := range lexicon.Tokens(text) {
		if seen[tok.Stem] {
			continue
		}
		seen[tok.Stem] = true
		for t, tm := range lk.q.Terms {
			held[t] = max(held[t], lexicon.Alike(tm, tok.Stem))
		}
	}
	return held
}

// share is the part of the question's weight that held covers.
func (lk *look) share(held []float64) float64 {
	if lk.total == 0 {
		return 0
	}
	sum := 0.0
	for t, h := range held {
		sum += lk.idf[t] * h
	}
	return sum / lk.total
}

// mean ranks windows by their meaning, too. An embedder that fails leaves the order
// as it is: the run says so by itself.
func mean(ctx context.Context, st *reason.State, q *lexicon.Question, ws []window) {
	if st.Vectors == nil || len(ws) == 0 {
		return
	}
	texts := []string{q.Text}
	for _, w := range ws {
		texts = append(texts, w.Path+". "+w.Text)
	}
	vectors, err := st.Vectors.Embed(ctx, texts)
	if err != nil {
		return
	}
	for i, v := range vectors[1:] {
		ws[i].near = max(0, vectors[0].Dot(v))
	}
	slices.SortStableFunc(ws, func(a, b window) int {
		return cmp.Compare(b.words+nearWeight*b.near, a.words+nearWeight*a.near)
	})
}

// read lets the reader read the most promising windows: a few at first, and more
// unless one of them answers surely. A reader that is cut off leaves the rest unread.
func (lk *look) read(ctx context.Context, st *reason.State) error {
	if st.Reader == nil {
		return nil
	}
	for from := 0; from < min(readMost, len(lk.windows)); from += readFirst {
		batch := lk.windows[from:min(from+readFirst, readMost, len(lk.windows))]
		passages := make([]reader.Passage, len(batch))
		for i := range batch {
			passages[i] = reader.Passage{Heading: batch[i].Path, Text: batch[i].Text}
		}
		readings, err := st.Reader.Read(ctx, lk.q.Text, passages)
		if err != nil {
			return err
		}
		sure := false
		for i := range batch {
			batch[i].reading = &readings[i]
			sure = sure || readings[i].Answerable >= sureEnough && readings[i].SpanScore >= sureEnough && !lk.loud[batch[i].src]
		}
		if sure && len(lk.q.Parts) < 2 && !lk.q.Broad {
			break
		}
	}
	return nil
}

// partShare is how much of part p the window at i speaks to; all of it where no word of
// the part counts.
func (lk *look) partShare(p, i int) float64 {
	sum, all := 0.0, 0.0
	for t, tm := range lk.q.Terms {
		if slices.Contains(lk.q.Parts[p].Stems, tm.Stem) {
			all += lk.idf[t]
			sum += lk.idf[t] * lk.windows[i].held[t]
		}
	}
	if all == 0 {
		return 1
	}
	return sum / all
}

func (lk *look) anywhere() []float64 {
	held := make([]float64, len(lk.q.Terms))
	for i := range lk.windows {
		held = either(held, lk.windows[i].held)
	}
	return held
}

// unit is one sentence, item, row or line of a window.
type unit struct {
	at      int // index into windows
	passage *evidence.Passage
	span    marchwarden.Span
	text    string // as the document has it
}

func (lk *look) units(i int) []unit {
	w := &lk.windows[i]
	var out []unit
	for _, k := range w.Passages {
		p := &w.src.Passages[k]
		for _, sp := range p.Sentences {
			out = append(out, unit{i, p, sp, w.src.Text[sp.Start:sp.End]})
		}
	}
	return out
}
