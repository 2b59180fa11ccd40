package extractive

import (
	"context"
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// Watched is what the fit of the weights learns from.
type Watched struct {
	Features [][]float64 // of each candidate
	Texts    []string
	Words    []string
	Sources  []string
}

// Watching is the reasoner that shows the candidates of a draft before it writes it: of a
// question of several clauses, those of the last.
type Watching struct {
	*Reasoner
	See func(Watched)
}

// Write implements reason.Reasoner.
func (w Watching) Write(ctx context.Context, st *reason.State) (reason.Draft, error) {
	if _, ok := computed(st); ok {
		return w.Reasoner.Write(ctx, st)
	}
	before := *st
	before.Limits.TokenBudget = st.Meter.FreeRoom()
	before.Meter = budget.New(before.Limits, 0)
	q := lexicon.ReadQuestion(st.Request.Question, st.Request.Context)
	asked := append([]*lexicon.Question{&q}, clauses(&q, st)...)
	lk, list, _, err := candidates(ctx, &before, asked[len(asked)-1])
	if err != nil {
		return reason.Draft{}, err
	}
	var seen Watched
	for _, a := range list {
		src := lk.windows[a.at].src
		seen.Features = append(seen.Features, slices.Clone(a.feats[:]))
		seen.Texts = append(seen.Texts, lk.said(a))
		seen.Sources = append(seen.Sources, src.Page.Locator)
		seen.Words = append(seen.Words, src.Text[a.words.Start:a.words.End])
	}
	w.See(seen)
	return w.Reasoner.Write(ctx, st)
}
