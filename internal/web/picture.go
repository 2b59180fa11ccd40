package web

import (
	"context"
	"net/http"
	"sort"
	"strconv"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
)

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
	w.Header().Set("Content-Length", strconv.Itoa(len(drawn)))
	_, err = w.Write(drawn)
	return s.delivered(err, r)
}

// drawn is a picture that was kept, or a new one; nothing if it cannot be drawn.
func (s *Server) drawn(ctx context.Context, key pictureKey, pdf blob.Ref, at Passage) ([]byte, error) {
	select {
	case s.drawing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.drawing }()
	s.mu.Lock()
	kept, ok := s.pictures[key]
	s.mu.Unlock()
	if ok {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pictures) >= maxPictures {
		clear(s.pictures)
	}
	s.pictures[key] = drawn
	return drawn, nil
}
