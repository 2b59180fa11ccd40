// Package web is the page of `marchwarden ui`: which address shows which view, what
// a view is filled with, and who may see and change what.
//
// It owns the routes and the way from records to views. What a page looks like is
// package page's, who comes in package httpdoor's; what is done with a run, the App does,
// which the command wires. Nothing here takes part in a research: a page can ask for
// one, watch it and stop it, and can change no answer.
package web

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

// Question is what was asked on the page.
type Question struct {
	Request     marchwarden.Request
	Researchers []string // those that may be sent; none is all that the settings allow
}

// Member is a researcher that can be asked.
type Member = page.Choice

// Format is a form in which a run can leave.
type Format = page.Format

// App does what is asked for on a page, in the name of the principal of ctx.
type App interface {
	Asker
	Examiner
}

// Asker begins runs and ends them for good.
type Asker interface {
	// Members are those who can be asked. On is whether they are unless the caller says otherwise.
	Members() []Member
	// Examples are questions that what is searched has answers to.
	Examples() []string
	// Ask begins a run that goes on without its caller, and after a restart.
	Ask(ctx context.Context, q Question) (marchwarden.TraceID, error)
	// Resume resumes a run that has ended or was cut off, with that many more tokens.
	Resume(ctx context.Context, id marchwarden.TraceID, tokens int) error
	// Remove removes a run for good, with its rihlas and what only they needed.
	Remove(ctx context.Context, id marchwarden.TraceID) error
}

// Examiner finds out about a run that has ended, and writes it in other forms.
type Examiner interface {
	// Rerun runs a run again on its record and says whether the result is the same to the
	// byte, and what it found, in a sentence.
	Rerun(ctx context.Context, id marchwarden.TraceID) (same bool, words string, err error)
	// Drift fetches the sources of a run again. Told hears of each when it is done.
	Drift(ctx context.Context, id marchwarden.TraceID, told func()) (drift.Report, error)
	// Drifted is the last such report, if there is one, and in a sentence.
	Drifted(id marchwarden.TraceID) (last drift.Report, words string, ok bool)
	// Formats are the forms in which a run can leave, and Export writes one.
	Formats() []Format
	Export(ctx context.Context, id marchwarden.TraceID, format string, w io.Writer) error
}

// Folder is a folder that is searched.
type Folder = page.Folder

// Librarian keeps the folders that are searched. Only the local user gets to it.
type Librarian interface {
	Folders(ctx context.Context) ([]Folder, error)
	// Add indexes a folder and remembers it; "" is that of the documents that were kept here.
	Add(ctx context.Context, path string, told func(done, all int)) error
	// Remove searches a folder no longer. The folder itself stays.
	Remove(ctx context.Context, path string) error
	// Keep keeps a document in a folder of the home.
	Keep(name string, data []byte) error
}

// Config is what the server works with. All but Library, Draw, Mind and Log is needed.
type Config struct {
	Gate    httpdoor.SignInConfig // what it shows is filled in here
	Runs    *runs.Desk            // who began what, and what goes on
	Store   run.Store
	History *run.History
	Watched watch.Book // questions that are asked again; the zero one has none
	App     App
	Library Librarian // nil: the page has none
	// Draw draws the page of a PDF that a passage is on, with the passage marked, as a PNG. It has its
	// own bounds of time, memory and pixels. Nil draws none.
	Draw func(ctx context.Context, pdf []byte, at Passage) ([]byte, error)
	Mind string // who writes, such as a model's name
	Now  func() time.Time
	Zone *time.Location // of the times that people see; nil is UTC
	Log  *slog.Logger
}

// Server is the page. Close it when done.
type Server struct {
	Config
	gate   *httpdoor.SignIn
	end    context.CancelFunc // ends all checks
	checks checks

	drawing  chan struct{}         // guards pictures: it holds the one that is drawn
	pictures map[pictureKey][]byte // of pages; empty ones could not be drawn
}

// New makes the server. It listens to nothing.
func New(cfg Config) (*Server, error) {
	cfg.Log, cfg.Zone = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), cmp.Or(cfg.Zone, time.UTC)
	s := &Server{Config: cfg, pictures: map[pictureKey][]byte{}, drawing: make(chan struct{}, 1),
		checks: checks{of: map[string]*check{}, turn: make(chan struct{}, atOnce)}}
	cfg.Gate.Public, cfg.Gate.Page, cfg.Gate.MaxBody = []string{page.StaticPath}, s.gatePage, maxDocument
	s.checks.life, s.end = context.WithCancel(context.Background())
	var err error
	if s.gate, err = httpdoor.NewSignIn(cfg.Gate); err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends all checks. Runs are not its own.
func (s *Server) Close() {
	s.checks.mu.Lock() // none begins after the end
	s.end()
	s.checks.mu.Unlock()
	s.checks.all.Wait()
}

// Handler is all of the page behind its gate.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+page.StaticPath, page.Static)
	library := folders{s}
	routes := []struct {
		pattern string
		scope   string // that the caller must have
		handle  func(http.ResponseWriter, *http.Request) error
	}{
		{"GET /{$}", access.ScopeRead, s.askPage},
		{"POST " + page.SubmitPath, access.ScopeResearch, s.submit},
		{"GET " + page.HistoryPath, access.ScopeRead, s.historyPage},
		{"GET " + page.WatchPath, access.ScopeRead, s.watchPage},
		{"POST " + page.WatchPath + "/{id}/remove", access.ScopeResearch, s.unwatch},
		{"GET " + page.LibraryPath, access.ScopeRead, library.own(library.list)},
		{"POST " + page.LibraryPath, access.ScopeResearch, library.own(library.add)},
		{"POST " + page.DropPath, access.ScopeResearch, library.own(library.remove)},
		{"POST " + page.UploadPath, access.ScopeResearch, library.own(library.upload)},
		{"GET /runs/{id}", access.ScopeRead, s.of(s.runPage)},
		{"GET /runs/{id}/" + page.Peek, access.ScopeRead, s.of(s.panel)},
		{"GET /runs/{id}/source/{n}", access.ScopeRead, s.of(s.sourcePage)},
		{"GET /runs/{id}/source/{n}/page", access.ScopeRead, s.of(s.picture)},
		{"GET /runs/{id}/export/{format}", access.ScopeRead, s.of(s.export)},
		{"GET /runs/{id}/" + page.Check, access.ScopeRead, s.of(s.driftPage)},
		{"POST /runs/{id}/" + page.Check, access.ScopeResearch, s.of(s.drift)},
		{"POST /runs/{id}/" + page.Cancel, access.ScopeResearch, s.of(s.cancel)},
		{"POST /runs/{id}/" + page.Resume, access.ScopeResearch, s.of(s.resume)},
		{"POST /runs/{id}/" + page.Follow, access.ScopeResearch, s.of(s.addWatch)},
		{"POST /runs/{id}/" + page.Rerun, access.ScopeResearch, s.of(s.rerun)},
		{"GET /runs/{id}/" + page.Delete, access.ScopeResearch, s.of(s.confirmDelete)},
		{"POST /runs/{id}/" + page.Delete, access.ScopeResearch, s.of(s.delete)},
		{"GET /", access.ScopeRead, func(http.ResponseWriter, *http.Request) error { return noPage }},
	}
	for _, route := range routes {
		mux.HandleFunc(route.pattern, s.handler(route.scope, route.handle))
	}
	return s.gate.Wrap(mux)
}

func (s *Server) handler(scope string, handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var err error = &marchwarden.Error{Code: marchwarden.CodeDenied, Message: "your token is not good for that", Hint: "ask for one with the scope " + scope}
		if may(r.Context(), scope) {
			err = handle(w, r)
		}
		if err != nil {
			s.problem(w, r, err)
		}
	}
}

// Link is an address by which the local user gets in, once.
func (s *Server) Link(base string) string { return s.gate.Link(base) }

func (s *Server) gatePage(v httpdoor.SignInView) string {
	f := page.Frame{Title: "Sign in", CSRF: v.CSRF, User: v.Who, Bare: true}
	if v.Form || v.Status == http.StatusUnauthorized {
		return page.SignIn{Frame: f, Team: v.Form, Problem: v.Problem, Hint: v.Hint, Next: v.Next}.Page().String()
	}
	f.Title = "Not let in"
	return page.Problem{Frame: f, Status: v.Status, Headline: f.Title, Message: v.Problem, Hint: v.Hint, Back: v.Next}.Page().String()
}

func may(ctx context.Context, scope string) bool { return access.From(ctx).May(scope) }

// of finds the run that an address names for a handler. A run that the caller may not see is not
// there, in the same words as one that does not exist; where it was looked for is not told.
func (s *Server) of(handle func(http.ResponseWriter, *http.Request, marchwarden.TraceID) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := marchwarden.ParseTraceID(r.PathValue("id"))
		if err != nil || !s.owns(r.Context())(id) || !s.there(r.Context(), id) {
			return noRun
		}
		err = handle(w, r, id)
		if named := errors.Is(err, noSource) || errors.Is(err, noFormat) || errors.Is(err, noPicture); !named && errors.Is(err, marchwarden.CodeNotFound) {
			return noRun
		}
		return err
	}
}

func (s *Server) there(ctx context.Context, id marchwarden.TraceID) bool {
	if _, _, err := s.Store.Traces.Size(ctx, id); !errors.Is(err, marchwarden.CodeNotFound) {
		return true
	}
	_, err := s.Runs.Find(ctx, id)
	return err == nil
}

var (
	noPage   = marchwarden.Errorf(marchwarden.CodeNotFound, "there is no such page")
	noRun    = &marchwarden.Error{Code: marchwarden.CodeNotFound, Message: "there is no such run", Hint: "it may have been deleted; the history lists those there are"}
	noSource = marchwarden.Errorf(marchwarden.CodeNotFound, "the answer has no such source")
	noFormat = marchwarden.Errorf(marchwarden.CodeNotFound, "there is no such format")
)

// frame is what every page has. Notice is what was just done: one of a few words that
// the address names, never a text from it.
func (s *Server) frame(r *http.Request, title string) page.Frame {
	f := page.Frame{Title: title, CSRF: s.gate.Token(r), Notice: notices[r.URL.Query().Get("notice")]}
	p := access.From(r.Context())
	if f.Library = s.Library != nil && p.SeesAll(); !p.SeesAll() {
		f.User = p.ID
	}
	return f
}

// problem shows what went wrong. What people cannot help is in the log.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, err error) {
	status, headline := statusOf(err)
	if r.Context().Err() != nil { // the caller is gone, or may no longer be told
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if status >= http.StatusInternalServerError {
		s.Log.Error("a page failed", "path", r.URL.Path, "error", err)
	}
	message, hint := s.told(r.Context(), err)
	p := page.Problem{Frame: s.frame(r, headline), Status: status, Headline: headline, Message: message, Hint: hint, Code: string(marchwarden.CodeOf(err))}
	_ = s.show(w, r, status, p.Page()) // it never fails
}

// inTheLog is all that is told of an error that is none of the caller's business.
const inTheLog = "the log of the server says more"

// told is an error for who asks. The local user is told its causes. To others these are
// not told, nor are places on this machine: that is for the log.
func (s *Server) told(ctx context.Context, err error) (message, hint string) {
	e, ok := errors.AsType[*marchwarden.Error](err)
	if !ok {
		return inTheLog, ""
	}
	if access.From(ctx).SeesAll() {
		return e.Error(), marchwarden.HintOf(err)
	}
	if marchwarden.CodeOf(err) == marchwarden.CodeInternal {
		return inTheLog, ""
	}
	if message = e.Message; e.Field != "" {
		message = e.Field + ": " + message
	}
	return places.ReplaceAllString(message, "${1}…"), places.ReplaceAllString(e.Hint, "${1}…")
}

// places are paths of files, which the recorded causes of failures may have.
var places = regexp.MustCompile(`(^|[\s"'(=:])(?:(?:/[^\s/"':()]+){2,}/?|[A-Za-z]:\\[^\s"':()]+)`)

func statusOf(err error) (int, string) {
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return http.StatusRequestEntityTooLarge, "That is too much"
	}
	switch marchwarden.CodeOf(err) {
	case marchwarden.CodeInvalid:
		return http.StatusBadRequest, "That did not work"
	case marchwarden.CodeNotFound:
		return http.StatusNotFound, "Not found"
	case marchwarden.CodeDenied:
		return http.StatusForbidden, "Not allowed"
	case marchwarden.CodeUnavailable, marchwarden.CodeTimeout, marchwarden.CodeRateLimited, marchwarden.CodeCanceled:
		return http.StatusServiceUnavailable, "Not now"
	case marchwarden.CodeUnsupported:
		return http.StatusConflict, "Not with this run"
	case marchwarden.CodeCorrupt:
		return http.StatusInternalServerError, "The record is damaged"
	}
	return http.StatusInternalServerError, "Something went wrong"
}

func (s *Server) html(w http.ResponseWriter, r *http.Request, n markup.Node) error {
	return s.show(w, r, http.StatusOK, n)
}

// show sends a page. That it does not get to its reader is no error: there is none to tell.
func (s *Server) show(w http.ResponseWriter, r *http.Request, status int, n markup.Node) error {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, err := io.WriteString(w, n.String())
	return s.delivered(err, r)
}

// delivered notes that an answer did not get to its reader: the status is out already.
func (s *Server) delivered(err error, r *http.Request) error {
	if err != nil {
		s.Log.Debug("a page was not delivered", "path", r.URL.Path, "error", err)
	}
	return nil
}

func (s *Server) local(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.In(s.Zone)
}
