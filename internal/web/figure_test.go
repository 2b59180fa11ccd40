package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func span(state run.State, from, to int) run.Span {
	return run.Span{State: state, From: at(from), To: at(to)}
}

func board() *run.Board {
	return &run.Board{Began: at(0), Last: at(30), Ended: true, Tokens: 300, Lanes: []run.Lane{
		{Researcher: "pi", State: run.Done, Tokens: 100, Paid: map[run.State]int{run.Planning: 60}, Spans: []run.Span{span(run.Planning, 0, 5), span(run.Writing, 20, 30)}},
		{Number: 1, Researcher: "<b>files</b>", Sent: at(5), State: run.Done, Tokens: 200, Paid: map[run.State]int{run.Reading: 200}, Spans: []run.Span{span(run.Searching, 5, 10), span(run.Reading, 10, 20)}},
	}}
}

func TestLanes(t *testing.T) {
	over := page.Lanes(board(), at(30), false).String()
	for _, want := range []string{"How the research went", "1 &lt;b&gt;files&lt;/b&gt;", "investigator", "planning", "reading"} {
		if !strings.Contains(over, want) {
			t.Errorf("it lacks %q: %s", want, over)
		}
	}
	going := board()
	going.Ended = false
	going.Lanes[0].Spans[1].To = time.Time{}
	if got := page.Lanes(going, at(40), true).String(); !strings.Contains(got, "How the research goes") {
		t.Errorf("%s", got)
	}
	if got := page.Lanes(&run.Board{}, time.Time{}, false).String(); !strings.Contains(got, "<svg") {
		t.Errorf("nothing: %s", got)
	}
}

// What is drawn of many runs is what is drawn of each together.
func TestStages(t *testing.T) {
	one := board().Stages()
	all := AllStages([][]run.Stage{one, one, nil})
	if body := all.Body.String(); !strings.Contains(body, "400") || !strings.Contains(body, "reading") || !strings.Contains(body, "other") { // 40 tokens of an unknown stage
		t.Errorf("%s", all.Body)
	}
	if one[0].Tokens != board().Stages()[0].Tokens {
		t.Error("what was given is changed")
	}
	if got := stagesTable(board().Stages()).String(); !strings.Contains(got, "200 · 67 %") {
		t.Errorf("%s", got)
	}
	if got := AllStages(nil); got.Body.Empty() || got.Title == "" || got.About == "" {
		t.Errorf("%+v", got)
	}
}

func TestCosts(t *testing.T) {
	usd := 0.5
	zone := time.FixedZone("east", 14*3600)
	spent := []ledger.Entry{{Time: noon, Model: "<i>m", CostUSD: &usd}, {Time: noon.Add(-24 * time.Hour), Model: "other", CostUSD: nil}}
	got := Costs(spent, zone).Body.String()
	for _, want := range []string{"2 November 2026", "&lt;i&gt;m", "unknown"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q: %s", want, got)
		}
	}
	runs := []run.Entry{{Began: noon, Model: "<i>m", CostUSD: &usd}, {Began: noon.Add(-24 * time.Hour), Model: "other"}}
	if CostsOf(runs, zone).Body.String() != got {
		t.Error("runs cost something else than the ledger says")
	}
}

func TestUse(t *testing.T) {
	got := Use([]run.Entry{{Tokens: 50, Budget: 100}, {Tokens: 0, Budget: 100}, {Tokens: 101, Budget: 100}, {Tokens: 7}}).Body.String()
	if strings.Count(got, "1 run · 33 %") != 3 || strings.Count(got, "0 runs") != 8 {
		t.Errorf("%s", got)
	}
}

func TestCurve(t *testing.T) {
	table, err := confidence.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	got := Curve(table)
	if !strings.Contains(got.About, fmt.Sprint(table.Answers)) || !strings.Contains(got.Body.String(), "<meter") {
		t.Errorf("%+v", got)
	}
}
