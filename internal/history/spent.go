package history

import (
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

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
	if s.Unpriced { // nor is a count of no tokens
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

// Trail is what one trace tells, without those of the rihlas.
type Trail struct {
	Spent
	Library []string // what was searched

	earlier []marchwarden.TraceID // rihlas that have not reported within the scope
}

// TrailOf reads a trace.
func TrailOf(log *trace.Log, of Scope) Trail {
	t := Trail{Spent: Spent{Tokens: map[string]ledger.Tokens{}, Known: log.Complete() != nil}}
	if start, err := log.Start(); err == nil {
		t.Library = start.Library
	}
	within := stepsOf(log, of)
	for _, s := range within {
		switch s := s.(type) {
		case *trace.FetchComplete:
			if s.Error == "" {
				t.Read++
			}
		case *trace.SearchComplete:
			t.Searches++
		case *trace.ModelComplete:
			t.Tokens[s.Model] = t.Tokens[s.Model].Plus(ledger.Tokens{In: s.TokensIn, Out: s.TokensOut, CacheRead: s.CacheRead, CacheWrite: s.CacheWrite})
		case *trace.EmbedComplete:
			if s.TokensIn > 0 {
				t.Tokens[s.Model] = t.Tokens[s.Model].Plus(ledger.Tokens{In: s.TokensIn})
			}
		case *trace.BudgetExhausted:
			t.Exhausted = s.What
		case *trace.Resume: // with more of it
			t.Exhausted = nil
		case *trace.Complete:
			t.Interrupted = s.Interrupted
		}
	}
	before, again := reports(log.Steps[:len(log.Steps)-len(within)]), reports(within)
	for id := range before {
		if !again[id] {
			t.earlier = append(t.earlier, id)
		}
	}
	return t
}

// reports are the rihlas that reported in these steps.
func reports(steps []trace.Step) map[marchwarden.TraceID]bool {
	ids := map[marchwarden.TraceID]bool{}
	for _, s := range steps {
		if done, ok := s.(*trace.RihlaComplete); ok {
			ids[done.TraceID] = true
		}
	}
	return ids
}

// stepsOf are the steps of a run within a scope: all from some step on.
func stepsOf(log *trace.Log, of Scope) []trace.Step {
	from, end := 0, 0
	for i, s := range log.Steps {
		switch s.(type) {
		case *trace.Complete:
			end = i + 1
		case *trace.Resume: // it went on after that end
			if of == SinceItsEnd {
				from = end
			}
		}
	}
	return log.Steps[from:]
}

// Together is what a run and the rihlas that it sent spent, and what these searched:
// those of this program are recorded in the same place. Of a result, its id and its
// rihlas are looked at. trail gives the trail of a trace in the scope that is meant,
// or an error if there is none here.
func Together(res *marchwarden.Result, trail func(marchwarden.TraceID) (Trail, error)) (all Spent, searched []string) {
	all.Tokens = map[string]ledger.Tokens{}
	seen := map[marchwarden.TraceID]bool{}
	if own, err := trail(res.TraceID); err == nil {
		all = own.Spent
		all.Tokens = map[string]ledger.Tokens{}
		all.charge(own.Tokens)
		for _, id := range own.earlier {
			seen[id] = true
		}
	}
	for _, r := range res.Rihlas {
		if r.TraceID.Valid() && seen[r.TraceID] {
			continue
		}
		seen[r.TraceID] = true
		part, err := trail(r.TraceID)
		if err != nil { // somebody else's, or one that did not live to name its run
			all.Unpriced = all.Unpriced || r.TokensUsed > 0 || strings.HasPrefix(r.Outcome, "failed")
			if r.TraceID.Valid() && !slices.Contains(searched, r.Researcher) {
				searched = append(searched, r.Researcher)
			}
			continue
		}
		for _, where := range part.Library {
			if !slices.Contains(searched, where) {
				searched = append(searched, where)
			}
		}
		all.Read, all.Searches = all.Read+part.Read, all.Searches+part.Searches
		if len(all.Exhausted) == 0 {
			all.Exhausted = part.Exhausted
		}
		all.charge(part.Tokens)
	}
	return all, searched
}

// charge adds tokens by model.
func (s *Spent) charge(tokens map[string]ledger.Tokens) {
	for model, t := range tokens {
		s.Tokens[model] = s.Tokens[model].Plus(t)
	}
}
