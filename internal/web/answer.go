package web

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

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
	board *run.Board
	asked []string // the researchers
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
	t := &told{r, r.View(), board, []string{run.Start.Researcher}}
	if inv := run.Start.Investigation; inv != nil {
		t.asked = nil
		for _, m := range inv.Members {
			t.asked = append(t.asked, m.Name)
		}
	}
	s.reports.put(id, bytes, t)
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
	return s.html(w, r, s.pages.Answer(v))
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
		board = &run.Board{Question: g.Question, Researcher: g.Researcher}
	}
	message, _ := s.told(r.Context(), err)
	return s.unanswered(w, r, board, g, "The record of this run is damaged: "+message+".")
}

// unanswered is the page of a run that ended without a result: its lanes as far as they came.
func (s *Server) unanswered(w http.ResponseWriter, r *http.Request, board *run.Board, g run.Entry, why string) error {
	live := s.live(g.ID, board, true)
	v := page.Answer{Frame: s.frame(r, board.Question), ID: g.ID.String(), Question: board.Question, Researcher: board.Researcher, Began: s.local(board.Began),
		View: report.View{Notices: []string{why}, Gaps: live.Gaps}, Lanes: live.Picture, Discoveries: live.Discoveries, Decisions: live.Decisions}
	v.Can = can(r.Context(), page.Can{Resume: g.Resumable, Delete: true})
	return s.html(w, r, s.pages.Answer(v))
}

func (s *Server) answer(t *told, g run.Entry) page.Answer {
	res := t.Result
	v := page.Answer{ID: res.TraceID.String(), Question: t.Question, Asked: t.Asked, Turns: t.Turns, Researcher: t.Researcher, Began: s.local(t.StartedAt), Took: seconds(res.CostMetadata.WallTimeSec),
		Partial: g.Partial, View: *t.view, Body: report.AnswerHTML(res), Confidence: confidenceOf(res, t.view.Factors), Questions: res.OpenQuestions,
		Lanes: page.Lanes(t.board, t.board.Last, false), Stages: stagesTable(t.board.Stages())}
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

func sourceLine(c marchwarden.Citation, n int) page.SourceLine {
	return page.SourceLine{Number: n, Title: c.Title, Locator: c.Locator, Published: c.Published, Authority: string(c.Authority)}
}

// confidenceOf is a confidence with its factors, each with how it bears on it. A bar is
// full where the factor counts as much as it can, by the rubric of package confidence.
func confidenceOf(res *marchwarden.Result, words []report.Fact) page.Confidence {
	f := res.ConfidenceFactors
	authority, ranked := map[marchwarden.Authority]float64{marchwarden.HighAuthority: 1, marchwarden.MediumAuthority: 0.4, marchwarden.LowAuthority: 0}[f.SourceAuthority]
	recency, dated := map[marchwarden.Recency]float64{marchwarden.Current: 1, marchwarden.Recent: 1, marchwarden.Dated: 0}[f.Recency]
	type bearing struct {
		value float64
		known bool
		why   string
	}
	bearings := map[string]bearing{
		"Independent origins":        {min(1, float64(f.NumCorroboratingSources)/3), true, "the more origins say the same, the surer it is; pages of one publisher count once"},
		"Authority of the sources":   {authority, ranked, "the standing of those who say it"},
		"Contradictions":             {flag(!f.ContradictionDetected), true, "sources that disagree make it less sure"},
		"Evidence on what was asked": {float64(f.QuerySpecificityMatch), true, "how much of what was asked the evidence speaks to"},
		"Budget":                     {flag(!f.BudgetExhausted), true, "a run that ran out of budget may have missed something"},
		"Recency":                    {recency, dated, "how old the cited sources are"},
	}
	if n := len(res.Claims); n > 0 {
		stand := 0
		for _, claim := range res.Claims {
			stand += int(flag(claim.Support.Stands()))
		}
		words = append(slices.Clone(words), report.Fact{Label: "Claims that stand", Value: fmt.Sprintf("%d of %d", stand, n)})
		bearings["Claims that stand"] = bearing{float64(stand) / float64(n), true, "sentences whose excerpts were judged to say what they say, or that are copied from them"}
	}
	c := page.Confidence{Value: float64(res.Confidence), Words: "An estimate of how likely the answer is right, from 0 to 1: computed by fixed rules from what follows, and adjusted by how often such scores were right."}
	for _, fact := range words {
		b := bearings[fact.Label]
		factor := page.Factor{Name: fact.Label, Words: fact.Value, Why: b.why}
		if b.known {
			factor.Value = &b.value
		}
		c.Factors = append(c.Factors, factor)
	}
	return c
}

func flag(good bool) float64 {
	if good {
		return 1
	}
	return 0
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

// maxTallies is of how many runs the stages are kept, and maxReports how many reports are.
const (
	maxTallies = 20 * maxBoards
	maxReports = 4
)

// cache keeps what was made of runs, by the length of their traces: a run that went on is another one.
type cache[T any] struct {
	room int
	mu   sync.Mutex // guards kept
	kept map[cacheKey]T
}

type cacheKey struct {
	id    marchwarden.TraceID
	bytes int64
}

func (c *cache[T]) find(id marchwarden.TraceID, bytes int64) (value T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok = c.kept[cacheKey{id, bytes}]
	return value, ok
}

// put keeps a value. Where there is no room, all others go.
func (c *cache[T]) put(id marchwarden.TraceID, bytes int64, value T) {
	c.forget(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) >= c.room {
		c.kept = map[cacheKey]T{}
	}
	c.kept[cacheKey{id, bytes}] = value
}

func (c *cache[T]) forget(id marchwarden.TraceID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.kept, func(k cacheKey, _ T) bool { return k.id == id })
}
