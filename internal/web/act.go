package web

import (
	"context"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

func (s *Server) resume(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) error {
	tokens := 0
	if text := strings.TrimSpace(r.PostForm.Get("token_budget")); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < marchwarden.MinTokenBudget {
			return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "token_budget", Message: fmt.Sprintf("must be a whole number of at least %d", marchwarden.MinTokenBudget)}
		}
		tokens = n
	}
	if err := s.App.Resume(r.Context(), id, tokens); err != nil {
		return err
	}
	return s.back(w, r, id, "resumed")
}

// rerun runs a run again on its record. Nothing is searched, fetched or asked.
func (s *Server) rerun(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) error {
	same, words, err := s.App.Rerun(r.Context(), id)
	if err != nil {
		return err
	}
	if same {
		return s.back(w, r, id, "same")
	}
	s.Log.Warn("a rerun gave another result", "trace_id", id.String(), "difference", words)
	return s.back(w, r, id, "different")
}

// checks are the checks of sources under way, and folders that are indexed, and those that failed until a reader was told.
type checks struct {
	life context.Context // of the server
	all  sync.WaitGroup
	turn chan struct{} // holds as many as go on at once

	mu sync.Mutex        // guards what follows
	of map[string]*check // by what is checked: a run, or the library
}

// atOnce is how many runs have their sources fetched at the same time.
const atOnce = 2

type check struct {
	stop  context.CancelFunc
	ended chan struct{}
	done  int   // sources, or documents, that were looked at
	all   int   // of how many; 0 is not known
	err   error // why it failed
}

// begin begins the check of a run, unless one goes on. It is not the request's: it lasts
// until it has ended, is stopped or the server is closed. One that went well is
// forgotten: its report is kept elsewhere.
func (c *checks) begin(ctx context.Context, id string, work func(ctx context.Context, tell func(func(*check))) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was := c.of[id]; c.life.Err() != nil || was != nil && was.err == nil {
		return
	}
	now := &check{ended: make(chan struct{})}
	ctx, now.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.of[id] = now
	tell := func(change func(*check)) {
		c.mu.Lock()
		defer c.mu.Unlock()
		change(now)
	}
	c.all.Go(func() {
		defer close(now.ended)
		defer now.stop()
		defer context.AfterFunc(c.life, now.stop)()
		err := c.inTurn(ctx, func() error { return work(ctx, tell) })
		c.mu.Lock()
		defer c.mu.Unlock()
		if now.err = err; err == nil {
			delete(c.of, id)
		}
	})
}

// inTurn works when it is its turn. A panic is an error, so that the server does not end with it.
func (c *checks) inTurn(ctx context.Context, work func() error) (err error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turn }()
	defer panics.Caught(&err, "the check of sources")
	return work()
}

// find says how the check of a run stands. A failure is told once.
func (c *checks) find(id string, tell bool) (now check, going bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.of[id]
	if found == nil {
		return check{}, false
	}
	if found.err != nil && tell {
		delete(c.of, id)
	}
	return *found, found.err == nil
}

// stop ends the check of a run and waits until it has ended, or ctx has.
func (c *checks) stop(ctx context.Context, id string) {
	if now, going := c.find(id, true); going {
		now.stop()
		select {
		case <-now.ended:
		case <-ctx.Done():
		}
		c.find(id, true)
	}
}

// drift begins to fetch the sources of a run again, and leads to the page of that.
func (s *Server) drift(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) error {
	if _, err := s.tell(r.Context(), id); err != nil { // without a result there are no sources
		return err
	}
	s.checks.begin(r.Context(), id.String(), func(ctx context.Context, tell func(func(*check))) error {
		_, err := s.App.Drift(ctx, id, func() { tell(func(c *check) { c.done++ }) })
		if err != nil && marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
			s.Log.Warn("a check of sources failed", "trace_id", id.String(), "error", err)
		}
		return err
	})
	return onTo(w, r, page.ActPath(id.String(), page.Check))
}

// driftPage is what became of the sources. While a check goes on it comes again by itself.
func (s *Server) driftPage(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) error {
	t, err := s.tell(r.Context(), id)
	if err != nil {
		return err
	}
	v := page.Drift{Frame: s.frame(r, "Sources of: "+t.view.Title), ID: id.String(), Question: t.Question, CanCheck: may(r.Context(), access.ScopeResearch)}
	now, going := s.checks.find(id.String(), r.Method == http.MethodGet)
	if last, words, ok := s.App.Drifted(id); ok { // after that: one that ends in between is there
		v.Report, v.CheckedAt, v.Summary = last, s.local(last.CheckedAt), words
	}
	switch {
	case going:
		v.CanCheck, v.Summary = false, fmt.Sprintf("Checking now: %s done so far. This page comes again by itself.", term.Plural(now.done, "source"))
		w.Header().Set("Refresh", "2")
	case now.err != nil:
		message, _ := s.told(r.Context(), now.err)
		v.Notice = "The check failed: " + message + "."
	}
	return s.html(w, r, v.Page())
}

// export sends a run in another form. It is made as a whole first, so that what fails
// is a page that says so and not half a file.
func (s *Server) export(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) error {
	formats := s.App.Formats()
	i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == r.PathValue("format") })
	if i < 0 {
		return noFormat
	}
	file, err := os.CreateTemp("", "marchwarden-export-")
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make room for the file")
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := s.App.Export(r.Context(), id, formats[i].Name, file); err != nil {
		return err
	}
	w.Header().Set("Content-Type", formats[i].Type)
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": "marchwarden-" + id.String()[:8] + formats[i].Suffix}))
	http.ServeContent(w, r, "", time.Time{}, file)
	return nil
}

func (s *Server) confirmDelete(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) error {
	v := page.Deletion{Frame: s.frame(r, "Delete an answer"), ID: id.String()}
	if run, err := s.Store.Load(id); err == nil { // a damaged one can be deleted, too
		v.Question = run.Start.Request.Question
		v.Facts = []report.Fact{{Label: "Asked", Value: s.local(run.Start.StartedAt).Format("2 Jan 2006, 15:04 MST")}, {Label: "Researchers asked", Value: term.Count(len(run.Rihlas))}}
	}
	return s.html(w, r, v.Page())
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) error {
	if r.PostForm.Get("confirmed") != "yes" {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "confirmed", Message: "must be yes"}
	}
	s.checks.stop(r.Context(), id.String()) // or it would keep a report on what is gone
	whole := context.WithoutCancel(r.Context())
	if err := s.App.Remove(whole, id); err != nil { // who leaves does not leave half of it
		return err
	}
	select {
	case s.drawing <- struct{}{}:
		maps.DeleteFunc(s.pictures, func(kept pictureKey, _ []byte) bool { return kept.id == id })
		<-s.drawing
	case <-r.Context().Done(): // a run that is gone has no page to ask for its pictures
	}
	return onTo(w, r, page.HistoryPath+"?notice=deleted")
}
