package page

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sampleRun is an investigation with so many rihlas, each unit of its times so long.
func sampleRun(rihlas int, unit time.Duration, going bool) *run.Board {
	at := func(n int) time.Time { return began.Add(time.Duration(n) * unit) }
	span := func(s run.State, from, to int) run.Span { return run.Span{State: s, From: at(from), To: at(to)} }
	b := &run.Board{Began: began, Ended: !going, Lanes: []run.Lane{{Researcher: "pi", State: run.Waiting, Spans: []run.Span{span(run.Planning, 0, 10)}}}}
	last := 10
	for i := range rihlas {
		from := 10 + 3*(i/4)
		end := from + 30 + 7*(i%5)
		l := run.Lane{Number: i + 1, Researcher: []string{"web", "local", "scholar", "files"}[i%4], Sent: at(from), State: run.Done, Spans: []run.Span{
			span(run.Planned, 10, from), span(run.Planning, from, from+3), span(run.Searching, from+3, from+12), span(run.Reading, from+12, from+20), span(run.Writing, from+20, from+26), span(run.Checking, from+26, end)}}
		switch {
		case i%7 == 5:
			l.Spans, l.State = l.Spans[:4], run.Failed
		case going && i == rihlas-1:
			l.Spans, l.State = l.Spans[:5], run.Writing
			l.Spans[4].To = time.Time{}
		}
		last = max(last, end)
		b.Lanes = append(b.Lanes, l)
	}
	if !going {
		b.Lanes[0].Spans = append(b.Lanes[0].Spans, span(run.Writing, last, last+12), span(run.Checking, last+12, last+16))
		b.Lanes[0].State, last = run.Done, last+16
	}
	b.Last = at(last)
	return b
}

func drawn(rihlas int, unit time.Duration, going bool) string {
	b := sampleRun(rihlas, unit, going)
	return Lanes(b, b.Last, going).String()
}

func TestGolden(t *testing.T) {
	for name, got := range map[string]string{"lanes": drawn(3, time.Second, false), "going": drawn(2, 20*time.Minute, true)} {
		got = strings.ReplaceAll(got, "><", ">\n<") + "\n"
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
			t.Errorf("%s is another picture than before; look at the diff, then run with -update", name)
		}
		for _, f := range pictureFaults(got) {
			t.Errorf("%s: %s", name, f)
		}
	}
}

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
	for whole, want := range map[time.Duration]time.Duration{
		time.Millisecond: time.Millisecond, 10 * time.Millisecond: 2 * time.Millisecond, time.Second: 200 * time.Millisecond, time.Minute: 15 * time.Second,
		10 * time.Minute: 2 * time.Minute, 5 * time.Hour: time.Hour, 72 * time.Hour: oneDay, 3000 * 24 * time.Hour: 1000 * 24 * time.Hour, math.MaxInt64: 20000 * 24 * time.Hour,
	} {
		if got := clockStep(whole); got != want {
			t.Errorf("a step of %v is %v, want %v", whole, got, want)
		}
	}
}

func TestLanesTextIsText(t *testing.T) {
	for _, s := range payloads {
		b := sampleRun(2, time.Second, true)
		b.Lanes[1].Researcher, b.Lanes[1].Spans[0].State = s, run.State(s)
		html := Lanes(b, b.Last, true).String()
		for _, f := range pictureFaults(html) {
			t.Errorf("with %q: %s", s, f)
		}
		if strings.ContainsAny(html, "\x00\x1b\x07\u202e") {
			t.Errorf("with %q it carries what cannot be seen", s)
		}
	}
}

// moment is near the beginning, far from it, or nowhere.
var anyMoment = rapid.Custom(func(t *rapid.T) time.Time {
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

// TestNothingLeavesThePicture holds for any run: everything is inside, and it is well formed.
func TestNothingLeavesThePicture(t *testing.T) {
	label := rapid.OneOf(rapid.String(), rapid.SampledFrom(payloads), rapid.StringN(0, 300, -1), rapid.Just(strings.Repeat("漢😀W", 80)))
	span := rapid.Custom(func(t *rapid.T) run.Span {
		state := rapid.SampledFrom([]run.State{run.Planned, run.Planning, run.Searching, run.Reading, run.Writing, run.Checking, "odd", ""}).Draw(t, "state")
		return run.Span{State: state, From: anyMoment.Draw(t, "from"), To: anyMoment.Draw(t, "to")}
	})
	lane := rapid.Custom(func(t *rapid.T) run.Lane {
		return run.Lane{Researcher: label.Draw(t, "label"), State: rapid.SampledFrom([]run.State{"", run.Done, run.Failed, run.Waiting}).Draw(t, "state"), Spans: rapid.SliceOfN(span, 0, 12).Draw(t, "spans")}
	})
	rapid.Check(t, func(t *rapid.T) {
		b := &run.Board{Began: anyMoment.Draw(t, "began"), Lanes: rapid.SliceOfN(lane, 0, rapid.SampledFrom([]int{1, 5, 60}).Draw(t, "lanes")).Draw(t, "all")}
		for i := range b.Lanes {
			b.Lanes[i].Number = i
		}
		if bad := pictureFaults(Lanes(b, anyMoment.Draw(t, "now"), rapid.Bool().Draw(t, "going")).String()); len(bad) > 0 {
			t.Fatal(strings.Join(bad[:min(len(bad), 5)], "\n"))
		}
	})
}

func TestFromOneLaneToMany(t *testing.T) {
	for _, lanes := range []int{0, 1, 2, 39, 40, 41, 199, 200, 10000} {
		for _, unit := range []time.Duration{time.Microsecond * 20, time.Second, 40 * time.Minute} {
			b := sampleRun(max(lanes-1, 0), unit, lanes%2 == 0)
			b.Lanes = b.Lanes[:lanes]
			s := measure(b, b.Last, !b.Ended)
			picture := s.picture("")
			for i, f := range pictureFaults(picture.String() + s.table("").String()) {
				if t.Errorf("%d lanes by %v: %s", lanes, unit, f); i == 3 {
					break
				}
			}
			if n := len(picture.String()); n > 100<<10 {
				t.Errorf("the picture of %d lanes has %d bytes", lanes, n)
			}
		}
	}
}

// TestManySegments says that a lane of very many short segments is drawn with few.
func TestManySegments(t *testing.T) {
	b := &run.Board{Began: began}
	for i := range 50 {
		l := run.Lane{Number: i}
		for j := range 5000 {
			at := began.Add(time.Duration(j) * time.Second)
			l.Spans = append(l.Spans, run.Span{State: looks[j%len(looks)].state, From: at, To: at.Add(time.Second)})
		}
		b.Lanes = append(b.Lanes, l)
	}
	if n := len(measure(b, b.Last, true).picture("").String()); n > 150<<10 {
		t.Errorf("the picture has %d bytes", n)
	}
}
