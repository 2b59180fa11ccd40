package run

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

// Trail is what one trace tells of that, without those of the rihlas.
type Trail struct {
	Spent
	Library []string // what was searched

	earlier []marchwarden.TraceID // rihlas that have not reported within the scope
}

// TrailOf reads a trace.
func TrailOf(log *trace.Log, of Scope) Trail {
	f := FactsOf(log.Steps)
	t := Trail{Spent: f.Spent}
	if f.Start != nil {
		t.Library = f.Start.Library
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

// Spent is what a run and the rihlas that it sent spent, with what they searched. A
// trace that cannot be read tells nothing; 'verify' says why.
func (s Store) Spent(res *marchwarden.Result, of Scope) (Spent, []string) {
	return Together(res, func(id marchwarden.TraceID) (Trail, error) {
		log, err := s.Traces.Load(id)
		if err != nil {
			return Trail{}, err
		}
		return TrailOf(log, of), nil
	})
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
		if err != nil { // an external researcher's, or one that did not live to name its run
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
