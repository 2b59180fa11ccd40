package web

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
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
	v := page.Compare{Frame: s.frame(r, "Compare two runs"), Comparison: run.Compare(sides[0].Result, sides[1].Result)}
	for i, side := range []*run.Entry{&v.A, &v.B} {
		e, err := s.History.One(r.Context(), sides[i].Result.TraceID)
		if err != nil {
			return missing(err)
		}
		*side = s.entry(e)
	}
	return s.html(w, r, s.pages.Compare(v))
}

const (
	usualDays = 30
	// maxBoards is of how many runs, the newest, tokens and time are added up by stage.
	maxBoards = 200
	// maxNumbered is how many runs the numbers are made of at most.
	maxNumbered = 5000
	// maxDays is how far back numbers go that are not all.
	maxDays = 100 * 366
)

func (s *Server) numbersPage(w http.ResponseWriter, r *http.Request) error {
	days, err := strconv.Atoi(r.URL.Query().Get("days"))
	if err != nil || days < 0 {
		days = usualDays
	}
	v := page.Numbers{Frame: s.frame(r, "Numbers")}
	for _, o := range []struct {
		days int
		name string
	}{{7, "7 days"}, {usualDays, "30 days"}, {365, "a year"}, {0, "all"}} {
		v.Spans = append(v.Spans, page.Option{Value: strconv.Itoa(o.days), Name: o.name, Chosen: o.days == days})
	}
	q := run.Query{Limit: maxNumbered}
	if days > 0 {
		q.Since = s.Now().In(s.Zone).AddDate(0, 0, -min(days, maxDays))
	}
	found, total, err := s.History.Find(r.Context(), q, s.visible(r))
	if err != nil {
		return err
	}
	costs := CostsOf(found, s.Zone)
	if access.From(r.Context()).SeesAll() && s.Spent != nil {
		spent, err := s.Spent()
		if err != nil {
			return err
		}
		spent = slices.DeleteFunc(slices.Clone(spent), func(e ledger.Entry) bool { return e.Time.Before(q.Since) })
		costs = Costs(spent, s.Zone)
	}
	stages, err := s.stages(r.Context(), found)
	if err != nil {
		return err
	}
	v.Facts = totals(found, total)
	v.Figures = []page.Figure{costs, AllStages(stages), Use(found)}
	if s.Curve != nil {
		table, err := s.Curve()
		if err != nil {
			return err
		}
		if table != nil {
			v.Figures = append(v.Figures, Curve(table))
		}
	}
	return s.html(w, r, s.pages.Numbers(v))
}

// stages are where the tokens and the time of the newest runs went. One that cannot be read is left out.
func (s *Server) stages(ctx context.Context, found []run.Entry) ([][]run.Stage, error) {
	var out [][]run.Stage
	for _, e := range found[:min(len(found), maxBoards)] {
		bytes, idle, err := s.Store.Traces.Size(ctx, e.ID)
		if err != nil {
			continue
		}
		stages, ok := s.tallies.find(e.ID, bytes)
		if !ok {
			board, _, err := s.look(ctx, e.ID)
			if ctx.Err() != nil {
				return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "read the runs")
			}
			if err != nil {
				continue
			}
			if stages = board.Stages(); idle {
				s.tallies.put(e.ID, bytes, stages)
			}
		}
		out = append(out, stages)
	}
	return out, nil
}

func totals(found []run.Entry, total int) []report.Fact {
	tokens, unknown, answered := 0, 0, 0
	cost, took := 0.0, time.Duration(0)
	for _, e := range found {
		tokens += e.Tokens
		took += e.Took
		if e.CostUSD == nil {
			unknown++
		} else {
			cost += *e.CostUSD
		}
		if e.Status == run.Complete {
			answered++
		}
	}
	spent := page.Money(&cost)
	if unknown > 0 {
		spent += ", and " + term.Plural(unknown, "run") + " of unknown cost"
	}
	runs := term.Count(total)
	if len(found) < total {
		runs += fmt.Sprintf(", of which the newest %s are counted here", term.Count(len(found)))
	}
	return []report.Fact{{Label: "Runs", Value: runs}, {Label: "Complete", Value: term.Count(answered)}, {Label: "Tokens", Value: term.Count(tokens)},
		{Label: "Time at work", Value: term.Duration(took)}, {Label: "Cost", Value: spent}}
}
