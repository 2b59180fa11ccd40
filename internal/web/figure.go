package web

// This part chooses what is drawn of runs: which numbers of a board, of past runs
// and of the ledger go into which chart, and under which words. How a chart looks is
// package chart's; what stands around it is package page's.

import (
	"fmt"
	"html/template"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/history"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/chart"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

// Lanes draws a run on one axis of time. Once it is over, what its end waited for is
// marked: while it goes on that is not known.
func Lanes(b *run.Board, now time.Time, going bool) template.HTML {
	critical := map[int][]run.Span{}
	if !going {
		for _, p := range b.Critical() {
			critical[p.Lane] = append(critical[p.Lane], p.Span)
		}
	}
	t := chart.Timeline{Title: "How the research goes", Began: b.Began, Now: now, Going: going}
	if !going {
		t.Title = "How the research went"
	}
	for _, l := range b.Lanes {
		lane := chart.Lane{Label: l.Researcher, State: l.State}
		if l.Number == 0 && len(b.Lanes) > 1 {
			lane.Label = "investigator"
		}
		if l.Number > 0 {
			lane.Label = fmt.Sprintf("%d %s", l.Number, l.Researcher)
		}
		for _, s := range l.Spans {
			lane.Segments = append(lane.Segments, segments(s, critical[l.Number])...)
		}
		t.Lanes = append(t.Lanes, lane)
	}
	return chart.Lanes(t).Figure()
}

// segments is a span as parts of a lane, cut where what is critical of it begins and
// ends.
func segments(s run.Span, critical []run.Span) []chart.Segment {
	for _, c := range critical {
		from, to := later(s.From, c.From), earlier(s.To, c.To)
		if s.To.IsZero() || !to.After(from) {
			continue
		}
		var out []chart.Segment
		if from.After(s.From) {
			out = append(out, segments(run.Span{State: s.State, From: s.From, To: from}, critical)...)
		}
		out = append(out, chart.Segment{State: s.State, From: from, To: to, Critical: true})
		if s.To.After(to) {
			out = append(out, segments(run.Span{State: s.State, From: to, To: s.To}, critical)...)
		}
		return out
	}
	return []chart.Segment{{State: s.State, From: s.From, To: s.To}}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Stages draws where the tokens and the time of a run went.
func Stages(b *run.Board) template.HTML {
	return chart.Share("Tokens and time by stage", stages(b.Stages())).Figure()
}

func stages(all []run.Stage) []chart.Stage {
	var out []chart.Stage
	for _, s := range all {
		if s.Tokens == 0 && s.Time == 0 {
			continue
		}
		name := string(s.State)
		if name == "" {
			name = "other" // tokens of which nothing tells what they were spent on
		}
		out = append(out, chart.Stage{Name: name, Tokens: s.Tokens, Time: s.Time, Critical: s.Critical})
	}
	return out
}

// AllStages draws the same for many runs together.
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
			sum[i].Critical += s.Critical
		}
	}
	return page.Figure{Title: "Tokens and time by stage", About: "Where the work of these runs went. Hatched is the time that their ends waited for; the rest was done besides.",
		Body: chart.Share("Tokens and time by stage", stages(sum)).Figure()}
}

// Costs draws what was spent by day and model.
func Costs(spent []ledger.Entry, zone *time.Location) page.Figure {
	var all []chart.Cost
	for _, e := range spent {
		all = append(all, chart.Cost{Day: e.Time.In(zone), Model: e.Model, USD: e.CostUSD})
	}
	return page.Figure{Title: "Cost by day and model", About: "Estimates by the program's own table of prices. Work without a model costs nothing.", Body: chart.Bars("Cost by day and model", all).Figure()}
}

// CostsOf draws the same from the runs themselves, for who does not see the ledger.
func CostsOf(runs []history.Entry, zone *time.Location) page.Figure {
	var spent []ledger.Entry
	for _, r := range runs {
		spent = append(spent, ledger.Entry{Time: r.Began, Model: r.Model, CostUSD: r.CostUSD})
	}
	return Costs(spent, zone)
}

// Use draws how much of their budgets runs used.
func Use(runs []history.Entry) page.Figure {
	var all []chart.Budget
	for _, r := range runs {
		if r.Budget > 0 {
			all = append(all, chart.Budget{Label: r.Question, Used: r.Tokens, Allowed: r.Budget})
		}
	}
	return page.Figure{Title: "Use of budgets", About: "Tokens that runs used of those that they were allowed. None uses more.", Body: chart.Use("Use of budgets", all).Figure()}
}

// points is how finely a curve is drawn.
const points = 50

// Curve draws how a score becomes a probability.
func Curve(t *confidence.Table) page.Figure {
	c := chart.Calibration{Title: "Confidence as it was measured"}
	for i := range points + 1 {
		score := float64(i) / points
		c.Curve = append(c.Curve, chart.Point{Score: score, Probability: t.At(score)})
	}
	return page.Figure{Title: "Calibration of confidence",
		About: fmt.Sprintf("How often answers of a score were right, measured on %d answers (%s, %s). On the diagonal the score itself would be the probability. Expected calibration error: %.3f before calibration, %.3f after.",
			t.Answers, t.Data, t.Made, t.Before.ECE, t.After.ECE),
		Body: chart.Reliability(c).Figure()}
}
