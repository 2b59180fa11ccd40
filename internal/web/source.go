package web

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"sort"
	"strconv"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
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
