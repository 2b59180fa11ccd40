package web

import (
	"context"
	"fmt"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/history"
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
		Tokens: b.Tokens, Budget: b.Budget, Citations: b.Citations, Lanes: Lanes(b, end, !over)}
	under := 0
	for i, l := range b.Lanes {
		v.Journeys = append(v.Journeys, page.Journey{Number: l.Number, Researcher: l.Researcher, Question: l.Question, State: string(l.State), Doing: l.Doing,
			Iteration: l.Iteration, Tokens: l.Tokens, Budget: l.Budget, Searches: l.Searches, Documents: l.Documents, Citations: l.Citations})
		if i > 0 && l.State != run.Done && l.State != run.Failed {
			under++
		}
		for _, d := range l.Discoveries {
			v.Discoveries = append(v.Discoveries, discovery(d, l.Researcher))
		}
	}
	v.Gaps = gapGroups((&report.Report{Result: &marchwarden.Result{Gaps: b.Gaps(), Decisions: b.Decisions}}).View().Gaps)
	for _, d := range b.Decisions {
		v.Decisions = append(v.Decisions, decision(d))
	}
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
		return nonEmpty(b.Lanes[0].Doing, string(b.Lanes[0].State))
	}
	return "the run begins"
}

func nonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func discovery(d marchwarden.DiscoveryEvent, from string) page.Discovery {
	return page.Discovery{Kind: strings.ReplaceAll(string(d.Type), "_", " "), Query: d.Query, Reason: d.Reason, Suggested: d.SuggestedResearcher, Locator: d.SourceLocator, From: from}
}

func decision(d marchwarden.Decision) page.Decision {
	return page.Decision{About: strings.ReplaceAll(d.About, "_", " "), Topic: d.Topic, Action: string(d.Action), Reason: d.Reason, Rihla: d.Rihla}
}

func gapGroups(groups []report.GapGroup) []page.GapGroup {
	var out []page.GapGroup
	for _, g := range groups {
		group := page.GapGroup{Name: g.Words}
		for _, x := range g.Gaps {
			group.Gaps = append(group.Gaps, page.Gap{Topic: x.Topic, Detail: x.Detail, Done: x.Done})
		}
		out = append(out, group)
	}
	return out
}

func facts(all []report.Fact) []page.Fact {
	var out []page.Fact
	for _, f := range all {
		out = append(out, page.Fact(f))
	}
	return out
}

// entry is a run in a list.
func (s *Server) entry(e history.Entry) page.Entry {
	out := page.Entry{ID: e.ID.String(), Question: e.Question, Researcher: e.Researcher, Status: string(e.Status), Began: s.local(e.Began), Took: e.Took,
		Confidence: (*float64)(e.Confidence), Citations: e.Citations, Gaps: e.Gaps, Tokens: e.Tokens, Cost: money(e.CostUSD), Imported: e.Imported, Partial: e.Partial, Problem: e.Problem}
	if e.Answer != "" {
		out.Snippet = []page.Piece{{Text: e.Answer}}
	}
	return out
}

// money is an amount for people, "" if it is not known.
func money(usd *float64) string {
	switch {
	case usd == nil:
		return ""
	case *usd > 0 && *usd < 0.01:
		return fmt.Sprintf("$%.4f", *usd)
	}
	return fmt.Sprintf("$%.2f", *usd)
}
