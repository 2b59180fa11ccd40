package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

type told struct {
	*report.Report
	view  *report.View
	asked []string // the researchers
}

// tell reads a run that has a result.
func (s *Server) tell(ctx context.Context, id marchwarden.TraceID) (*told, error) {
	run, err := s.Store.Load(id)
	if err != nil {
		return nil, unreadable(err)
	}
	r, err := report.Gather(ctx, s.Store, run)
	if errors.Is(err, marchwarden.CodeNotFound) || errors.Is(err, marchwarden.CodeCorrupt) { // the run is there
		err = marchwarden.Wrap(err, marchwarden.CodeCorrupt, "its result cannot be had")
	}
	if err != nil {
		return nil, unreadable(err)
	}
	t := &told{r, r.View(), []string{run.Start.Researcher}}
	r.StartedAt = s.local(r.StartedAt)
	if inv := run.Start.Investigation; inv != nil {
		t.asked = nil
		for _, m := range inv.Members {
			t.asked = append(t.asked, m.Name)
		}
	}
	return t, nil
}

// unreadable is an error of reading a record. The fault is in the record, not in the request.
func unreadable(err error) error {
	switch marchwarden.CodeOf(err) {
	case marchwarden.CodeInvalid, marchwarden.CodeMalformed, marchwarden.CodeInternal:
		return marchwarden.Wrap(err, marchwarden.CodeCorrupt, "it cannot be read")
	}
	return err
}

func (s *Server) answerPage(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID, board *run.Board) error {
	standing := run.Look(s.Store.Traces, id)
	t, err := s.tell(r.Context(), id)
	switch marchwarden.CodeOf(err) {
	case marchwarden.CodeUnsupported:
		return s.unanswered(w, r, board, standing, "This run was cut off before it had an answer.")
	case marchwarden.CodeCorrupt:
		return s.damaged(w, r, board, standing, err)
	}
	if err != nil {
		return err
	}
	v := s.answer(t, standing)
	v.Can = can(r.Context(), v.Can)
	v.Frame = s.frame(r, t.view.Title)
	last, words, checked := s.App.Drifted(id)
	v.Drift = words
	if checked {
		v.States = map[int]string{}
		for i := range t.Result.Citations {
			v.States[i+1], _ = stateIn(last, i+1)
		}
	}
	n, chosen := sourceNumber(r, len(t.Result.Citations))
	if !chosen {
		n = firstCited(t.view)
	}
	if n > 0 {
		e := s.evidence(t, n, panelChars)
		e.Preview, v.Evidence = !chosen, &e
	}
	return s.html(w, r, v.Page())
}

func firstCited(v *report.View) int {
	for _, c := range v.Claims {
		if len(c.Sources) > 0 {
			return c.Sources[0]
		}
	}
	return min(1, len(v.Sources))
}

func (s *Server) damaged(w http.ResponseWriter, r *http.Request, board *run.Board, g run.Entry, err error) error {
	s.Log.Warn("the record of a run cannot be read", "trace_id", g.ID.String(), "error", err)
	if board == nil {
		board = &run.Board{Question: g.Question}
	}
	message, _ := s.told(r.Context(), err)
	return s.unanswered(w, r, board, g, "The record of this run is damaged: "+message+".")
}

// unanswered is the page of a run that ended without a result: its lanes as far as they came.
func (s *Server) unanswered(w http.ResponseWriter, r *http.Request, board *run.Board, g run.Entry, why string) error {
	live := s.live(g.ID, board, true)
	v := page.Answer{Frame: s.frame(r, board.Question), ID: g.ID.String(), Report: report.Report{Question: board.Question, StartedAt: s.local(board.Began)},
		View: report.View{Notices: []string{why}, Gaps: live.Gaps}, Discoveries: live.Discoveries, Decisions: live.Decisions}
	v.Can = can(r.Context(), page.Can{Resume: g.Resumable, Delete: true})
	return s.html(w, r, v.Page())
}

func (s *Server) answer(t *told, g run.Entry) page.Answer {
	res := t.Result
	v := page.Answer{Report: *t.Report, View: *t.view, ID: res.TraceID.String(), Partial: g.Partial, Grounds: strings.Join(report.Grounds(res), ", "), Body: report.AnswerHTML(res)}
	if g.Partial || g.Status == run.Complete || g.Status == run.Planned { // else it went on, and took more than its result says
		v.Cost = res.CostMetadata.CostUSD
	}
	for _, d := range res.DiscoveryEvents {
		if d.Type == marchwarden.ContradictionDetected && len(res.Contradictions) > 0 {
			continue // it stands with the contradictions
		}
		v.Discoveries = append(v.Discoveries, page.Discovery{DiscoveryEvent: d})
	}
	for _, d := range res.Decisions {
		if !marchwarden.GapCategory(d.About).Known() {
			v.Decisions = append(v.Decisions, d)
		}
	}
	v.Can = page.Can{Resume: g.Resumable, Rerun: !g.Imported, Check: true, Delete: true, Watch: s.Watched.Dir != "" && !g.Imported && !g.Partial, Exports: s.App.Formats()}
	if !g.Imported && !g.Rihla {
		v.Can.Follow = t.asked
	}
	if res.CostMetadata.BudgetExhausted && !g.Partial { // one that was stopped continues with what is left
		v.Can.More = t.Limits.TokenBudget
	}
	return v
}

func can(ctx context.Context, c page.Can) page.Can {
	if may(ctx, access.ScopeResearch) {
		return c
	}
	return page.Can{Exports: c.Exports}
}

// passageWords say what became of a passage. Of what is not known nothing is said.
var passageWords = map[drift.Standing]string{
	drift.Present: "this excerpt is still there",
	drift.Altered: "this excerpt stands there in another wording",
	drift.Missing: "this excerpt is no longer there",
}

func stateIn(last drift.Report, n int) (state, detail string) {
	src := slices.IndexFunc(last.Sources, func(s drift.Source) bool { return slices.Contains(s.Citations, n) })
	if src < 0 {
		return "", ""
	}
	var said []string
	if i := slices.IndexFunc(last.Passages, func(p drift.Passage) bool { return p.Citation == n }); i >= 0 {
		said = append(said, passageWords[last.Passages[i].State])
	}
	said = slices.DeleteFunc(append(said, last.Sources[src].Detail), func(s string) bool { return s == "" })
	return page.DriftState(last.Sources[src]), strings.Join(said, "; ")
}
