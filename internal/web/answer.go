package web

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// told is a run that has a result: what its page and its sources are made of.
type told struct {
	*report.Report
	view  *report.View
	board *run.Board
}

// tell reads a run that has a result. board may be nil.
func (s *Server) tell(ctx context.Context, id marchwarden.TraceID, board *run.Board) (*told, error) {
	bytes, _, err := s.Store.Traces.Size(ctx, id)
	if err != nil {
		return nil, err
	}
	if t, ok := s.reports.find(id, bytes); ok {
		return t, nil
	}
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
	if board == nil {
		if board, _, err = s.look(ctx, id); err != nil {
			return nil, err
		}
	}
	size := share(r) + int(bytes)
	t := &told{r, r.View(), board}
	s.reports.put(id, bytes, t, size)
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

// share has citations of one text hold the same one, and gives the bytes of all texts.
func share(r *report.Report) (size int) {
	texts := map[string]string{}
	for i, c := range r.Result.Citations {
		size += len(c.RawExcerpt) + len(c.Title) + len(c.Locator)
		if i >= len(r.Sources) || r.Sources[i].Text == "" {
			continue
		}
		text := r.Sources[i].Text
		if one, ok := texts[c.ContentHash]; ok && one == text {
			r.Sources[i].Text = one
			continue
		}
		texts[c.ContentHash] = text
		size += len(text)
	}
	return size
}

// answerPage is the page of a run that has ended.
func (s *Server) answerPage(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID, board *run.Board) error {
	standing := run.Look(s.Store.Traces, id)
	t, err := s.tell(r.Context(), id, board)
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
		for i := range v.Sources {
			v.Sources[i].State, _ = stateIn(last, i+1)
		}
	}
	v.Support = r.URL.Query().Get("support")
	n, chosen := sourceNumber(r, len(t.Result.Citations))
	if !chosen {
		n = firstCited(t.view)
	}
	if n > 0 {
		e := s.evidence(t, n, last, checked)
		e.Preview, v.Evidence = !chosen, &e
	}
	return s.html(w, r, func(w io.Writer) error { return s.pages.Answer(w, v) })
}

// firstCited is the citation that the answer leads to first, or 0.
func firstCited(v *report.View) int {
	for _, c := range v.Claims {
		if len(c.Sources) > 0 {
			return c.Sources[0]
		}
	}
	return min(1, len(v.Sources))
}

// damaged is the page of a run whose record cannot be read. It can be deleted.
func (s *Server) damaged(w http.ResponseWriter, r *http.Request, board *run.Board, g run.Entry, err error) error {
	s.Log.Warn("the record of a run cannot be read", "trace_id", g.ID.String(), "error", err)
	if board == nil {
		board = &run.Board{Question: g.Question, Researcher: g.Researcher}
	}
	message, _ := s.told(r.Context(), err)
	return s.unanswered(w, r, board, g, "The record of this run is damaged: "+message+".")
}

// unanswered is the page of a run that goes on no more and has no result: its lanes as
// far as they came, and how to go on.
func (s *Server) unanswered(w http.ResponseWriter, r *http.Request, board *run.Board, g run.Entry, why string) error {
	live := s.live(g.ID, board, true)
	v := page.Answer{Frame: s.frame(r, board.Question), ID: g.ID.String(), Question: board.Question, Researcher: board.Researcher, Began: s.local(board.Began),
		Warnings: []string{why}, Lanes: live.Picture, Gaps: live.Gaps, Discoveries: live.Discoveries, Decisions: live.Decisions}
	v.Can = can(r.Context(), page.Can{Resume: g.Resumable, Delete: true})
	return s.html(w, r, func(w io.Writer) error { return s.pages.Answer(w, v) })
}

// answer is a result as a view.
func (s *Server) answer(t *told, g run.Entry) page.Answer {
	res := t.Result
	v := page.Answer{ID: res.TraceID.String(), Question: t.Question, Researcher: t.Researcher, Began: s.local(t.StartedAt), Took: seconds(res.CostMetadata.WallTimeSec),
		Partial: g.Partial, Warnings: t.view.Notices, Lead: t.view.Lead, LeadsTo: t.view.LeadsTo, Body: report.AnswerHTML(res), Closest: t.view.Closest,
		Confidence: confidenceOf(res, t.view.Factors), Claims: t.view.Claims, Contradictions: t.view.Contradictions, Gaps: t.view.Gaps, Questions: res.OpenQuestions,
		Rihlas: t.view.Rihlas, Cost: t.view.Cost, Provenance: t.view.Provenance, Lanes: page.Lanes(t.board, t.board.Last, false), Stages: stagesTable(t.board.Stages())}
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
	for i, c := range res.Citations {
		v.Sources = append(v.Sources, sourceLine(c, i+1))
	}
	v.Can = page.Can{Resume: g.Resumable, Rerun: !g.Imported, Check: true, Delete: true, Exports: exports(s.App.Formats())}
	if res.CostMetadata.BudgetExhausted && !g.Partial { // one that was stopped continues with what is left
		v.Can.More = t.Limits.TokenBudget
	}
	return v
}

// can is what of it the caller may do.
func can(ctx context.Context, c page.Can) page.Can {
	if may(ctx, access.ScopeResearch) {
		return c
	}
	return page.Can{Exports: c.Exports}
}

func exports(formats []Format) []page.Export {
	var out []page.Export
	for _, f := range formats {
		out = append(out, page.Export{Format: f.Name, About: f.About})
	}
	return out
}

func sourceLine(c marchwarden.Citation, n int) page.SourceLine {
	return page.SourceLine{Number: n, Title: c.Title, Locator: c.Locator, Published: c.Published, Authority: string(c.Authority)}
}

// confidenceOf is a confidence with its factors, each with how it bears on it. A bar is
// full where the factor counts as much as it can, by the rubric of package confidence.
func confidenceOf(res *marchwarden.Result, words []report.Fact) page.Confidence {
	f := res.ConfidenceFactors
	measure := func(v float64) *float64 { return &v }
	authority := map[marchwarden.Authority]float64{marchwarden.HighAuthority: 1, marchwarden.MediumAuthority: 0.4, marchwarden.LowAuthority: 0}
	recency := map[marchwarden.Recency]float64{marchwarden.Current: 1, marchwarden.Recent: 1, marchwarden.Dated: 0}
	why := map[string]string{
		"Independent origins":        "the more origins say the same, the surer it is; pages of one publisher count once",
		"Authority of the sources":   "the standing of those who say it",
		"Contradictions":             "sources that disagree make it less sure",
		"Evidence on what was asked": "how much of what was asked the evidence speaks to",
		"Budget":                     "a run that ran out of budget may have missed something",
		"Recency":                    "how old the cited sources are",
	}
	values := map[string]*float64{
		"Independent origins":        measure(min(1, float64(f.NumCorroboratingSources)/3)),
		"Evidence on what was asked": measure(float64(f.QuerySpecificityMatch)),
		"Contradictions":             measure(flag(!f.ContradictionDetected)),
		"Budget":                     measure(flag(!f.BudgetExhausted)),
	}
	if v, ok := authority[f.SourceAuthority]; ok {
		values["Authority of the sources"] = &v
	}
	if v, ok := recency[f.Recency]; ok {
		values["Recency"] = &v
	}
	c := page.Confidence{Value: float64(res.Confidence), Words: "An estimate of how likely the answer is right, from 0 to 1: computed by fixed rules from what follows, and adjusted by how often such scores were right."}
	for _, fact := range words {
		c.Factors = append(c.Factors, page.Factor{Name: fact.Label, Words: fact.Value, Value: values[fact.Label], Why: why[fact.Label]})
	}
	if n := len(res.Claims); n > 0 {
		supported := 0
		for _, claim := range res.Claims {
			if claim.Support.Stands() {
				supported++
			}
		}
		c.Factors = append(c.Factors, page.Factor{Name: "Claims that stand", Words: fmt.Sprintf("%d of %d", supported, n), Value: measure(float64(supported) / float64(n)), Why: "sentences whose excerpts were judged to say what they say, or that are copied from them"})
	}
	return c
}

func flag(good bool) float64 {
	if good {
		return 1
	}
	return 0
}

// passageIn is what became of the passage of a citation by a check.
func passageIn(last drift.Report, n int) drift.Standing {
	for _, p := range last.Passages {
		if p.Citation == n {
			return p.State
		}
	}
	return drift.Unknown
}

// passageWords say it. Of what is not known nothing is said.
var passageWords = map[drift.Standing]string{
	drift.Present: "this excerpt is still there",
	drift.Altered: "this excerpt stands there in another wording",
	drift.Missing: "this excerpt is no longer there",
}

// joined is texts one after the other; those that are nothing are left out.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), "; ")
}

// stateIn is what became of a citation's source by a check, and more in words.
func stateIn(last drift.Report, n int) (state, detail string) {
	for _, src := range last.Sources {
		if slices.Contains(src.Citations, n) {
			return page.DriftState(src), joined(passageWords[passageIn(last, n)], src.Detail)
		}
	}
	return "", ""
}
