package web

import (
	"cmp"
	"context"
	"fmt"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

// asServer asks in the name of the server itself, for what every caller of a
// stream was let in for.
func asServer() context.Context { return access.With(context.Background(), access.Local()) }

// live is how a run stands, as a view.
func (s *Server) live(id marchwarden.TraceID, b *run.Board, over bool) page.Live {
	end, elapsed := b.Last, time.Duration(0)
	if !over {
		end = s.Now()
	}
	if !b.Began.IsZero() {
		elapsed = max(0, end.Sub(b.Began))
	}
	v := page.Live{ID: id.String(), Over: over, Interrupted: b.Interrupted, Began: s.local(b.Began), Elapsed: elapsed,
		Tokens: b.Tokens, Budget: b.Budget, Citations: b.Citations, Picture: page.Lanes(b, end, !over), Lanes: b.Lanes, Decisions: b.Decisions}
	under := 0
	for i, l := range b.Lanes {
		if i > 0 && l.State != run.Done && l.State != run.Failed {
			under++
		}
		for _, d := range l.Discoveries {
			v.Discoveries = append(v.Discoveries, page.Discovery{DiscoveryEvent: d, From: l.Researcher})
		}
	}
	v.Gaps = (&report.Report{Result: &marchwarden.Result{Gaps: b.Gaps(), Decisions: b.Decisions}}).View().Gaps
	if len(b.Lanes) > 0 {
		v.State = string(b.Lanes[0].State)
	}
	v.Summary = summary(b, under, over)
	return v
}

// summary says how a run stands in a sentence.
func summary(b *run.Board, under int, over bool) string {
	journeys := len(b.Lanes) - 1
	switch {
	case over && b.Interrupted:
		return "the run was stopped"
	case over:
		return "the run has ended"
	case journeys > 0 && under > 0:
		return fmt.Sprintf("%d of %s at work", under, term.Plural(journeys, "researcher"))
	case len(b.Lanes) > 0:
		return cmp.Or(b.Lanes[0].Doing, string(b.Lanes[0].State))
	}
	return "the run begins"
}

// entry is a run in a list, its times as people see them.
func (s *Server) entry(e run.Entry) run.Entry {
	e.Began = s.local(e.Began)
	return e
}
