package web

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

const (
	// panelChars is how much of the stored text stands before an excerpt in the panel,
	// and as much after it: little enough for the excerpt to be near without a script.
	panelChars = 700
	// maxWhole bounds the text of a source's own page, in bytes around its excerpt.
	maxWhole = 2 << 20
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
	last, _, checked := s.App.Drifted(id)
	e := s.evidence(t, n, last, checked)
	return s.html(w, r, s.pages.Panel(e))
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

func (s *Server) evidence(t *told, n int, last drift.Report, checked bool) page.Evidence {
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
	if checked {
		e.State, e.Detail = stateIn(last, n)
		e.CheckedAt = s.local(last.CheckedAt)
	}
	if win, ok := t.Excerpt(n-1, panelChars); ok {
		e.Text = []page.Piece{{Text: win.Before}, {Text: win.Excerpt, Number: n, Mark: true}, {Text: win.After}}
		e.CutBefore, e.CutAfter = win.Earlier > 0, win.Later > 0
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
	last, _, checked := s.App.Drifted(id)
	v := page.Source{Frame: s.frame(r, t.view.Sources[n-1].Heading), RunID: id.String(), Question: t.Question, Evidence: s.evidence(t, n, last, checked)}
	c := t.Result.Citations[n-1]
	if n <= len(t.Sources) && c.Span != nil && c.Span.In(len(t.Sources[n-1].Text)) {
		text := t.Sources[n-1].Text
		from, to := around(text, c.Span.Start)
		v.Cut = from > 0 || to < len(text)
		v.Evidence.Text = marked(text, from, to, t.Result.Citations, n)
		v.Evidence.CutBefore, v.Evidence.CutAfter = from > 0, to < len(text)
	}
	for i, o := range t.Result.Citations {
		if o.ContentHash == c.ContentHash && o.ContentHash != "" {
			v.Excerpts = append(v.Excerpts, page.SourceLine{Number: i + 1, Excerpt: o.RawExcerpt})
		}
	}
	return s.html(w, r, s.pages.Source(v))
}

// around is the part of a text that is shown around a place in it, cut between characters.
func around(text string, at int) (from, to int) {
	if len(text) <= maxWhole {
		return 0, len(text)
	}
	from = max(0, min(at-maxWhole/2, len(text)-maxWhole))
	return runeStart(text, from), runeStart(text, from+maxWhole)
}

// marked is a part of a text in pieces, with the excerpts that lie in it marked. The one
// of citation n is a single piece. Of others that overlap it or each other, the second is
// what is left of it, in pieces of which the first has its number; where nothing is left its number
// has an empty piece, so that a link to it finds the place.
func marked(text string, from, to int, cited []marchwarden.Citation, n int) []page.Piece {
	type place struct{ start, end, number int }
	var places []place
	for i, c := range cited {
		if c.ContentHash == cited[n-1].ContentHash && c.Span != nil && c.Span.In(len(text)) && c.Span.Start < to && c.Span.End > from {
			places = append(places, place{max(c.Span.Start, from), min(c.Span.End, to), i + 1})
		}
	}
	slices.SortStableFunc(places, func(a, b place) int {
		if (a.number == n) != (b.number == n) {
			return map[bool]int{true: -1, false: 1}[a.number == n]
		}
		return cmp.Or(a.start-b.start, a.end-b.end)
	})
	var taken []place // in order, without overlap
	for _, p := range places {
		var left []place
		at := p.start
		for _, t := range taken {
			if t.end <= at || t.start >= p.end {
				continue
			}
			if t.start > at {
				left = append(left, place{at, t.start, 0})
			}
			at = max(at, t.end)
		}
		if at < p.end || len(left) == 0 {
			left = append(left, place{at, max(at, p.end), 0})
		}
		left[0].number = p.number
		taken = append(taken, left...)
		slices.SortStableFunc(taken, func(a, b place) int { return cmp.Or(a.start-b.start, a.end-b.end) })
	}
	var out []page.Piece
	at := from
	for _, p := range taken {
		out = append(out, page.Piece{Text: text[at:p.start]}, page.Piece{Text: text[p.start:p.end], Number: p.number, Mark: true})
		at = p.end
	}
	return append(out, page.Piece{Text: text[at:to]})
}

func runeStart(s string, i int) int {
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
