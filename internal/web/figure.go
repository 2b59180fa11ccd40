package web

// This part chooses which numbers of runs and of the ledger go into which figure, and
// under which words. How they look is package page's.

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

const stagesTitle = "Tokens and time by stage"

func stagesTable(all []run.Stage) markup.Node {
	tokens, took := 0, time.Duration(0)
	mostTokens, longest := 0, time.Duration(0)
	for _, s := range all {
		tokens, took = tokens+s.Tokens, took+s.Time
		mostTokens, longest = max(mostTokens, s.Tokens), max(longest, s.Time)
	}
	var rows [][]page.Cell
	for _, s := range all {
		if s.Tokens == 0 && s.Time == 0 {
			continue
		}
		name := cmp.Or(string(s.State), "other") // tokens of which nothing tells what they were spent on
		rows = append(rows, []page.Cell{{Text: name},
			bar(float64(s.Tokens), float64(mostTokens), term.Count(s.Tokens)+" · "+percent(float64(s.Tokens), float64(tokens))),
			bar(float64(s.Time), float64(longest), term.Duration(s.Time)+" · "+percent(float64(s.Time), float64(took)))})
	}
	return page.Bars(stagesTitle, []string{"Stage", "Tokens", "Time"}, rows)
}

// bar is a number as a cell with a bar, as long as its part of the largest.
func bar(value, largest float64, words string) page.Cell {
	return page.Cell{Text: words, Bar: true, Part: value / max(largest, 1e-9)}
}

func percent(part, whole float64) string {
	if whole <= 0 {
		return "–"
	}
	if p := 100 * part / whole; p == 0 || p >= 1 {
		return fmt.Sprintf("%.0f %%", p)
	}
	return "< 1 %"
}

// AllStages is where the tokens and the time of many runs together went.
func AllStages(runs [][]run.Stage) page.Figure {
	var sum []run.Stage
	at := map[run.State]int{}
	for _, one := range runs {
		for _, s := range one {
			i, ok := at[s.State]
			if !ok {
				i = len(sum)
				at[s.State] = i
				sum = append(sum, run.Stage{State: s.State})
			}
			sum[i].Tokens += s.Tokens
			sum[i].Time += s.Time
		}
	}
	return page.Figure{Title: stagesTitle, About: "Where the work of these runs went. Researchers work in parallel, so their times together are more than went by.", Body: stagesTable(sum)}
}

type spending struct {
	when    string
	first   time.Time
	total   float64
	by      map[string]float64 // by model
	unknown int                // runs
}

// mostDays is how many days are shown one by one; more are put together by month.
const mostDays = 62

// Costs is what was spent by day and model. Days without a run are left out.
func Costs(spent []ledger.Entry, zone *time.Location) page.Figure {
	all := spentBy(spent, zone, "2 January 2006")
	head := "Day"
	if len(all) > mostDays {
		all, head = spentBy(spent, zone, "January 2006"), "Month"
	}
	top := 0.0
	for _, s := range all {
		top = max(top, s.total)
	}
	var rows [][]page.Cell
	for _, s := range all {
		words := page.Money(&s.total)
		if s.unknown > 0 {
			words += ", and " + term.Plural(s.unknown, "run") + " of unknown cost"
		}
		rows = append(rows, []page.Cell{{Text: s.when}, bar(s.total, top, words), {Text: s.models()}})
	}
	return page.Figure{Title: "Cost by day and model", About: "Estimates by the program's own table of prices. Work without a model costs nothing.", Body: page.Bars("Cost by day and model", []string{head, "Cost", "By model"}, rows)}
}

// spentBy puts costs together by their times in a layout, the newest first.
func spentBy(spent []ledger.Entry, zone *time.Location, layout string) []*spending {
	var out []*spending
	of := map[string]*spending{}
	for _, e := range spent {
		at := e.Time.In(zone)
		when := at.Format(layout)
		s := of[when]
		if s == nil {
			s = &spending{when: when, first: at, by: map[string]float64{}}
			of[when], out = s, append(out, s)
		}
		if e.CostUSD == nil || math.IsNaN(*e.CostUSD) || math.IsInf(*e.CostUSD, 0) || *e.CostUSD < 0 {
			s.unknown++
			s.by[e.Model] += 0
			continue
		}
		s.total += *e.CostUSD
		s.by[e.Model] += *e.CostUSD
	}
	slices.SortStableFunc(out, func(a, b *spending) int { return b.first.Compare(a.first) })
	return out
}

func (s *spending) models() string {
	var names, out []string
	for name := range s.by {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(s.by[b], s.by[a]), cmp.Compare(a, b)) })
	for _, name := range names {
		cost := s.by[name]
		out = append(out, cmp.Or(name, "no model")+" "+page.Money(&cost))
	}
	return strings.Join(out, ", ")
}

// CostsOf is the same from the runs themselves, for who does not see the ledger.
func CostsOf(runs []run.Entry, zone *time.Location) page.Figure {
	var spent []ledger.Entry
	for _, r := range runs {
		spent = append(spent, ledger.Entry{Time: r.Began, Model: r.Model, CostUSD: r.CostUSD})
	}
	return Costs(spent, zone)
}

// Use is how many runs used how much of their budgets, by tenths.
func Use(runs []run.Entry) page.Figure {
	var counts [11]int // the last one is beyond the budget
	all, top := 0, 0
	for _, r := range runs {
		if r.Budget <= 0 {
			continue
		}
		tenth := int(math.Ceil(10*float64(max(0, r.Tokens))/float64(r.Budget))) - 1
		i := min(max(0, tenth), len(counts)-1)
		counts[i]++
		all, top = all+1, max(top, counts[i])
	}
	var rows [][]page.Cell
	for i, n := range counts {
		name := fmt.Sprintf("up to %d %%", 10*(i+1))
		if i == len(counts)-1 {
			name = "more"
		}
		rows = append(rows, []page.Cell{{Text: name}, bar(float64(n), float64(top), term.Plural(n, "run")+" · "+percent(float64(n), float64(all)))})
	}
	return page.Figure{Title: "Use of budgets", About: "Tokens that runs used of those that they were allowed. None uses more.", Body: page.Bars("Use of budgets", []string{"Used of the budget", "Runs"}, rows)}
}

// Curve is how a score becomes a probability.
func Curve(t *confidence.Table) page.Figure {
	var rows [][]page.Cell
	for i := range 11 {
		score := float64(i) / 10
		p := t.At(score)
		rows = append(rows, []page.Cell{{Text: fmt.Sprintf("%.1f", score)}, bar(p, 1, fmt.Sprintf("%.0f %%", 100*p))})
	}
	return page.Figure{Title: "Calibration of confidence",
		About: fmt.Sprintf("How often answers of a score were right, measured on %d answers (%s, %s). Expected calibration error: %.3f before calibration, %.3f after.",
			t.Answers, t.Data, t.Made, t.Before.ECE, t.After.ECE),
		Body: page.Bars("Calibration of confidence", []string{"Score", "Right"}, rows)}
}
