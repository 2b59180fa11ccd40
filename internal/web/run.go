package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

func (s *Server) runPage(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) error {
	task, unknown := s.Runs.Find(r.Context(), id)
	idle := unknown != nil || ended(task) // asked first: what has ended by now has left all that it will
	board, over, err := s.look(r.Context(), id)
	missing := errors.Is(err, marchwarden.CodeNotFound)
	switch {
	case missing && unknown != nil:
		return noRun
	case missing && idle:
		return s.unbegun(r.Context(), task)
	case errors.Is(unreadable(err), marchwarden.CodeCorrupt):
		return s.damaged(w, r, board, run.Look(s.Store.Traces, id), err)
	case err != nil && !missing:
		w.Header().Set("Retry-After", "2") // a page that follows the run stays
		return err
	case over && idle:
		return s.answerPage(w, r, id, board)
	}
	question := "What was just asked" // the page stays with it until the run ends
	if unknown == nil {
		question = cmp.Or(task.State().Question, question)
	}
	v := page.Run{ID: id.String(), Question: question, Live: page.Live{Summary: "The run begins"}, CanCancel: may(r.Context(), access.ScopeResearch)}
	if !missing && !board.Began.IsZero() { // else nothing stands in its trace yet
		v.Question, v.Live = board.Question, s.live(board)
		if unknown == nil {
			v.Live.Draft = task.Draft()
		}
	}
	v.Frame = s.frame(r, v.Question)
	return s.html(w, r, v.Page())
}

// look reads a run as lanes.
func (s *Server) look(ctx context.Context, id marchwarden.TraceID) (*run.Board, bool, error) {
	return run.ReadBoard(ctx, s.Store.Traces, s.Store.Blobs, id)
}

// unbegun says why a run that has ended left no trace. One that had a result has none any more.
func (s *Server) unbegun(ctx context.Context, task *runs.Run) error {
	_, err := task.Outcome()
	if err == nil || task.State().Status == runs.Completed {
		return noRun
	}
	message, hint := s.told(ctx, err)
	code := marchwarden.CodeOf(err)
	switch code {
	case marchwarden.CodeNotFound: // something that it needed, not the run
		code = marchwarden.CodeUnavailable
	case marchwarden.CodeCanceled:
		code = marchwarden.CodeUnsupported
	}
	return &marchwarden.Error{Code: code, Message: "the run could not begin: " + message, Hint: hint}
}

func ended(run *runs.Run) bool {
	select {
	case <-run.Done():
		return true
	default:
		return false
	}
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) error {
	wait, done := context.WithTimeout(r.Context(), cancelWait)
	defer done()
	task, unknown := s.Runs.Find(r.Context(), id)
	if unknown == nil && !ended(task) {
		task.Cancel()
		select { // what it hands over takes a moment
		case <-task.Done():
		case <-wait.Done():
		}
		return s.back(w, r, id, "canceled")
	}
	_, over, err := s.look(r.Context(), id)
	switch {
	case err != nil && unknown != nil:
		return err
	case err != nil || over:
		return s.back(w, r, id, "over")
	}
	if err := s.Runs.Stop(r.Context(), id); err != nil { // another program of this home works on it
		return err
	}
	for err == nil && !over && wait.Err() == nil {
		select {
		case <-wait.Done():
		case <-time.After(cancelWait / 50):
		}
		_, over, err = s.look(wait, id)
	}
	return s.back(w, r, id, "canceled")
}

// cancelWait is how long the answer to a cancel waits for the end of the run.
const cancelWait = 5 * time.Second

func (s *Server) back(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID, notice string) error {
	return onTo(w, r, page.RunPath(id.String())+"?notice="+notice)
}

func onTo(w http.ResponseWriter, r *http.Request, path string) error {
	http.Redirect(w, r, path, http.StatusSeeOther)
	return nil
}

// notices are what a page says about what was just done.
var notices = map[string]string{
	"over":      "The run had ended already.",
	"canceled":  "The run was told to stop. What it found by then is kept.",
	"resumed":   "The run goes on.",
	"same":      "Run again on its record, the result is the same to the byte.",
	"different": "Run again on its record, the result is not the same. The log of the server says where they differ.",
	"deleted":   "The answer was deleted.",
	"removed":   "The folder is searched no longer. Nothing in it was changed.",
	"watched":   "The question is watched: it is asked again every 7 days.",
	"unwatched": "The question is not watched any more. Its answers stay.",
}

func (s *Server) live(b *run.Board) page.Live {
	v := page.Live{Board: *b, Elapsed: max(0, s.Now().Sub(b.Began))}
	under := 0
	for i, l := range b.Lanes {
		if i > 0 && l.State != run.Done && l.State != run.Failed {
			under++
		}
		for _, d := range l.Discoveries {
			v.Discoveries = append(v.Discoveries, page.Discovery{DiscoveryEvent: d, From: l.Researcher})
		}
	}
	v.Gaps = (&report.Report{Result: &marchwarden.Result{Gaps: b.Gaps, Decisions: b.Decisions}}).View().Gaps
	v.Summary = summary(b, under)
	return v
}

func summary(b *run.Board, under int) string {
	journeys := len(b.Lanes) - 1
	switch {
	case journeys > 0 && under > 0:
		return fmt.Sprintf("%d of %s at work", under, term.Plural(journeys, "researcher"))
	case len(b.Lanes) > 0:
		return cmp.Or(stages[b.Lanes[0].State], string(b.Lanes[0].State))
	}
	return "The run begins"
}

// stages are what an investigator, or the only researcher, is at.
var stages = map[run.State]string{
	run.Planned: "The run begins", run.Planning: "Planning what to look for", run.Searching: "Searching", run.Reading: "Reading", run.Waiting: "Waiting for what was found",
	run.Writing: "Writing the answer", run.Checking: "Checking every citation",
}

func (s *Server) entry(e run.Entry) run.Entry {
	e.Began = s.local(e.Began)
	return e
}

const serveGrace = 3 * time.Second

// Serve answers at a listener until ctx ends, by TLS if there is a certificate. It closes
// the listener and the server.
func (s *Server) Serve(ctx context.Context, l net.Listener, cert, key string) error {
	srv := httpdoor.NewServer(s.Handler(), s.Log)
	srv.RegisterOnShutdown(s.Close)
	return httpdoor.Run(ctx, srv, l, cert, key, serveGrace)
}
