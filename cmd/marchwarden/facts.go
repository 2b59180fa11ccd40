package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// facts is what a trace tells about a run that its result does not.
type facts struct {
	read        int // documents
	searches    int
	unpriced    bool // a rihla may have cost what is recorded nowhere here
	interrupted bool
	known       bool                     // the trace could be read
	tokens      map[string]ledger.Tokens // by model
	exhausted   []string                 // the caps at which it ended
}

// complete looks at a run that had ended before: whoever ended it may have died before
// it told the ledger. It returns its start.
func (d *desk) complete(res *marchwarden.Result) (*trace.Start, error) {
	log, err := d.records.traces.Load(res.TraceID)
	if err != nil {
		return nil, err
	}
	start, err := log.Start()
	if err != nil || d.partOf {
		return start, err
	}
	entries, _, err := ledger.Read(d.cfg.text(setLedger))
	if err != nil {
		return start, nil // a ledger that cannot be read costs no answer
	}
	ends, told := 0, 0
	for _, s := range log.Steps {
		if _, ok := s.(*trace.Complete); ok {
			ends++
		}
	}
	for _, e := range entries {
		if e.TraceID == res.TraceID {
			told++
		}
	}
	if told < ends {
		d.enter(finished{start, res, d.before(log)})
	}
	return start, nil
}

// before is what a run had cost at its end before the last.
func (d *desk) before(log *trace.Log) marchwarden.CostMetadata {
	var ends []*trace.Complete
	for _, s := range log.Steps {
		if c, ok := s.(*trace.Complete); ok {
			ends = append(ends, c)
		}
	}
	if len(ends) < 2 {
		return marchwarden.CostMetadata{}
	}
	stored, err := d.records.blobs.Get(context.Background(), ends[len(ends)-2].Result)
	if err != nil {
		return marchwarden.CostMetadata{}
	}
	res, err := marchwarden.DecodeResult(stored)
	if err != nil {
		return marchwarden.CostMetadata{}
	}
	return res.CostMetadata
}

// scope is which part of a run facts are wanted of.
type scope int

// The scopes: all of a run, or what it did since it last went past an end.
const (
	allOfIt scope = iota
	sinceItsEnd
)

// facts reads a trace. One that cannot be read tells nothing; 'verify' says why.
func (d *desk) facts(id marchwarden.TraceID, of scope) facts {
	f := facts{tokens: map[string]ledger.Tokens{}}
	log, err := d.records.traces.Load(id)
	if err != nil {
		return f
	}
	f.known = log.Complete() != nil
	for _, s := range stepsOf(log, of) {
		switch s := s.(type) {
		case *trace.FetchComplete:
			if s.Error == "" {
				f.read++
			}
		case *trace.SearchComplete:
			f.searches++
		case *trace.ModelComplete:
			f.tokens[s.Model] = f.tokens[s.Model].Plus(ledger.Tokens{In: s.TokensIn, Out: s.TokensOut, CacheRead: s.CacheRead, CacheWrite: s.CacheWrite})
		case *trace.EmbedComplete:
			if s.TokensIn > 0 {
				f.tokens[s.Model] = f.tokens[s.Model].Plus(ledger.Tokens{In: s.TokensIn})
			}
		case *trace.BudgetExhausted:
			f.exhausted = s.What
		case *trace.Resume: // with more of it
			f.exhausted = nil
		case *trace.Complete:
			f.interrupted = s.Interrupted
		}
	}
	return f
}

// stepsOf are the steps of a run within a scope.
func stepsOf(log *trace.Log, of scope) []trace.Step {
	from, end := 0, 0
	for i, s := range log.Steps {
		switch s.(type) {
		case *trace.Complete:
			end = i + 1
		case *trace.Resume: // it went on after that end
			if of == sinceItsEnd {
				from = end
			}
		}
	}
	return log.Steps[from:]
}

// whole is facts of a run and of the rihlas that it sent, with what they searched:
// those of this program are recorded in the same place.
func (d *desk) whole(res *marchwarden.Result) (facts, []string) { return d.family(res, allOfIt) }

// since is whole of what is in no earlier line of the ledger.
func (d *desk) since(res *marchwarden.Result) (facts, []string) { return d.family(res, sinceItsEnd) }

func (d *desk) family(res *marchwarden.Result, of scope) (facts, []string) {
	all := d.facts(res.TraceID, of)
	var searched []string
	seen := d.reportedBefore(res.TraceID, of)
	for _, r := range res.Rihlas {
		if r.TraceID.Valid() && seen[r.TraceID] {
			continue
		}
		seen[r.TraceID] = true
		log, err := d.records.traces.Load(r.TraceID)
		if err != nil { // somebody else's, or one that did not live to name its run
			all.unpriced = all.unpriced || r.TokensUsed > 0 || strings.HasPrefix(r.Outcome, "failed")
			if r.TraceID.Valid() && !slices.Contains(searched, r.Researcher) {
				searched = append(searched, r.Researcher)
			}
			continue
		}
		if start, err := log.Start(); err == nil {
			for _, where := range start.Library {
				if !slices.Contains(searched, where) {
					searched = append(searched, where)
				}
			}
		}
		f := d.facts(r.TraceID, of)
		all.read, all.searches = all.read+f.read, all.searches+f.searches
		if len(all.exhausted) == 0 {
			all.exhausted = f.exhausted
		}
		for model, t := range f.tokens {
			all.tokens[model] = all.tokens[model].Plus(t)
		}
	}
	return all, searched
}

// reportedBefore are the rihlas that have not reported within the scope.
func (d *desk) reportedBefore(id marchwarden.TraceID, of scope) map[marchwarden.TraceID]bool {
	before := map[marchwarden.TraceID]bool{}
	log, err := d.records.traces.Load(id)
	if err != nil {
		return before
	}
	for _, s := range log.Steps {
		if done, ok := s.(*trace.RihlaComplete); ok {
			before[done.TraceID] = true
		}
	}
	for _, s := range stepsOf(log, of) {
		if done, ok := s.(*trace.RihlaComplete); ok {
			delete(before, done.TraceID)
		}
	}
	return before
}

// costWords is the estimated price of a call for people.
func (f facts) costWords(c marchwarden.CostMetadata) string {
	if c.TokensUsed == 0 {
		return "no cost"
	}
	e := ledger.Entry{}
	if usd, known := ledger.EstimateTotal(c.ModelID, c.TokensUsed); known {
		e.CostUSD = &usd
	}
	e.Charge(f.tokens)
	switch {
	case e.CostUSD == nil, f.unpriced:
		return "cost unknown"
	case *e.CostUSD == 0:
		return "no cost"
	}
	return fmt.Sprintf("about $%.4f", *e.CostUSD)
}
