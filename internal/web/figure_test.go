package web

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/history"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func span(state run.State, from, to int) run.Span {
	return run.Span{State: state, From: at(from), To: at(to)}
}

// The segments of a span are the span, in order and without overlap, and what is critical
// of them is exactly what is critical of it.
func TestSegmentsCoverTheSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(0, 40).Draw(t, "from")
		whole := span(run.Reading, from, rapid.IntRange(from+1, 60).Draw(t, "to"))
		var critical []run.Span
		for range rapid.IntRange(0, 6).Draw(t, "parts") { // in whatever order, overlapping or not
			a := rapid.IntRange(0, 60).Draw(t, "a")
			critical = append(critical, span(run.Reading, a, rapid.IntRange(a, 60).Draw(t, "b")))
		}
		got := segments(whole, critical)
		end := whole.From
		for _, s := range got {
			if s.State != run.Reading || !s.From.Equal(end) || !s.To.After(s.From) {
				t.Fatalf("%+v does not follow %v in %+v", s, end, got)
			}
			end = s.To
			for i := range int(s.To.Sub(s.From) / time.Second) {
				second := s.From.Add(time.Duration(i) * time.Second)
				want := slices.ContainsFunc(critical, func(c run.Span) bool { return !second.Before(c.From) && second.Before(c.To) })
				if s.Critical != want {
					t.Fatalf("at %v it is critical: %t, of %+v in %+v", second, s.Critical, critical, got)
				}
			}
		}
		if !end.Equal(whole.To) {
			t.Fatalf("it ends at %v, not at %v", end, whole.To)
		}
	})
}

// What lasts is one segment that lasts.
func TestASpanThatLasts(t *testing.T) {
	got := segments(run.Span{State: run.Writing, From: at(1)}, []run.Span{span(run.Writing, 0, 5)})
	if len(got) != 1 || !got[0].To.IsZero() || got[0].Critical || !got[0].From.Equal(at(1)) {
		t.Errorf("%+v", got)
	}
}

func board() *run.Board {
	return &run.Board{Began: at(0), Last: at(30), Ended: true, Tokens: 300, Lanes: []run.Lane{
		{Researcher: "pi", State: run.Done, Tokens: 100, Paid: map[run.State]int{run.Planning: 60}, Spans: []run.Span{span(run.Planning, 0, 5), span(run.Writing, 20, 30)}},
		{Number: 1, Researcher: "<b>files</b>", Sent: at(5), State: run.Done, Tokens: 200, Paid: map[run.State]int{run.Reading: 200}, Spans: []run.Span{span(run.Searching, 5, 10), span(run.Reading, 10, 20)}},
	}}
}

func TestLanes(t *testing.T) {
	over := string(Lanes(board(), at(30), false))
	for _, want := range []string{"How the research went", "1 &lt;b&gt;files&lt;/b&gt;", "investigator", "planning", "reading"} {
		if !strings.Contains(over, want) {
			t.Errorf("it lacks %q: %s", want, over)
		}
	}
	if strings.Contains(over, "<b>files") {
		t.Error("a name is markup")
	}
	going := board()
	going.Ended = false
	going.Lanes[0].Spans[1].To = time.Time{}
	if got := string(Lanes(going, at(40), true)); !strings.Contains(got, "How the research goes") || strings.Contains(got, "ritical") && !strings.Contains(over, "ritical") {
		t.Errorf("%s", got)
	}
	if got := Lanes(&run.Board{}, time.Time{}, false); !strings.Contains(string(got), "<svg") {
		t.Errorf("nothing: %s", got)
	}
}

// What is drawn of many runs is what is drawn of each together.
func TestStages(t *testing.T) {
	one := board().Stages()
	all := AllStages([][]run.Stage{one, one, nil})
	if body := string(all.Body); !strings.Contains(body, "400") || !strings.Contains(body, "reading") || !strings.Contains(body, "other") { // 40 tokens of nobody knows what
		t.Errorf("%s", all.Body)
	}
	if one[0].Tokens != board().Stages()[0].Tokens {
		t.Error("what was given is changed")
	}
	if got := Stages(board()); !strings.Contains(string(got), "200") {
		t.Errorf("%s", got)
	}
	if got := AllStages(nil); got.Body == "" || got.Title == "" || got.About == "" {
		t.Errorf("%+v", got)
	}
}

func TestCosts(t *testing.T) {
	usd := 0.5
	zone := time.FixedZone("east", 14*3600)
	spent := []ledger.Entry{{Time: noon, Model: "<i>m", CostUSD: &usd}, {Time: noon.Add(-24 * time.Hour), Model: "other", CostUSD: nil}}
	got := string(Costs(spent, zone).Body)
	for _, want := range []string{"2 November 2026", "&lt;i&gt;m", "unknown"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q: %s", want, got)
		}
	}
	runs := []history.Entry{{Began: noon, Model: "<i>m", CostUSD: &usd}, {Began: noon.Add(-24 * time.Hour), Model: "other"}}
	if CostsOf(runs, zone).Body != template.HTML(got) {
		t.Error("runs cost something else than the ledger says")
	}
}

func TestUse(t *testing.T) {
	got := string(Use([]history.Entry{{Question: "<u>who?", Tokens: 50, Budget: 100}, {Question: "no budget", Tokens: 7}}).Body)
	if !strings.Contains(got, "50") || strings.Contains(got, "<u>who") || strings.Contains(got, "no budget") {
		t.Errorf("%s", got)
	}
}

func TestCurve(t *testing.T) {
	table, err := confidence.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	got := Curve(table)
	if !strings.Contains(got.About, fmt.Sprint(table.Answers)) || !strings.Contains(string(got.Body), "<svg") {
		t.Errorf("%+v", got)
	}
}
