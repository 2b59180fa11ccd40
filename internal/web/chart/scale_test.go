package chart

import (
	"encoding/xml"
	"math"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
)

func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0", 0: "0", time.Microsecond: "< 1 ms", 250 * time.Millisecond: "250 ms", 1500 * time.Millisecond: "1.5 s", 2 * time.Second: "2 s", 42 * time.Second: "42 s",
		59600 * time.Millisecond: "1 min", 90 * time.Second: "1 min 30 s", time.Hour: "1 h", 3599900 * time.Millisecond: "1 h", 150 * time.Minute: "2 h 30 min",
		24 * time.Hour: "1 d", 54 * time.Hour: "2 d 6 h", math.MaxInt64: "106751 d 23 h",
	} {
		if got := elapsed(d); got != want {
			t.Errorf("elapsed(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{dollars(0), "$0"}, {dollars(0.00001), "< $0.0001"}, {dollars(0.0123), "$0.0123"}, {dollars(1.5), "$1.50"}, {dollars(1234.4), "$1,234"}, {dollars(2.5e6), "$2.5M"}, {dollars(math.NaN()), "$0"}, {dollars(-1), "$0"},
		{short(999), "999"}, {short(1000), "1k"}, {short(12400), "12.4k"}, {short(128000), "128k"}, {short(3e6), "3M"}, {short(math.Inf(1)), "1000T"},
		{whole(0), "0"}, {whole(999), "999"}, {whole(1234567), "1,234,567"}, {whole(-5), "0"},
		{percent(1, 0), "–"}, {percent(1, 3), "33 %"}, {percent(1, 1000), "< 1 %"}, {percent(1e9, 1), "> 9999 %"}, {percent(0, 5), "0 %"},
		{number(-0.01), "0"}, {number(math.NaN()), "0"}, {number(12.34), "12.3"}, {number(math.Inf(1)), "1000000"}, {number(5), "5"},
		{fit("lighthouse", 500, 13), "lighthouse"}, {fit("lighthouse", 50, 13), "light…"}, {fit("two words", 45, 13), "two…"}, {fit("", 10, 13), ""},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestRoundSteps(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, -3: 1, 0.7: 1, 1: 1, 1.01: 2, 3: 5, 6: 10, 0.021: 0.05, 2e6: 2e6} {
		if got := round(v); math.Abs(got-want) > 1e-9*want {
			t.Errorf("round(%v) = %v, want %v", v, got, want)
		}
	}
	for whole, want := range map[time.Duration]time.Duration{
		time.Millisecond: time.Millisecond, 10 * time.Millisecond: 2 * time.Millisecond, time.Second: 200 * time.Millisecond, time.Minute: 10 * time.Second,
		10 * time.Minute: 2 * time.Minute, 5 * time.Hour: time.Hour, 72 * time.Hour: 12 * time.Hour, 3000 * 24 * time.Hour: 500 * 24 * time.Hour,
	} {
		if got := clockStep(whole, 560, 13); got != want {
			t.Errorf("a step of %v is %v, want %v", whole, got, want)
		}
	}
}

// cells reads the body of a table.
func cells(t *testing.T, c Chart) [][]string {
	t.Helper()
	var table struct {
		Rows []struct {
			Cells []struct {
				Text string `xml:",chardata"`
			} `xml:",any"`
		} `xml:"tbody>tr"`
	}
	if err := xml.Unmarshal([]byte(c.Table), &table); err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for _, r := range table.Rows {
		var row []string
		for _, cell := range r.Cells {
			row = append(row, cell.Text)
		}
		out = append(out, row)
	}
	return out
}

// TestTables says that the tables have the numbers of the pictures.
func TestTables(t *testing.T) {
	at := func(n int) time.Time { return began.Add(time.Duration(n) * time.Second) }
	run := Timeline{Began: began, Now: at(60), Going: true, Lanes: []Lane{
		{Label: "one", Segments: []Segment{{run.Planned, at(0), at(5), false}, {run.Searching, at(5), at(20), true}, {run.Reading, at(20), at(10), true}, {run.Searching, at(20), at(30), false}, {State: run.Done, From: at(30)}}},
		{Label: "two", State: "waiting", Segments: []Segment{{run.Writing, at(-10), at(4), false}, {State: run.Checking, From: at(12)}}},
		{Label: "three", State: run.Failed},
	}}
	costs := []Cost{{began, "a", usd(1.5)}, {began, "a", usd(0.25)}, {began, "b", usd(0.5)}, {began, "b", nil}, {began.AddDate(0, 0, 2), "b", usd(math.Inf(1))}}
	for _, c := range []struct {
		name string
		got  [][]string
		want string
	}{
		{"lanes", cells(t, Lanes(run)), "one|done|5 s|5 s|0|25 s|0|0|0|15 s|25 s\ntwo|waiting|0|0|0|0|0|4 s|48 s|0|1 min\nthree|failed|0|0|0|0|0|0|0|0|0"},
		{"bars", cells(t, Bars("", costs)), "2026-03-02|$1.75|$0.5000|$2.25|1\n2026-03-03|$0|$0|$0|0\n2026-03-04|$0|$0|$0|1"},
		{"share", cells(t, Share("", []Stage{{"x", 3000, 3 * time.Second, 9 * time.Second}, {"y", 1000, time.Second, -1}})), "x|3,000|75 %|3 s|75 %|3 s\ny|1,000|25 %|1 s|25 %|0"},
		{"use", cells(t, Use("", []Budget{{"x", 1200, 1000}, {"y", 1, 0}})), "x|1,200|1,000|120 %\ny|1|no bound|–"},
		{"reliability", cells(t, Reliability(Calibration{After: []stat.Bin{{High: 0.1}, {Low: 0.1, High: 0.2, N: 7, Said: 0.15, True: 2}}, Curve: []Point{{0.5, 0.25}}})), "after, 0.10 to 0.20|7|0.150|1.000\ncurve at 0.500|–|0.500|0.250"},
	} {
		var lines []string
		for _, r := range c.got {
			lines = append(lines, strings.Join(r, "|"))
		}
		if got := strings.Join(lines, "\n"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestColumnsOfTime says that many days are put together, and that weeks begin on Monday.
func TestColumnsOfTime(t *testing.T) {
	for _, c := range []struct {
		days    int
		unit    string
		columns int
		first   string
	}{{1, "Day", 1, "2026-03-02"}, {62, "Day", 62, "2026-03-02"}, {63, "Week from", 9, "2026-03-02"}, {500, "Month", 17, "2026-03-01"}, {9000, "Year", 25, "2026-01-01"}, {300000, "Year", 62, "2786-01-01"}} {
		s := spent([]Cost{{began, "a", usd(1)}, {began.AddDate(0, 0, c.days-1), "a", usd(1)}})
		if s.unit.name != c.unit || len(s.columns) != c.columns || s.columns[0].from.Format("2006-01-02") != c.first {
			t.Errorf("%d days are %d columns by %s from %v, want %d by %s from %s", c.days, len(s.columns), s.unit.name, s.columns[0].from, c.columns, c.unit, c.first)
		}
	}
	if s := spent([]Cost{{time.Date(2026, 3, 8, 23, 0, 0, 0, time.FixedZone("", 3600)), "a", nil}, {began.AddDate(0, 0, 99), "a", nil}}); s.columns[0].from.Format("2006-01-02 Mon") != "2026-03-02 Mon" {
		t.Errorf("the week of a Sunday begins on %v", s.columns[0].from)
	}
}

// TestNothingSpent: an axis from nothing to nothing is no picture, and what is not known
// is not nothing.
func TestNothingSpent(t *testing.T) {
	zero := 0.0
	known, unknown := Cost{Day: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Model: "m", USD: &zero}, Cost{Day: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Model: "m"}
	for want, costs := range map[string][]Cost{
		"No run yet.":                   nil,
		"2 runs cost nothing.":          {known, known},
		"What 1 run cost is not known.": {unknown},
		"1 run cost nothing; what 1 other cost is not known.":   {known, unknown},
		"2 runs cost nothing; what 2 others cost is not known.": {known, unknown, known, unknown},
	} {
		got := string(Bars("", costs).Picture)
		if !strings.Contains(got, want) || strings.Contains(got, "0.0001") {
			t.Errorf("not %q but %s", want, got)
		}
	}
}

// TestStageWithoutAName is told apart from a line that lost its name.
func TestStageWithoutAName(t *testing.T) {
	c := Share("", []Stage{{Tokens: 800}})
	if !strings.Contains(string(c.Picture), ">other<") || !strings.Contains(string(c.Table), ">other<") {
		t.Errorf("%s %s", c.Picture, c.Table)
	}
}
