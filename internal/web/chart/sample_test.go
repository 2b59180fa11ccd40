package chart

import (
	"fmt"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
)

var began = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// sampleRun is an investigation with so many rihlas, each unit of its times so long.
func sampleRun(rihlas int, unit time.Duration, going bool) Timeline {
	at := func(n int) time.Time { return began.Add(time.Duration(n) * unit) }
	t := Timeline{Title: "Who built the first lighthouse on the island?", Began: began, Going: going}
	own := Lane{Label: "investigator", Segments: []Segment{{run.Planning, at(0), at(10), true}}}
	last := 10
	for i := range rihlas {
		b := 10 + 3*(i/4)
		l := Lane{Label: fmt.Sprintf("%d %s: what do the harbour registers say about year %d", i+1, []string{"web", "local", "scholar", "files"}[i%4], 1700+i)}
		end := b + 30 + 7*(i%5)
		critical := i == rihlas-1
		l.Segments = []Segment{
			{run.Planned, at(10), at(b), false}, {run.Planning, at(b), at(b + 3), critical}, {run.Searching, at(b + 3), at(b + 12), critical},
			{run.Reading, at(b + 12), at(b + 20), critical}, {run.Writing, at(b + 20), at(b + 26), critical}, {run.Checking, at(b + 26), at(end), critical},
		}
		switch {
		case i%7 == 5:
			l.Segments = append(l.Segments[:4], Segment{State: run.Failed, From: at(b + 20), To: at(b + 20)})
		case going && critical:
			l.Segments = l.Segments[:5]
			l.Segments[4].To = time.Time{}
		default:
			l.Segments = append(l.Segments, Segment{State: run.Done, From: at(end)})
		}
		last = max(last, end)
		t.Lanes = append(t.Lanes, l)
	}
	if going {
		t.Now = at(last)
	} else {
		own.Segments = append(own.Segments, Segment{run.Writing, at(last), at(last + 12), true}, Segment{run.Checking, at(last + 12), at(last + 16), true}, Segment{State: run.Done, From: at(last + 16)})
	}
	t.Lanes = append([]Lane{own}, t.Lanes...)
	return t
}

func usd(v float64) *float64 { return &v }

func sampleCosts(days, models int) []Cost {
	var out []Cost
	for d := range days {
		for m := range models {
			if (d+m)%4 == 3 {
				continue
			}
			c := Cost{Day: began.AddDate(0, 0, d), Model: fmt.Sprintf("model-%c", 'a'+m), USD: usd(0.02 + 0.4*float64((d*7+m*3)%11)/float64(m+1))}
			if d%6 == 2 && m == 0 {
				c.USD = nil
			}
			out = append(out, c)
		}
	}
	return out
}

var sampleStages = []Stage{
	{"Planning", 8200, 14 * time.Second, 14 * time.Second}, {"Searching", 1900, 41 * time.Second, 22 * time.Second},
	{"Reading", 96000, 128 * time.Second, 40 * time.Second}, {"Writing", 31000, 55 * time.Second, 48 * time.Second}, {"Checking", 12400, 19 * time.Second, 6 * time.Second},
}

func sampleCalibration() Calibration {
	c := Calibration{}
	for i := range 10 {
		low := float64(i) / 10
		c.Before = append(c.Before, stat.Bin{Low: low, High: low + 0.1, N: 20 + 9*i, Said: low + 0.05, True: low * low})
		c.After = append(c.After, stat.Bin{Low: low, High: low + 0.1, N: 130 - 11*i, Said: low + 0.04, True: low + 0.05 + 0.03*float64(i%3-1)})
		c.Curve = append(c.Curve, Point{low + 0.05, low * low * 0.95})
	}
	return c
}

func sampleBudgets(n int) []Budget {
	var out []Budget
	for i := range n {
		out = append(out, Budget{fmt.Sprintf("question %d about lighthouses and their keepers", i+1), 2100 * (i*5%13 + 1), 20000 + 4000*(i%3)})
	}
	if n > 3 {
		out[2].Allowed = 0
	}
	return out
}
