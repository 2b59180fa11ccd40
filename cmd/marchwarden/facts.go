package main

import (
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
	tokens      map[string]ledger.Tokens // by model
}

// facts reads a trace. One that cannot be read tells nothing; 'verify' says why.
func (d *desk) facts(id marchwarden.TraceID) facts {
	f := facts{tokens: map[string]ledger.Tokens{}}
	log, err := d.records.traces.Load(id)
	if err != nil {
		return f
	}
	for _, s := range log.Steps {
		switch s := s.(type) {
		case *trace.FetchComplete:
			if s.Error == "" {
				f.read++
			}
		case *trace.SearchComplete:
			f.searches++
		case *trace.ModelComplete:
			t := f.tokens[s.Model]
			f.tokens[s.Model] = ledger.Tokens{In: t.In + s.TokensIn, Out: t.Out + s.TokensOut, CacheRead: t.CacheRead + s.CacheRead, CacheWrite: t.CacheWrite + s.CacheWrite}
		case *trace.Complete:
			f.interrupted = s.Interrupted
		}
	}
	return f
}

// whole is facts of a run and of the rihlas that it sent, with what they searched:
// those of this program are recorded in the same place.
func (d *desk) whole(res *marchwarden.Result) (facts, []string) {
	all := d.facts(res.TraceID)
	var searched []string
	for _, r := range res.Rihlas {
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
		f := d.facts(r.TraceID)
		all.read, all.searches = all.read+f.read, all.searches+f.searches
		for model, t := range f.tokens {
			sum := all.tokens[model]
			all.tokens[model] = ledger.Tokens{In: sum.In + t.In, Out: sum.Out + t.Out, CacheRead: sum.CacheRead + t.CacheRead, CacheWrite: sum.CacheWrite + t.CacheWrite}
		}
	}
	return all, searched
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
