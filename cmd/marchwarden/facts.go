package main

import (
	"context"
	"fmt"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/history"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

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
	entries, _, err := ledger.Read(d.cfg.Text(settings.Ledger))
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

// whole is what a run and the rihlas that it sent spent, with what they searched.
func (d *desk) whole(res *marchwarden.Result) (history.Spent, []string) {
	return d.spent(res, history.Whole)
}

// since is whole of what is in no earlier line of the ledger.
func (d *desk) since(res *marchwarden.Result) (history.Spent, []string) {
	return d.spent(res, history.SinceItsEnd)
}

// spent reads the traces of a run. One that cannot be read tells nothing; 'verify' says
// why.
func (d *desk) spent(res *marchwarden.Result, of history.Scope) (history.Spent, []string) {
	return history.Together(res, func(id marchwarden.TraceID) (history.Trail, error) {
		log, err := d.records.traces.Load(id)
		if err != nil {
			return history.Trail{}, err
		}
		return history.TrailOf(log, of), nil
	})
}

// costWords is the estimated price of a call for people.
func costWords(usd *float64) string {
	switch {
	case usd == nil:
		return "cost unknown"
	case *usd == 0:
		return "no cost"
	}
	return fmt.Sprintf("about $%.4f", *usd)
}
