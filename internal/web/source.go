package web

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

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
	return s.html(w, r, s.pages.Panel(s.evidence(t, n, panelChars)))
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
	return s.html(w, r, s.pages.Source(v))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
