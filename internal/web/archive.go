package web

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

const pageRuns = 25

func (s *Server) visible(r *http.Request) func(marchwarden.TraceID) bool {
	return s.owns(r.Context())
}

func (s *Server) latest(r *http.Request) (going, ended []run.Entry, err error) {
	found, _, err := s.History.Find(r.Context(), run.Query{}, s.visible(r))
	if err != nil {
		return nil, nil, err
	}
	for _, e := range found {
		list := &ended
		if e.Status == run.Running {
			list = &going
		}
		if len(*list) < recentRuns {
			*list = append(*list, s.entry(e))
		}
	}
	return going, ended, nil
}

func (s *Server) historyPage(w http.ResponseWriter, r *http.Request) error {
	v := page.History{Frame: s.frame(r, "History")}
	form := r.URL.Query()
	q := s.query(form, &v)
	found, total, err := s.History.Find(r.Context(), q, s.visible(r))
	if err == nil && len(found) == 0 && total > 0 { // beyond the end, as after some were deleted
		q.Offset = (total - 1) / pageRuns * pageRuns
		found, total, err = s.History.Find(r.Context(), q, s.visible(r))
	}
	if errors.Is(err, marchwarden.CodeInvalid) && v.Words != "" { // all else was checked above
		message, hint := s.told(r.Context(), err)
		v.Faults, err = append(v.Faults, page.Fault{Field: "q", Message: strings.TrimPrefix(message, "words: "), Hint: hint}), nil
	}
	if err != nil {
		return err
	}
	for _, e := range found {
		v.Entries = append(v.Entries, s.entry(e))
	}
	v.Total = total
	if len(found) > 0 {
		v.From, v.To = q.Offset+1, q.Offset+len(found)
	}
	v.Newer, v.Older = turns(form, q.Offset, total)
	return s.html(w, r, s.pages.History(v))
}

// query is what a form asks for. What was typed goes into the view, with what is wrong about it.
func (s *Server) query(form url.Values, v *page.History) run.Query {
	get := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	v.Words, v.MinCost, v.MaxCost, v.MinConfidence, v.MaxConfidence = get("q"), get("min_cost"), get("max_cost"), get("min_confidence"), get("max_confidence")
	v.Since, v.Until, v.With = get("since"), get("until"), get("with")
	q := run.Query{Words: v.Words, Researcher: form["researcher"], Limit: pageRuns}
	for _, status := range run.Statuses() {
		chosen := slices.Contains(form["status"], string(status))
		if chosen {
			q.Status = append(q.Status, status)
		}
		v.Statuses = append(v.Statuses, page.Option{Value: string(status), Chosen: chosen})
	}
	for _, m := range s.App.Members() {
		v.Researchers = append(v.Researchers, page.Option{Value: m.Name, Chosen: slices.Contains(q.Researcher, m.Name)})
	}
	decimal := func(s, field string) *float64 {
		return typedIn(s, field, "a number of 0 or more", &v.Faults, func(s string) (float64, error) {
			f, err := strconv.ParseFloat(s, 64)
			if math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
				err = strconv.ErrRange
			}
			return f, err
		})
	}
	date := func(text, field string) *time.Time {
		return typedIn(text, field, "a date such as 2026-11-01", &v.Faults, func(text string) (time.Time, error) {
			return time.ParseInLocation(time.DateOnly, text, s.Zone)
		})
	}
	q.MinCost, q.MaxCost = decimal(v.MinCost, "min_cost"), decimal(v.MaxCost, "max_cost")
	q.MinConfidence, q.MaxConfidence = decimal(v.MinConfidence, "min_confidence"), decimal(v.MaxConfidence, "max_confidence")
	if since := date(v.Since, "since"); since != nil {
		q.Since = *since
	}
	if until := date(v.Until, "until"); until != nil {
		q.Until = until.AddDate(0, 0, 1) // the day itself is meant, too
	}
	if n, err := strconv.Atoi(get("offset")); err == nil && n > 0 {
		q.Offset = n
	}
	return q
}

func turns(form url.Values, offset, total int) (newer, older url.Values) {
	at := func(n int) url.Values {
		q := url.Values{}
		for name, values := range form {
			if name != "offset" && name != "notice" {
				q[name] = values
			}
		}
		q.Set("offset", strconv.Itoa(n))
		return q
	}
	if offset > 0 {
		newer = at(max(0, offset-pageRuns))
	}
	if offset+pageRuns < total {
		older = at(offset + pageRuns)
	}
	return newer, older
}

func (s *Server) comparePage(w http.ResponseWriter, r *http.Request) error {
	names := r.URL.Query()["run"]
	if len(names) != 2 {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "run", Message: "must be two runs", Hint: "choose two in the history"}
	}
	var sides [2]*told
	for i, name := range names {
		id, err := marchwarden.ParseTraceID(name)
		if err != nil || !s.owns(r.Context())(id) {
			return noRun
		}
		if sides[i], err = s.tell(r.Context(), id, nil); err != nil {
			return missing(err)
		}
	}
	v := page.Compare{Frame: s.frame(r, "Compare two answers"), Comparison: run.Compare(sides[0].Result, sides[1].Result)}
	for i, side := range []*run.Entry{&v.A, &v.B} {
		e, err := s.History.One(r.Context(), sides[i].Result.TraceID)
		if err != nil {
			return missing(err)
		}
		*side = s.entry(e)
	}
	return s.html(w, r, s.pages.Compare(v))
}
