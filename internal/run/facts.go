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

// Scope is which part of a run is meant.
type Scope int

// The scopes: all of a run, or what it did since it last went past an end.
const (
	Whole Scope = iota
	SinceItsEnd
)

// SpentIn is what a run and the rihlas that it sent spent, and what these searched, by the
// traces that load gives. Of a result, its id and its rihlas are looked at. A trace that
// cannot be read tells nothing; 'verify' says why.
func SpentIn(load func(marchwarden.TraceID) (*trace.Log, error), res *marchwarden.Result, of Scope) (all Spent, searched []string) {
	within := func(log *trace.Log) (whole, part *Facts) {
		if whole = FactsOf(log.Steps); of == SinceItsEnd {
			return whole, FactsOf(log.Steps[whole.past:])
		}
		return whole, whole
	}
	all.Tokens = map[string]ledger.Tokens{}
	seen := map[marchwarden.TraceID]bool{}
	if log, err := load(res.TraceID); err == nil {
		whole, part := within(log)
		all = part.Spent
		for _, r := range whole.Reports[:len(whole.Reports)-len(part.Reports)] {
			seen[r.TraceID] = !slices.ContainsFunc(part.Reports, func(s *trace.RihlaComplete) bool { return s.TraceID == r.TraceID })
		}
	}
	for _, r := range res.Rihlas {
		if r.TraceID.Valid() && seen[r.TraceID] {
			continue
		}
		seen[r.TraceID] = true
		log, err := load(r.TraceID)
		if err != nil { // an external researcher's, or one that did not live to name its run
			all.Unpriced = all.Unpriced || r.TokensUsed > 0 || strings.HasPrefix(r.Outcome, "failed")
			if r.TraceID.Valid() {
				searched = append(searched, r.Researcher)
			}
			continue
		}
		whole, part := within(log)
		if whole.Start != nil {
			searched = append(searched, whole.Start.Library...)
		}
		all.Read, all.Searches = all.Read+part.Read, all.Searches+part.Searches
		if len(all.Exhausted) == 0 {
			all.Exhausted = part.Exhausted
		}
		for model, t := range part.Tokens {
			all.Tokens[model] = all.Tokens[model].Plus(t)
		}
	}
	var once []string
	for _, s := range searched {
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return all, once
}
