package web

import (
	"context"
	"errors"
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
	asked []string // the researchers
	bytes int64    // of its trace
}

// tell reads a run that has a result.
func (s *Server) tell(ctx context.Context, id marchwarden.TraceID) (*told, error) {
	bytes, _, err := s.Store.Traces.Size(ctx, id)
	if err != nil {
		return nil, err
	}
	if t, ok := s.reports.find(id); ok && t.bytes == bytes { // one that went on since is another
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
	t := &told{r, r.View(), []string{run.Start.Researcher}, bytes}
	if inv := run.Start.Investigation; inv != nil {
		t.asked = nil
		for _, m := range inv.Members {
			t.asked = append(t.asked, m.Name)
		}
	}
	s.reports.put(id, t)
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
	if e, err := s.History.One(r.Context(), id); err == nil {
		v.Cost = e.CostUSD
	}
	last, words, checked := s.App.Drifted(id)
	v.Drift = words
	if checked {
		for i := range v.Sources {
			v.Sources[i].State, _ = stateIn(last, i+1)
		}
	}
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
	v := page.Answer{Frame: s.frame(r, board.Question), ID: g.ID.String(), Question: board.Question, Began: s.local(board.Began),
		View: report.View{Notices: []string{why}, Gaps: live.Gaps}, Discoveries: live.Discoveries, Decisions: live.Decisions}
	v.Can = can(r.Context(), page.Can{Resume: g.Resumable, Delete: true})
	return s.html(w, r, s.pages.Answer(v))
}

func (s *Server) answer(t *told, g run.Entry) page.Answer {
	res := t.Result
	v := page.Answer{ID: res.TraceID.String(), Question: t.Question, Asked: t.Asked, Turns: t.Turns, Began: s.local(t.StartedAt), Took: seconds(res.CostMetadata.WallTimeSec),
		Partial: g.Partial, View: *t.view, Grounds: strings.Join(report.Grounds(res), ", "), Body: report.AnswerHTML(res), Confidence: confidenceOf(res, t.view.Factors), Questions: res.OpenQuestions}
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
		v.Sources = append(v.Sources, page.SourceLine{Number: i + 1, Title: c.Title, Document: t.view.Sources[i].Document, Published: c.Published, Excerpt: c.RawExcerpt})
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

// bearings are how the factors of a confidence bear on it, by the rubric of package confidence.
var bearings = map[string]string{
	"Independent origins":        "the more origins say the same, the surer it is; pages of one publisher count once",
	"Authority of the sources":   "the standing of those who say it",
	"Contradictions":             "sources that disagree make it less sure",
	"Evidence on what was asked": "how much of what was asked the evidence speaks to",
	"Budget":                     "a run that ran out of budget may have missed something",
	"Recency":                    "how old the cited sources are",
}

func confidenceOf(res *marchwarden.Result, words []report.Fact) page.Confidence {
	c := page.Confidence{Value: float64(res.Confidence), Words: "An estimate of how likely the answer is right, from 0 to 1: computed by fixed rules from what follows, and adjusted by how often such scores were right."}
	for _, fact := range words {
		c.Factors = append(c.Factors, page.Factor{Name: fact.Label, Words: fact.Value, Why: bearings[fact.Label]})
	}
	return c
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

// maxReports is how many reports are kept.
const maxReports = 4

// cache keeps what was made of runs. It is safe for concurrent use.
type cache[K comparable, T any] struct {
	room int
	mu   sync.Mutex // guards kept
	kept map[K]T
}

func (c *cache[K, T]) find(key K) (value T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok = c.kept[key]
	return value, ok
}

// put keeps a value. Where there is no room, all others go.
func (c *cache[K, T]) put(key K, value T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.kept[key]; c.kept == nil || !there && len(c.kept) >= c.room {
		c.kept = map[K]T{}
	}
	c.kept[key] = value
}

func (c *cache[K, T]) forget(which func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.kept, func(key K, _ T) bool { return which(key) })
}
