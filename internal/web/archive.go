package web

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

const pageRuns = 25

func (s *Server) latest(r *http.Request) (going, ended []run.Entry, err error) {
	found, _, err := s.History.Find(r.Context(), run.Query{}, s.owns(r.Context()))
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
	found, total, err := s.History.Find(r.Context(), q, s.owns(r.Context()))
	if err == nil && len(found) == 0 && total > 0 { // beyond the end, as after some were deleted
		q.Offset = (total - 1) / pageRuns * pageRuns
		found, total, err = s.History.Find(r.Context(), q, s.owns(r.Context()))
	}
	if errors.Is(err, marchwarden.CodeInvalid) && v.Words != "" { // there is nothing else to be wrong about
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
	return s.html(w, r, v.Page())
}

// query is what a form asks for. What was typed goes into the view.
func (s *Server) query(form url.Values, v *page.History) run.Query {
	get := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	v.Words = get("q")
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
	if n, err := strconv.Atoi(get("offset")); err == nil && n > 0 {
		q.Offset = n
	}
	return q
}

func turns(form url.Values, offset, total int) (newer, older url.Values) {
	at := func(n int) url.Values {
		q := maps.Clone(form)
		q.Del("notice")
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
