package chart

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// samples are all kinds of charts, small.
func samples() map[string]Chart {
	c := sampleCalibration()
	c.Before, c.After, c.Curve = c.Before[7:], c.After[7:], c.Curve[7:]
	return map[string]Chart{
		"lanes":       Lanes(sampleRun(3, time.Second, false)),
		"going":       Lanes(sampleRun(2, 20*time.Minute, true)),
		"bars":        Bars("Cost", sampleCosts(4, 3)),
		"share":       Share("", sampleStages[:3]),
		"reliability": Reliability(c),
		"use":         Use("", sampleBudgets(5)),
		"histogram":   Use("", sampleBudgets(31)),
	}
}

func TestGolden(t *testing.T) {
	for name, c := range samples() {
		got := strings.ReplaceAll(string(c.Figure()), "><", ">\n<") + "\n"
		file := filepath.Join("testdata", name+".html")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is another picture than before; look at it (MARCHWARDEN_TEST_LOOK=/tmp/x.html), then run with -update", name)
		}
	}
}

func TestSamplesAreWhole(t *testing.T) {
	for name, c := range samples() {
		for _, f := range faults(string(c.Figure())) {
			t.Errorf("%s: %s", name, f)
		}
	}
}

func TestSameNumbersSameBytes(t *testing.T) {
	first := samples()
	for range 20 {
		for name, c := range samples() {
			if c != first[name] {
				t.Fatalf("%s differs", name)
			}
		}
	}
}

// payloads are texts that would be something else, were they not escaped.
var payloads = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onload='alert(1)`, `</title><svg onload=alert(1)>`, `</text></svg><iframe src=//evil>`,
	`<![CDATA[<b>]]>`, `<!-- x -->`, `&lt;b&gt; &amp; &#60;`, `]]>`, `<?xml version="1.0"?>`, "a\x00b\x1b[31m\x07", "\u202egnp.exe", "\xff\xfe", "\ufffe\uffff", `javascript:alert(1)`, `<style>*{}</style>`, `{{.}}`,
}

func TestTextIsText(t *testing.T) {
	for _, s := range payloads {
		lanes := sampleRun(2, time.Second, true)
		lanes.Title, lanes.Lanes[1].Label, lanes.Lanes[1].Segments[0].State = s, s, run.State(s)
		for name, c := range map[string]Chart{
			"lanes": Lanes(lanes), "bars": Bars(s, []Cost{{began, s, usd(1)}, {began, "", nil}}), "share": Share(s, []Stage{{s, 1, 1, 1}}),
			"reliability": Reliability(Calibration{Title: s, Before: sampleCalibration().Before}), "use": Use(s, []Budget{{s, 3, 2}}),
		} {
			html := string(c.Figure())
			for _, f := range faults(html) {
				t.Errorf("%s with %q: %s", name, s, f)
			}
			if strings.ContainsAny(html, "\x00\x1b\x07\u202e") {
				t.Errorf("%s with %q carries what cannot be seen", name, s)
			}
			if !strings.Contains(html, escapes.Replace(line(s))) {
				t.Errorf("%s does not say %q anywhere", name, s)
			}
		}
	}
}

// label is any text.
var label = rapid.OneOf(rapid.String(), rapid.SampledFrom(payloads), rapid.StringN(0, 300, -1), rapid.Just(strings.Repeat("漢😀W", 80)))

// moment is near the beginning, far from it, or nowhere.
var moment = rapid.Custom(func(t *rapid.T) time.Time {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return time.Time{}
	case 1:
		return began.Add(time.Duration(rapid.Int64().Draw(t, "anywhere")))
	case 2:
		return time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "second"), 0)
	}
	unit := rapid.SampledFrom([]time.Duration{time.Nanosecond, time.Millisecond, time.Second, time.Minute, time.Hour}).Draw(t, "unit")
	return began.Add(time.Duration(rapid.IntRange(-20, 100).Draw(t, "units")) * unit)
})

// count is any number of things, the odd ones among them.
var count = rapid.OneOf(rapid.IntRange(0, 50000), rapid.Int(), rapid.SampledFrom([]int{0, 1, -1, math.MaxInt, math.MinInt}))

var fraction = rapid.OneOf(rapid.Float64Range(0, 1), rapid.Float64(), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -1, 1e-300}))

func segment(t *rapid.T) Segment {
	state := rapid.SampledFrom([]run.State{run.Planned, run.Planning, run.Searching, run.Reading, run.Writing, run.Checking, run.Done, run.Failed, "odd", ""}).Draw(t, "state")
	return Segment{state, moment.Draw(t, "from"), moment.Draw(t, "to"), rapid.Bool().Draw(t, "critical")}
}

// anyChart is a chart of random numbers.
var anyChart = map[string]func(*rapid.T) Chart{
	"lanes": func(t *rapid.T) Chart {
		lane := rapid.Custom(func(t *rapid.T) Lane {
			return Lane{label.Draw(t, "label"), run.State(rapid.SampledFrom([]string{"", "done", "failed", "waiting"}).Draw(t, "state")), rapid.SliceOfN(rapid.Custom(segment), 0, 12).Draw(t, "segments")}
		})
		lanes := rapid.SliceOfN(lane, 0, rapid.SampledFrom([]int{1, 5, 60}).Draw(t, "lanes")).Draw(t, "all")
		return Lanes(Timeline{label.Draw(t, "title"), moment.Draw(t, "began"), moment.Draw(t, "now"), rapid.Bool().Draw(t, "going"), lanes})
	},
	"bars": func(t *rapid.T) Chart {
		return Bars("", rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Cost {
			c := Cost{Day: moment.Draw(t, "day"), Model: rapid.OneOf(label, rapid.SampledFrom([]string{"a", "b", "c"})).Draw(t, "model")}
			if rapid.Bool().Draw(t, "near") {
				c.Day = began.AddDate(0, 0, rapid.IntRange(0, 90).Draw(t, "days"))
			}
			if rapid.IntRange(0, 3).Draw(t, "known") > 0 {
				c.USD = usd(fraction.Draw(t, "usd"))
			}
			return c
		}), 0, 40).Draw(t, "costs"))
	},
	"share": func(t *rapid.T) Chart {
		return Share("", rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Stage {
			return Stage{label.Draw(t, "name"), count.Draw(t, "tokens"), time.Duration(count.Draw(t, "time")), time.Duration(count.Draw(t, "critical"))}
		}), 0, 30).Draw(t, "stages"))
	},
	"reliability": func(t *rapid.T) Chart {
		bin := rapid.Custom(func(t *rapid.T) stat.Bin {
			return stat.Bin{Low: fraction.Draw(t, "low"), High: fraction.Draw(t, "high"), N: count.Draw(t, "n"), Said: fraction.Draw(t, "said"), True: fraction.Draw(t, "true")}
		})
		point := rapid.Custom(func(t *rapid.T) Point { return Point{fraction.Draw(t, "score"), fraction.Draw(t, "probability")} })
		return Reliability(Calibration{label.Draw(t, "title"), rapid.SliceOfN(bin, 0, 20).Draw(t, "before"), rapid.SliceOfN(bin, 0, 20).Draw(t, "after"), rapid.SliceOfN(point, 0, 20).Draw(t, "curve")})
	},
	"use": func(t *rapid.T) Chart {
		return Use("", rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Budget {
			return Budget{label.Draw(t, "label"), count.Draw(t, "used"), count.Draw(t, "allowed")}
		}), 0, 40).Draw(t, "runs"))
	},
}

// TestNothingLeavesThePicture holds for any numbers: everything is inside, no label is on
// another one, and it is well formed.
func TestNothingLeavesThePicture(t *testing.T) {
	for name, draw := range anyChart {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				if bad := faults(string(draw(t).Figure())); len(bad) > 0 {
					t.Fatal(strings.Join(bad[:min(len(bad), 5)], "\n"))
				}
			})
		})
	}
}

func TestFromOneLaneToMany(t *testing.T) {
	for _, lanes := range []int{0, 1, 2, 39, 40, 41, 199, 200, 10000} {
		for _, unit := range []time.Duration{time.Microsecond * 20, time.Millisecond, time.Second, time.Minute, 40 * time.Minute} {
			run := sampleRun(max(lanes-1, 0), unit, lanes%2 == 0)
			run.Lanes = run.Lanes[:lanes]
			c := Lanes(run)
			for i, f := range faults(string(c.Figure())) {
				if t.Errorf("%d lanes by %v: %s", lanes, unit, f); i == 3 {
					break
				}
			}
			if n := len(c.Picture); lanes <= 200 && n >= 60_000 {
				t.Errorf("the picture of %d lanes has %d bytes", lanes, n)
			} else if n > 100<<10 {
				t.Errorf("the picture of %d lanes has %d bytes", lanes, n)
			}
		}
	}
	t.Logf("200 lanes: %d bytes of picture, %d of table", len(Lanes(sampleRun(199, time.Second, false)).Picture), len(Lanes(sampleRun(199, time.Second, false)).Table))
}

// TestManySegments says that a lane of very many short segments is drawn with few.
func TestManySegments(t *testing.T) {
	run := Timeline{Began: began}
	for i := range 50 {
		l := Lane{Label: fmt.Sprint(i)}
		for j := range 5000 {
			at := began.Add(time.Duration(j) * time.Second)
			l.Segments = append(l.Segments, Segment{looks[j%len(looks)].state, at, at.Add(time.Second), j%9 == 0})
		}
		run.Lanes = append(run.Lanes, l)
	}
	if c := Lanes(run); len(c.Picture) > 150<<10 {
		t.Errorf("the picture has %d bytes", len(c.Picture))
	}
}

func TestManyOfAll(t *testing.T) {
	var stages []Stage
	var bins []stat.Bin
	var points []Point
	for i := range 10000 {
		stages = append(stages, Stage{fmt.Sprint("stage ", i), i, time.Duration(i) * time.Second, time.Second})
		bins = append(bins, stat.Bin{Low: 0.1, High: 0.2, N: i, Said: 0.15, True: 0.2})
		points = append(points, Point{float64(i) / 1e4, float64(i) / 1e4})
	}
	for name, c := range map[string]Chart{
		"bars": Bars("", sampleCosts(10000, 3)), "share": Share("", stages), "use": Use("", sampleBudgets(10000)),
		"reliability": Reliability(Calibration{Before: bins, After: bins, Curve: points}),
	} {
		if len(c.Picture) > 80<<10 || len(c.Table) > 400<<10 {
			t.Errorf("%s has %d and %d bytes", name, len(c.Picture), len(c.Table))
		}
		for _, f := range faults(string(c.Figure())) {
			t.Errorf("%s: %s", name, f)
		}
	}
}
