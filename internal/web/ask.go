package web

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

// recentRuns is how many runs the first page lists that go on, and how many that do not.
const recentRuns = 4

func (s *Server) askPage(w http.ResponseWriter, r *http.Request) error {
	v := page.Ask{Frame: s.frame(r, "Ask"), Mind: s.Mind}
	chosen := map[string]bool{}
	for _, m := range s.App.Members() {
		chosen[m.Name] = m.On && m.Down == ""
	}
	if from, err := marchwarden.ParseTraceID(r.URL.Query().Get("from")); err == nil && s.owns(r.Context())(from) {
		if run, err := s.Store.Load(from); err == nil { // one that cannot be read fills in nothing
			req := run.Start.Request
			v.Question, v.Context, v.Depth = req.Question, req.Context, string(req.Depth)
			if c := req.Constraints; c != nil {
				v.TokenBudget, v.MaxSources = typed(c.TokenBudget), typed(c.MaxSources)
			}
		}
	}
	return s.form(w, r, v, chosen, http.StatusOK)
}

func typed(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

func (s *Server) form(w http.ResponseWriter, r *http.Request, v page.Ask, chosen map[string]bool, status int) error {
	for _, m := range s.App.Members() {
		m.On = chosen[m.Name]
		v.Researchers = append(v.Researchers, m)
	}
	v.Examples = s.App.Examples()
	var err error
	if v.Running, v.Recent, err = s.latest(r); err != nil {
		return err
	}
	if v.Notice == "" && !may(r.Context(), access.ScopeResearch) {
		v.Notice = "Your token lets you read, and not ask."
	}
	return s.show(w, r, status, v.Page())
}

// lineEnds are all ends of lines that browsers know.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func (s *Server) submit(w http.ResponseWriter, r *http.Request) error {
	get := func(name string) string { return strings.TrimSpace(r.PostForm.Get(name)) }
	v := page.Ask{Frame: s.frame(r, "Ask"), Mind: s.Mind, Question: lineEnds.Replace(get("question")), Context: lineEnds.Replace(get("context")), Depth: get("depth"), Format: get("format"), Follow: get("follow"),
		TokenBudget: get("token_budget"), MaxSources: get("max_sources")}
	q := Question{Request: marchwarden.Request{Question: v.Question, Context: v.Context, Depth: marchwarden.Depth(v.Depth), Format: marchwarden.Format(v.Format), Follow: v.Follow}, Researchers: r.PostForm["researcher"]}
	chosen := map[string]bool{}
	q.Researchers = slices.DeleteFunc(slices.Clone(q.Researchers), func(name string) bool {
		again := chosen[name]
		chosen[name] = true
		return again
	})
	var cons marchwarden.Constraints
	cons.TokenBudget = typedIn(v.TokenBudget, "token_budget", &v.Faults)
	cons.MaxSources = typedIn(v.MaxSources, "max_sources", &v.Faults)
	if cons != (marchwarden.Constraints{}) {
		q.Request.Constraints = &cons
	}
	if len(q.Researchers) == 0 {
		v.Faults = append(v.Faults, page.Fault{Field: "researcher", Message: "choose at least one"})
	}
	if err := q.Request.Validate(); err != nil {
		v.Faults = append(v.Faults, s.fault(r.Context(), err))
	}
	if len(v.Faults) == 0 {
		id, err := s.App.Ask(r.Context(), q)
		if err == nil {
			return onTo(w, r, page.RunPath(id.String()))
		}
		if !errors.Is(err, marchwarden.CodeInvalid) && !errors.Is(err, marchwarden.CodeUnavailable) {
			return err
		}
		v.Faults = append(v.Faults, s.fault(r.Context(), err))
	}
	return s.form(w, r, v, chosen, http.StatusUnprocessableEntity)
}

// typedIn reads a number that may be left out; what cannot be read is a fault of its field.
func typedIn(s, field string, faults *[]page.Fault) *int {
	if s == "" {
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		*faults = append(*faults, page.Fault{Field: field, Message: "must be a whole number"})
		return nil
	}
	return &n
}

// fields says which field of the form fills which one of a request.
var fields = map[string]string{
	"question": "question", "context": "context", "depth": "depth", "format": "format", "constraints.token_budget": "token_budget", "constraints.max_sources": "max_sources",
	"--researchers": "researcher", "--researcher": "researcher", "--online": "researcher",
}

// fault is an error at the field that it names, or of the form as a whole.
func (s *Server) fault(ctx context.Context, err error) page.Fault {
	message, hint := s.told(ctx, err)
	if e, ok := errors.AsType[*marchwarden.Error](err); ok && fields[e.Field] != "" {
		return page.Fault{Field: fields[e.Field], Message: strings.TrimPrefix(message, e.Field+": "), Hint: hint}
	}
	return page.Fault{Message: message, Hint: hint}
}

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
