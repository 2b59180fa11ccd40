package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
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
		return err
	case over && idle:
		return s.answerPage(w, r, id, board)
	}
	question := "What was just asked" // the page stays with it until the run ends
	if unknown == nil {
		question = cmp.Or(task.State().Question, question)
	}
	v := page.Run{ID: id.String(), Question: question, Live: page.Live{ID: id.String(), Summary: "The run begins"}, CanCancel: may(r.Context(), access.ScopeResearch)}
	if !missing && !board.Began.IsZero() { // else nothing stands in its trace yet
		v.Question, v.Live = board.Question, s.live(id, board, false)
		if unknown == nil {
			v.Live.Draft = task.Draft()
		}
	}
	v.Frame = s.frame(r, v.Question)
	return s.html(w, r, v.Page())
}

// look reads a run as lanes.
func (s *Server) look(ctx context.Context, id marchwarden.TraceID) (*run.Board, bool, error) {
	board, _, over, err := run.Follow(s.Store.Traces, s.Store.Blobs, id).Read(ctx)
	return board, over, err
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

func (s *Server) live(id marchwarden.TraceID, b *run.Board, over bool) page.Live {
	end, elapsed := b.Last, time.Duration(0)
	if !over {
		end = s.Now()
	}
	if !b.Began.IsZero() {
		elapsed = max(0, end.Sub(b.Began))
	}
	v := page.Live{Board: *b, ID: id.String(), Over: over, Elapsed: elapsed}
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
	v.Summary = summary(b, under, over)
	return v
}

func summary(b *run.Board, under int, over bool) string {
	journeys := len(b.Lanes) - 1
	switch {
	case over && b.Interrupted:
		return "It was stopped"
	case over:
		return "It has ended"
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

// This part sends pictures of a run to browsers as server-sent events. Every client gets the
// latest picture, a slow one loses those between, and one that does not read is dropped.
//
//	event: picture
//	data: …            the live part of the page, line by line
//
//	event: over        the run has ended, and with it the stream; coming back brings no more
//	data: {}
//
//	event: oops        the run cannot be watched just now; the stream ends, come back later
//	data: {"code":"unavailable","message":"…","hint":"…"}
//
// A comment shows life where nothing happens for long. A stream that ends without over or oops has
// lasted long enough, or the server ends: an EventSource comes back by itself.

const (
	lookEvery  = 250 * time.Millisecond // the pause between two looks at a run
	beat       = 15 * time.Second       // the longest silence before a comment is sent
	patience   = 10 * time.Second       // how long a client may take to read an event
	streamLife = 10 * time.Minute       // after which a client is let in anew, or is not
	maxStreams = 1000                   // at once
	// stale is how old a picture may be of a run in which nothing happens: its lanes grow.
	stale = 2 * time.Second
)

// events lets a client watch a run until it is over or cannot be watched, the client leaves or does
// not read, or the server is closed.
func (s *Server) events(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) error {
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-store, no-transform")
	head.Set("X-Accel-Buffering", "no") // asks proxies not to hold it back
	if r.Method == http.MethodHead {
		return nil
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		head.Set("Retry-After", "5")
		http.Error(w, "as many watch as can; try again later", http.StatusServiceUnavailable)
		return nil
	}
	ctx, stop := context.WithTimeout(r.Context(), streamLife)
	defer stop()
	defer context.AfterFunc(s.life, stop)()
	seen := &watched{s: s, id: id, run: run.Follow(s.Store.Traces, s.Store.Blobs, id)}
	return s.delivered(stream(ctx, w, s.Now, seen.next), r)
}

// stream sends events as they come, until the last one or the end of ctx. next gives what there is
// to send, which may be nothing. The error is that of the client, which does not read or has left.
func stream(ctx context.Context, w http.ResponseWriter, now func() time.Time, next func(context.Context) (events string, last bool)) error {
	conn := http.NewResponseController(w)
	send := func(text string) error {
		if err := conn.SetWriteDeadline(now().Add(patience)); err != nil {
			return err
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return err
		}
		if err := conn.Flush(); err != nil {
			return err
		}
		return conn.SetWriteDeadline(time.Time{}) // over HTTP/2 it would end a silent stream, too
	}
	defer func() { _ = conn.SetWriteDeadline(now().Add(patience)) }() // for the end of the answer
	// The browser knows by the first line that there is a stream, and when to come back after it breaks.
	if err := send("retry: 2000\n\n"); err != nil {
		return err
	}
	spoke, looks := now(), time.NewTicker(lookEvery)
	defer looks.Stop()
	for {
		text, last := next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if text == "" && now().Sub(spoke) >= beat {
			text = ":\n\n" // a comment, which browsers drop
		}
		if text != "" {
			if err := send(text); err != nil {
				return err
			}
			spoke = now()
		}
		if last {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-looks.C:
		}
	}
}

// lineEnds are all ends of lines that browsers know.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// event is an event as it goes over the wire. No line of its data can begin a field.
func event(name, data string) string {
	return "event: " + name + "\ndata: " + strings.ReplaceAll(lineEnds.Replace(data), "\n", "\ndata: ") + "\n\n"
}

// watched is a run as one client sees it.
type watched struct {
	s     *Server
	id    marchwarden.TraceID
	run   *run.Follower
	sent  [32]byte  // the hash of the last picture that the client was sent
	drawn time.Time // when the last picture was made
	draft string    // the last one, which stays until the checked answer takes its place
}

func (w *watched) next(ctx context.Context) (events string, last bool) {
	picture, over, err := w.look(ctx)
	if err != nil {
		w.s.Log.Warn("a run cannot be watched", "trace_id", w.id.String(), "error", err)
		message, hint := w.s.told(ctx, err)
		data, _ := json.Marshal(map[string]string{"code": string(marchwarden.CodeOf(err)), "message": message, "hint": hint}) // strings are always JSON
		return event("oops", string(data)), true
	}
	if sum := sha256.Sum256([]byte(picture)); picture != "" && sum != w.sent {
		w.sent, events = sum, event("picture", picture)
	}
	if over {
		events += event("over", "{}")
	}
	return events, over
}

// look makes a picture if something has happened, or enough time has passed; "" is none. over says
// that nothing will change any more.
func (w *watched) look(ctx context.Context) (picture string, over bool, err error) {
	board, changed, over, err := w.run.Read(ctx)
	if errors.Is(err, marchwarden.CodeNotFound) {
		return "", w.gone(), nil // not begun yet
	}
	over = over && w.gone() // a run that was just resumed may not have opened its trace yet
	if err == nil && board.Began.IsZero() {
		return "", over, nil // made, and not begun yet
	}
	now, drafted := w.s.Now(), w.redraft()
	if err != nil || !changed && !drafted && !over && now.Sub(w.drawn) < stale {
		return "", over, err
	}
	w.drawn = now
	live := w.s.live(w.id, board, over)
	live.Draft = w.draft
	return live.Node().String(), over, nil
}

// redraft looks for more of a draft, which only a run of this process has.
func (w *watched) redraft() bool {
	task, err := w.s.Runs.Find(asServer(), w.id)
	if err != nil {
		return false
	}
	was := w.draft
	w.draft = cmp.Or(task.Draft(), was)
	return w.draft != was
}

// gone reports whether a run that has no trace will never have one.
func (w *watched) gone() bool {
	run, err := w.s.Runs.Find(asServer(), w.id)
	return err != nil || ended(run)
}

func asServer() context.Context { return access.With(context.Background(), access.Local()) }
