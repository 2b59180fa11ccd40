package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
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
	live := s.live(board)
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

const (
	// panelChars is how much of the stored text stands before an excerpt in the panel,
	// and as much after it: little enough for the excerpt to be near without a script.
	panelChars = 700
	// wholeChars is the same for the page of a source.
	wholeChars = 1 << 20
)

func sourceNumber(r *http.Request, most int) (int, bool) {
	n, err := strconv.Atoi(cmp.Or(r.PathValue("n"), r.URL.Query().Get("source")))
	return n, err == nil && n >= 1 && n <= most
}

func (s *Server) panel(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) error {
	t, n, err := s.cited(r, id)
	if err != nil {
		return err
	}
	return s.html(w, r, new(s.evidence(t, n, panelChars)).Panel())
}

func (s *Server) cited(r *http.Request, id marchwarden.TraceID) (*told, int, error) {
	t, err := s.tell(r.Context(), id)
	if err != nil {
		return nil, 0, err
	}
	n, ok := sourceNumber(r, len(t.Result.Citations))
	if !ok {
		return nil, 0, noSource
	}
	return t, n, nil
}

// evidence is a source with so many characters of its text before the excerpt, and as many after it.
func (s *Server) evidence(t *told, n, chars int) page.Evidence {
	c, v := t.Result.Citations[n-1], t.view.Sources[n-1]
	e := page.Evidence{RunID: t.Result.TraceID.String(), Number: n, Of: len(t.Result.Citations), Cited: c, Notes: v.Problems}
	if c.FetchedAt != nil {
		at := s.local(*c.FetchedAt)
		e.Cited.FetchedAt = &at
	}
	if n <= len(t.Sources) {
		e.Author, e.Problem = t.Sources[n-1].Page.Author, t.Sources[n-1].Problem
	}
	for _, k := range v.Claims {
		e.Claims = append(e.Claims, t.view.Claims[k-1])
	}
	if last, _, checked := s.App.Drifted(t.Result.TraceID); checked {
		e.State, e.Detail = stateIn(last, n)
		e.CheckedAt = s.local(last.CheckedAt)
	}
	if win, ok := t.Excerpt(n-1, chars); ok {
		e.Window = &win
	}
	pdf, at := s.printed(t, n)
	e.Printed, e.Leaf = pdf.Valid(), at.Page
	return e
}

func (s *Server) sourcePage(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) error {
	t, n, err := s.cited(r, id)
	if err != nil {
		return err
	}
	v := page.Source{Frame: s.frame(r, t.view.Sources[n-1].Heading), RunID: id.String(), Question: t.Question, Evidence: s.evidence(t, n, wholeChars)}
	hash := t.Result.Citations[n-1].ContentHash
	for i, c := range t.Result.Citations {
		if c.ContentHash == hash && hash != "" {
			v.Excerpts = append(v.Excerpts, t.view.Sources[i])
		}
	}
	return s.html(w, r, v.Page())
}

// Passage is a text of a PDF, as it is asked for to be marked on a picture of its page.
type Passage struct {
	Text   string
	Page   int    // that it begins on, counted from one; 0 is not known
	Before string // what stands before it, on its page if that is known
}

const (
	// maxPictures is how many pictures are kept; a page that could not be drawn is one, too.
	maxPictures = 12
	// maxDrawn bounds a PDF of which a page is drawn, in bytes.
	maxDrawn = 64 << 20
)

var noPicture = marchwarden.Errorf(marchwarden.CodeNotFound, "there is no picture of that page")

type pictureKey struct {
	id marchwarden.TraceID
	n  int // of the citation
}

// printed is the stored PDF that a citation is from, and what is cited of it; no valid one if it is
// from none.
func (s *Server) printed(t *told, n int) (pdf blob.Ref, at Passage) {
	if s.Draw == nil || n > len(t.Sources) {
		return pdf, at
	}
	c, src := t.Result.Citations[n-1], t.Sources[n-1]
	if c.Unchecked || c.Span == nil || !c.Span.In(len(src.Text)) {
		return pdf, at
	}
	switch {
	case src.Page.MediaType == "application/pdf" && src.Page.RawBytes <= maxDrawn:
		pdf = src.Page.Raw
	case src.Paper != nil:
		pdf = src.Paper.PDF
	}
	from, to, pages := 0, c.Span.End, src.Page.Pages
	if at.Page = sort.SearchInts(pages, c.Span.Start+1); at.Page > 0 { // the last page that begins no later
		from = min(max(0, pages[at.Page-1]), c.Span.Start)
		if at.Page < len(pages) {
			to = max(c.Span.Start, min(to, pages[at.Page]))
		}
	}
	at.Text, at.Before = src.Text[c.Span.Start:to], src.Text[from:c.Span.Start]
	return pdf, at
}

// picture sends the page of a PDF that a citation is from, with the excerpt marked. One is drawn at a
// time. What cannot be drawn is not there, and is not tried again: a hostile document costs its bound once.
func (s *Server) picture(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) error {
	t, n, err := s.cited(r, id)
	if err != nil {
		return err
	}
	pdf, at := s.printed(t, n)
	if !pdf.Valid() {
		return noPicture
	}
	drawn, err := s.drawn(r.Context(), pictureKey{id, n}, pdf, at)
	if err != nil {
		return err
	}
	if len(drawn) == 0 {
		return noPicture
	}
	w.Header().Set("Content-Type", "image/png")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(drawn))
	return nil
}

// drawn is a picture that was kept, or a new one; nothing if it cannot be drawn.
func (s *Server) drawn(ctx context.Context, key pictureKey, pdf blob.Ref, at Passage) ([]byte, error) {
	select {
	case s.drawing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.drawing }()
	if kept, ok := s.pictures[key]; ok {
		return kept, nil
	}
	raw, err := s.Store.Blobs.Get(ctx, pdf)
	var drawn []byte
	if err == nil && len(raw) <= maxDrawn {
		drawn, err = s.Draw(ctx, raw, at)
	}
	if ctx.Err() != nil { // the reader left, so that nothing is known
		return nil, ctx.Err()
	}
	if err != nil {
		s.Log.Warn("a page of a PDF cannot be drawn", "trace_id", key.id.String(), "citation", key.n, "error", err)
		drawn = nil
	}
	if len(s.pictures) >= maxPictures {
		clear(s.pictures)
	}
	s.pictures[key] = drawn
	return drawn, nil
}
