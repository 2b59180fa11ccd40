package run

import (
	"context"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Facts are what the steps of one trace tell of its run, taken in one pass. What a
// rihla did is told by its own trace.
type Facts struct {
	Start *trace.Start      // nil if the first step begins no run
	Ends  []*trace.Complete // each time that the run had a result
	Ended bool              // and it has not gone on after the last
	// Verified is the last step of the gate, nil if there is none.
	Verified *trace.Verify
	Spent
	Iterations int
	Paid       int     // tokens of the run and, as they reported, of its rihlas
	PaidUSD    float64 // what these cost by the prices of the run, as far as they have any

	Rihlas   []marchwarden.Rihla // in the order in which they are named, as they reported last
	UnderWay map[int]marchwarden.TraceID
	Parts    []marchwarden.TraceID // traces of rihlas, each once; some may be kept somewhere else
	Reports  []*trace.RihlaComplete

	taken, end, past int            // steps: all, up to the last end, and up to the end past which it went on
	at               map[int]int    // of a rihla's number in Rihlas
	paid             map[string]int // by the run of a rihla: one that went on reports for all of it
	told             map[marchwarden.TraceID]bool
	own              []*trace.RihlaComplete
}

// FactsOf reads steps from the beginning of a trace, or from anywhere in it.
func FactsOf(steps []trace.Step) *Facts {
	f := &Facts{Spent: Spent{Tokens: map[string]ledger.Tokens{}}, UnderWay: map[int]marchwarden.TraceID{},
		at: map[int]int{}, paid: map[string]int{}, told: map[marchwarden.TraceID]bool{}}
	for _, s := range steps {
		f.take(s)
	}
	return f
}

func (f *Facts) take(s trace.Step) {
	f.taken++
	switch s := s.(type) {
	case *trace.Start:
		if f.taken == 1 {
			f.Start = s
		}
	case *trace.Iteration:
		f.Iterations++
	case *trace.SearchComplete:
		f.Searches++
	case *trace.FetchComplete:
		if s.Error == "" {
			f.Read++
		}
	case *trace.ModelComplete:
		f.pay(s.Model, ledger.Tokens{In: s.TokensIn, Out: s.TokensOut, CacheRead: s.CacheRead, CacheWrite: s.CacheWrite})
	case *trace.EmbedComplete:
		if s.TokensIn > 0 {
			f.pay(s.Model, ledger.Tokens{In: s.TokensIn})
		}
	case *trace.BudgetExhausted:
		f.Exhausted = s.What
	case *trace.Verify:
		f.Verified = s
	case *trace.Complete:
		f.Ends, f.Ended, f.Known, f.Interrupted, f.end = append(f.Ends, s), true, true, s.Interrupted, f.taken
	case *trace.Resume: // with more of what was exhausted
		f.Ended, f.Known, f.Exhausted, f.past = false, false, nil, f.end
	case *trace.Rihla:
		f.name(s.Number, s.TraceID).Researcher = s.Researcher
		if s.TraceID.Valid() {
			f.UnderWay[s.Number], f.told[s.TraceID] = s.TraceID, true // only its own researchers get their ids from an investigation
		}
	case *trace.RihlaUnderWay:
		f.name(s.Number, s.TraceID)
		f.UnderWay[s.Number] = s.TraceID
	case *trace.RihlaComplete:
		f.report(s)
	}
}

func (f *Facts) pay(model string, t ledger.Tokens) {
	f.Tokens[model] = f.Tokens[model].Plus(t)
	f.Paid += t.In + t.Out
	if f.Start != nil {
		usd, _ := f.Start.Prices.Cost(model, t)
		f.PaidUSD += usd
	}
}

func (f *Facts) name(number int, id marchwarden.TraceID) *marchwarden.Rihla {
	i, known := f.at[number]
	if !known {
		i = len(f.Rihlas)
		f.at[number], f.Rihlas = i, append(f.Rihlas, marchwarden.Rihla{})
	}
	if r := &f.Rihlas[i]; id.Valid() {
		r.TraceID = id
		if f.Start != nil && f.Start.Investigation != nil && id != f.Start.TraceID && !slices.Contains(f.Parts, id) {
			f.Parts = append(f.Parts, id)
		}
	}
	return &f.Rihlas[i]
}

func (f *Facts) report(s *trace.RihlaComplete) {
	r := f.name(s.Number, s.TraceID)
	r.Researcher, r.TokensUsed = s.Researcher, s.TokensUsed
	if s.Error != "" {
		r.Outcome = "failed"
	}
	f.Reports = append(f.Reports, s)
	if f.told[s.TraceID] {
		delete(f.told, s.TraceID)
		f.own = append(f.own, s)
	}
	run := s.Researcher + " " + s.TraceID.String()
	f.Paid += max(0, s.TokensUsed-f.paid[run])
	f.PaidUSD += s.CostUSD
	if s.TraceID.Valid() {
		f.paid[run] = max(f.paid[run], s.TokensUsed)
	}
}

// Latest are the reports without those of rihlas that went on and reported again, for
// all of their run.
func (f *Facts) Latest() []*trace.RihlaComplete {
	last := map[marchwarden.TraceID]*trace.RihlaComplete{}
	for _, r := range f.Reports {
		last[r.TraceID] = r
	}
	return slices.DeleteFunc(slices.Clone(f.Reports), func(r *trace.RihlaComplete) bool { return r.TraceID.Valid() && last[r.TraceID] != r })
}

// Own are the reports that rihlas of this program gave, the first of each. Their traces
// are where that of the investigation is, but those that could not be recorded, which
// their reports say. A report that cannot be read says nothing.
func (f *Facts) Own(ctx context.Context, blobs blob.Store) []*trace.RihlaComplete {
	return slices.DeleteFunc(slices.Clone(f.own), func(r *trace.RihlaComplete) bool {
		res, err := replay.Outcome[*marchwarden.Result](ctx, blobs, r)
		return err != nil || res == nil || slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.HasPrefix(w, trace.Unrecorded) })
	})
}

// Spent is what traces tell about a run that its result does not.
type Spent struct {
	Read        int // documents
	Searches    int
	Tokens      map[string]ledger.Tokens // by model
	Exhausted   []string                 // the caps at which it ended
	Unpriced    bool                     // a rihla may have cost what is recorded nowhere here
	Interrupted bool
	Known       bool // the trace could be read, and the run has ended
}

// Cost is the estimated price of a run with these figures, by the table of package
// ledger; nil is unknown, which is not zero.
func (s Spent) Cost(c marchwarden.CostMetadata) *float64 {
	switch {
	case c.CostUSD != nil: // by the prices of its day
		return c.CostUSD
	case s.Unpriced: // nor is a count of no tokens
		return nil
	}
	if c.TokensUsed == 0 {
		return new(float64)
	}
	e := ledger.Entry{}
	if usd, known := ledger.EstimateTotal(c.ModelID, c.TokensUsed); known {
		e.CostUSD = &usd
	}
	e.Charge(s.Tokens)
	return e.CostUSD
}

// Scope is which part of a run is meant.
type Scope int

// The scopes: all of a run, or what it did since it last went past an end.
const (
	Whole Scope = iota
	SinceItsEnd
)

// trail is what one trace tells of that, without those of the rihlas.
type trail struct {
	Spent
	library []string              // what was searched
	earlier []marchwarden.TraceID // rihlas that have not reported within the scope
}

func trailOf(log *trace.Log, of Scope) trail {
	f := FactsOf(log.Steps)
	t := trail{Spent: f.Spent}
	if f.Start != nil {
		t.library = f.Start.Library
	}
	if of == SinceItsEnd {
		since := FactsOf(log.Steps[f.past:])
		t.Spent = since.Spent
		for _, r := range f.Reports[:len(f.Reports)-len(since.Reports)] {
			if !slices.ContainsFunc(since.Reports, func(s *trace.RihlaComplete) bool { return s.TraceID == r.TraceID }) {
				t.earlier = append(t.earlier, r.TraceID)
			}
		}
	}
	return t
}

// SpentIn is what a run and the rihlas that it sent spent, with what they searched, by the traces that
// load gives. A trace that cannot be read tells nothing; 'verify' says why.
func SpentIn(load func(marchwarden.TraceID) (*trace.Log, error), res *marchwarden.Result, of Scope) (Spent, []string) {
	return together(res, func(id marchwarden.TraceID) (trail, bool) {
		log, err := load(id)
		if err != nil {
			return trail{}, false
		}
		return trailOf(log, of), true
	})
}

// together is what a run and the rihlas that it sent spent, and what these searched:
// those of this program are recorded in the same place. Of a result, its id and its
// rihlas are looked at. find gives the trail of a trace in the scope that is meant, if
// there is one here.
func together(res *marchwarden.Result, find func(marchwarden.TraceID) (trail, bool)) (all Spent, searched []string) {
	seen := map[marchwarden.TraceID]bool{}
	own, _ := find(res.TraceID)
	all = own.Spent
	all.Tokens = map[string]ledger.Tokens{}
	all.charge(own.Tokens)
	for _, id := range own.earlier {
		seen[id] = true
	}
	search := func(where ...string) {
		for _, w := range where {
			if !slices.Contains(searched, w) {
				searched = append(searched, w)
			}
		}
	}
	for _, r := range res.Rihlas {
		if r.TraceID.Valid() && seen[r.TraceID] {
			continue
		}
		seen[r.TraceID] = true
		part, ok := find(r.TraceID)
		if !ok { // an external researcher's, or one that did not live to name its run
			all.Unpriced = all.Unpriced || r.TokensUsed > 0 || strings.HasPrefix(r.Outcome, "failed")
			if r.TraceID.Valid() {
				search(r.Researcher)
			}
			continue
		}
		search(part.library...)
		all.Read, all.Searches = all.Read+part.Read, all.Searches+part.Searches
		if len(all.Exhausted) == 0 {
			all.Exhausted = part.Exhausted
		}
		all.charge(part.Tokens)
	}
	return all, searched
}

func (s *Spent) charge(tokens map[string]ledger.Tokens) {
	for model, t := range tokens {
		s.Tokens[model] = s.Tokens[model].Plus(t)
	}
}
