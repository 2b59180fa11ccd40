package calibrate_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/calibrate"
)

// rows are answers of a mind that is too sure of itself: one with the score s is right
// with the probability s².
func rows(n int) []eval.Row {
	rng := rand.New(rand.NewPCG(3, 3))
	out := make([]eval.Row, 0, n)
	for i := range n {
		score := rng.Float64()
		right := 0.0
		if rng.Float64() < score*score {
			right = 1
		}
		out = append(out, eval.Row{ID: fmt.Sprint(i), Group: fmt.Sprint(i % 40), Values: map[string]float64{"confidence": score, "right": right}})
	}
	return append(out, eval.Row{ID: "refused", Values: map[string]float64{"confidence": 0.1}}, eval.Row{ID: "not asked", Values: map[string]float64{"right": 1}})
}

func TestMake(t *testing.T) {
	answers := calibrate.FromRows("made", rows(2000))
	if len(answers) != 2000 {
		t.Fatalf("%d answers, want 2000: refusals are none", len(answers))
	}
	f, err := calibrate.Make(answers, 1)
	if err != nil {
		t.Fatal(err)
	}
	if f.Table.Before.ECE < 0.1 || f.Table.After.ECE > 0.03 || f.Table.After.Brier >= f.Table.Before.Brier {
		t.Errorf("before %+v, after %+v", f.Table.Before, f.Table.After)
	}
	if got := f.Table.At(0.5); math.Abs(got-0.25) > 0.06 {
		t.Errorf("a score of 0.5 is right with %.3f, made to be right with 0.25", got)
	}
	if f.Table.Data != "made (2000)" || f.Table.Answers != 2000 || len(f.Trials) != 2 || f.Trials[0].Brier > f.Trials[1].Brier {
		t.Errorf("table %+v, trials %+v", f.Table, f.Trials)
	}
	again, err := calibrate.Make(answers, 1)
	if err != nil || calibrate.SVG(again) != calibrate.SVG(f) {
		t.Errorf("the same answers give another fit: %v", err)
	}
}

// TestHeldBack makes groups whose answers are right or wrong together: a curve that saw
// the group would look calibrated.
func TestHeldBack(t *testing.T) {
	var r []eval.Row
	for g := range 10 {
		for i := range 50 {
			r = append(r, eval.Row{ID: fmt.Sprint(g, i), Group: fmt.Sprint(g), Values: map[string]float64{"confidence": float64(g) / 10, "right": float64(g % 2)}})
		}
	}
	f, err := calibrate.Make(calibrate.FromRows("made", r), 1)
	if err != nil {
		t.Fatal(err)
	}
	if f.Table.After.ECE < 0.2 {
		t.Errorf("ECE %.3f: groups are not held back together", f.Table.After.ECE)
	}
}

func TestTooFew(t *testing.T) {
	all := calibrate.FromRows("made", rows(300))
	var right []calibrate.Answer
	for _, a := range all {
		if a.Right {
			right = append(right, a)
		}
	}
	for name, answers := range map[string][]calibrate.Answer{"none": nil, "few": all[:99], "only right ones": right} {
		if _, err := calibrate.Make(answers, 1); !errors.Is(err, marchwarden.CodeInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDrawings(t *testing.T) {
	f, err := calibrate.Make(calibrate.FromRows("made", rows(1000)), 1)
	if err != nil {
		t.Fatal(err)
	}
	text := calibrate.Text(f.After)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	filled := 0
	for _, b := range f.After {
		if b.N > 0 {
			filled++
		}
	}
	if len(lines) != filled+1 {
		t.Errorf("%d lines for %d intervals with answers:\n%s", len(lines), filled, text)
	}
	for _, l := range lines[1:] {
		if strings.Count(l, "|") != 1 {
			t.Errorf("no mark in %q", l)
		}
	}
	dec := xml.NewDecoder(strings.NewReader(calibrate.SVG(f)))
	circles := 0
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the picture is not well-formed: %v", err)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "circle" {
			circles++
		}
	}
	before := 0
	for _, b := range f.Before {
		if b.N > 0 {
			before++
		}
	}
	if circles != before+filled {
		t.Errorf("%d circles, want %d", circles, before+filled)
	}
}

// TestRefused holds that what cannot be a calibration is refused, and drawn by nobody.
func TestRefused(t *testing.T) {
	with := func(change func(*calibrate.Answer)) []calibrate.Answer {
		list := calibrate.FromRows("made", rows(200))
		for i := range list {
			change(&list[i])
		}
		return list
	}
	for name, c := range map[string]struct {
		answers []calibrate.Answer
		says    string
	}{
		"below":       {with(func(a *calibrate.Answer) { a.Score -= 4 }), "must lie between 0 and 1"},
		"above":       {with(func(a *calibrate.Answer) { a.Score = 1e308 }), "must lie between 0 and 1"},
		"no number":   {with(func(a *calibrate.Answer) { a.Score = math.NaN() }), "must lie between 0 and 1"},
		"all right":   {with(func(a *calibrate.Answer) { a.Right = true }), "right and wrong ones"},
		"one article": {with(func(a *calibrate.Answer) { a.Group = "one" }), "answers from 1 articles are not enough"},
	} {
		_, err := calibrate.Make(c.answers, 1)
		if !errors.Is(err, marchwarden.CodeInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
