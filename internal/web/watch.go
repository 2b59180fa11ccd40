package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

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
