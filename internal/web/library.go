package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

const (
	// maxDocument bounds a document that is handed over, in bytes: larger ones are not read.
	maxDocument = 32 << 20
	// indexing is what the indexing of a folder is called among the checks: there is one at a time.
	indexing = "library"
)

// folders is the part of the page that keeps the library.
type folders struct{ *Server }

// own lets the local user through: folders of this machine are of no concern to others.
func (s folders) own(handle func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if s.Library == nil || !access.From(r.Context()).SeesAll() {
			return noPage
		}
		return handle(w, r)
	}
}

// list shows the folders. While one is indexed it comes again by itself.
func (s folders) list(w http.ResponseWriter, r *http.Request) error {
	v := page.Library{Frame: s.frame(r, "Library")}
	now, going := s.checks.find(indexing, r.Method == http.MethodGet)
	switch {
	case going:
		v.Going = "Reading a folder"
		if now.all > 0 {
			v.Going = fmt.Sprintf("Reading a folder: %s of %s", term.Count(now.done), term.Plural(now.all, "file"))
		}
		w.Header().Set("Refresh", "1")
	case now.err != nil:
		message, hint := s.told(r.Context(), now.err)
		v.Faults = []page.Fault{{Field: "path", Message: message, Hint: hint}}
	}
	var err error
	if v.Folders, err = s.Library.Folders(r.Context()); err != nil {
		return err
	}
	for i := range v.Folders {
		v.Folders[i].Updated = s.local(v.Folders[i].Updated)
	}
	return s.html(w, r, v.Page())
}

// add begins to index a folder. It goes on when the browser leaves.
func (s folders) add(w http.ResponseWriter, r *http.Request) error {
	path := strings.TrimSpace(r.PostForm.Get("path"))
	if path == "" && r.PostForm.Get("documents") == "" {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "path", Message: "must not be blank", Hint: "type the path of a folder"}
	}
	s.checks.begin(r.Context(), indexing, func(ctx context.Context, tell func(func(*check))) error {
		return s.Library.Add(ctx, path, func(done, all int) { tell(func(c *check) { c.done, c.all = done, all }) })
	})
	return onTo(w, r, page.LibraryPath)
}

func (s folders) remove(w http.ResponseWriter, r *http.Request) error {
	if err := s.Library.Remove(r.Context(), r.PostForm.Get("path")); err != nil {
		return err
	}
	return onTo(w, r, page.LibraryPath+"?notice=removed")
}

// upload keeps one document, the body of the request, which a script sends.
func (s folders) upload(w http.ResponseWriter, r *http.Request) error {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return marchwarden.Wrap(err, marchwarden.CodeInvalid, "the document has more than %d bytes, which is the limit of this server", large.Limit)
		}
		return marchwarden.Wrap(err, marchwarden.CodeInvalid, "the document cannot be read")
	}
	if err := s.Library.Keep(r.URL.Query().Get("name"), data); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// watchEvery is how often a question is asked that is watched from the page.
const watchEvery = 7 * 24 * time.Hour

// owns tells which runs the caller may see: their own, and the answers to questions that they watch.
func (s *Server) owns(ctx context.Context) func(marchwarden.TraceID) bool {
	var watched map[marchwarden.TraceID]bool
	return func(id marchwarden.TraceID) bool {
		if s.Runs.Owns(ctx, id) {
			return true
		}
		if watched == nil {
			watched = s.Watched.Answers(access.From(ctx).ID)
		}
		return watched[id]
	}
}

// questions are those that the caller watches; the local user sees all. Places on this machine
// are not told to others.
func (s *Server) questions(ctx context.Context) ([]watch.Question, error) {
	who := access.From(ctx)
	owner := who.ID
	if who.SeesAll() {
		owner = ""
	}
	all, err := s.Watched.List(owner)
	if err != nil {
		s.Log.Warn("a watched question cannot be read", "error", err)
	}
	for i := range all {
		q := &all[i]
		q.Due = s.local(q.Due)
		for j := range q.Reports {
			r := &q.Reports[j]
			if r.At = s.local(r.At); !who.SeesAll() {
				r.Failed, r.Notice = places.ReplaceAllString(r.Failed, "${1}…"), ""
			}
		}
	}
	if len(all) > 0 {
		err = nil // one that cannot be read costs no other
	}
	return all, err
}

func (s *Server) watchPage(w http.ResponseWriter, r *http.Request) error {
	all, err := s.questions(r.Context())
	if err != nil {
		return err
	}
	return s.html(w, r, page.Watch{Frame: s.frame(r, "Watched questions"), Questions: all, CanRemove: may(r.Context(), access.ScopeResearch)}.Page())
}

// addWatch watches the question of a run, in the name of the caller.
func (s *Server) addWatch(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) error {
	past, err := s.Store.Load(id)
	if err != nil {
		return err
	}
	_, res, err := s.Store.Result(r.Context(), past)
	if err != nil {
		return err
	}
	q, err := watch.Of(past, res)
	if err != nil {
		return err
	}
	q.Owner, q.Every, q.Added, q.Due = access.From(r.Context()).ID, watchEvery, s.Now().UTC(), s.Now().UTC().Add(watchEvery)
	if err := s.Watched.Add(q); err != nil {
		return err
	}
	return onTo(w, r, page.WatchPath+"?notice=watched")
}

func (s *Server) unwatch(w http.ResponseWriter, r *http.Request) error {
	all, err := s.questions(r.Context())
	for _, q := range all {
		if q.ID.String() == r.PathValue("id") {
			err = s.Watched.Remove(q.ID)
			if err == nil || errors.Is(err, marchwarden.CodeNotFound) {
				return onTo(w, r, page.WatchPath+"?notice=unwatched")
			}
		}
	}
	if err == nil {
		err = noRun
	}
	return err
}
