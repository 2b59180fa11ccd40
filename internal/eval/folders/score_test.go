package folders

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
)

func TestHolds(t *testing.T) {
	for _, c := range []struct {
		text string
		keys []string
		want bool
	}{
		{"Open  on\u00a0MONDAYS\nand Fridays", []string{"open on mondays"}, true},
		{"the “Tradition” festival", []string{`"tradition" festival`}, true},
		{"Argentina won 6–0, it's said", []string{"won 6-0"}, true},
		{"it’s said", []string{"it's said"}, true},
		{"soft\u00adhyphen", []string{"softhyphen"}, true},
		{"table tennis and bodybuilding", []string{"table tennis && bodybuilding"}, true},
		{"table tennis and judo", []string{"table tennis && bodybuilding"}, false},
		{"judo", []string{"table tennis && bodybuilding", "judo"}, true},
		{"limited to 450", []string{"limited to 45"}, false},
		{"in 1930 there were 30", []string{"30"}, true},
		{"in 1930", []string{"30"}, false},
		{"45p a day", []string{"45"}, true},
		{"anything", nil, false},
		{"anything", []string{"", " && "}, false},
	} {
		if got := holds(c.text, c.keys); got != c.want {
			t.Errorf("%q says one of %q: %v", c.text, c.keys, got)
		}
	}
}

func TestSaid(t *testing.T) {
	for answer, want := range map[string][]string{
		"One is here. [1] Two is there. [2][3]":                {"One is here.", "Two is there."},
		"Wedding day | 575 [1] Next line [2]":                  {"Wedding day | 575", "Next line"},
		"Dr. Abara came. She stayed. [1]":                      {"Dr. Abara came.", "She stayed."},
		"2\\.1.0 \\(2024\\-05\\-20\\) \\[note\\] [1]\n\nB [2]": {"2.1.0 (2024-05-20) [note]", "B"},
		"": nil,
	} {
		if diff := cmp.Diff(want, said(answer)); diff != "" {
			t.Errorf("%q: %s", answer, diff)
		}
	}
}

// made is a reply with so many citations.
func made(answer string, citations int, s *shortAnswer) reply {
	r := reply{Answer: answer, Short: s}
	r.Citations = append(r.Citations, make([]struct {
		Locator string `json:"locator"`
	}, citations)...)
	return r
}

func TestOpening(t *testing.T) {
	const answer = "A is so. [1] B is so. [1] C is so. [1]"
	for _, short := range []*shortAnswer{nil, {}, {Text: "Seven"}} { // it is measured apart
		r := made(answer, 1, short)
		if one, two := r.opening(1), r.opening(2); one != "A is so." || two != "A is so. B is so." {
			t.Errorf("with the short answer %+v: %q and %q", short, one, two)
		}
	}
	if n := made(answer, 1, nil).length(); n != 9 {
		t.Errorf("%d words", n)
	}
}

func TestValues(t *testing.T) {
	s := &session{docs: map[string]eval.Docs{office: {"a.md": "", "b.md": ""}}}
	span := question{Folder: office, Keys: []string{"on hook 7"}, Short: []string{"hook 7"}, Kind: "span", Note: "a.md: keys"}
	yes, none := question{Keys: []string{"are welcome"}, Kind: kindYes}, question{Kind: kindNone}
	long := "hook 7 "
	for range 24 {
		long += "x "
	}
	for name, c := range map[string]struct {
		q    question
		r    reply
		want map[string]float64
	}{
		"second sentence": {span, made("No. [1] It is on hook 7. [1] More. [1]", 1, nil), map[string]float64{good1: 0, good2: 1, short: 0, file: 0, overRefused: 0, right: 1, words: 7}},
		"third sentence":  {span, made("No. [1] Nor this. [1] It is on hook 7. [1]", 1, nil), map[string]float64{good1: 0, good2: 0, short: 0, file: 0, overRefused: 0, right: 0, words: 8}},
		"short":           {span, made("It is on hook 7. [1]", 1, &shortAnswer{"Hook 7", "span"}), map[string]float64{good1: 1, good2: 1, short: 1, file: 0, overRefused: 0, right: 1, words: 5}},
		"long short":      {span, made("It. [1]", 1, &shortAnswer{long, "span"}), map[string]float64{good1: 0, good2: 0, short: 0, file: 0, overRefused: 0, right: 0, words: 1}},
		"nothing cited":   {span, made("It is on hook 7.", 0, nil), map[string]float64{good1: 0, good2: 0, short: 0, file: 0, overRefused: 1}},
		"unknown":         {span, made("It is on hook 7. [1]", 1, &shortAnswer{"hook 7", unknown}), map[string]float64{good1: 0, good2: 0, short: 0, file: 0, overRefused: 1}},
		"yes":             {yes, made("Dogs are welcome. [1]", 1, &shortAnswer{"Yes.", kindYes}), map[string]float64{good1: 1, good2: 1, short: 1, overRefused: 0, right: 1, words: 3}},
		"wrong way":       {yes, made("Dogs are welcome. [1]", 1, &shortAnswer{"Yes.", kindNo}), map[string]float64{good1: 1, good2: 1, short: 0, overRefused: 0, right: 1, words: 3}},
		"none answered":   {none, made("Something else. [1]", 1, nil), map[string]float64{refused: 0, right: 0, words: 2}},
		"none refused":    {none, made("Something else. [1]", 1, &shortAnswer{"", unknown}), map[string]float64{refused: 1}},
	} {
		c.want[confidence] = 0
		if diff := cmp.Diff(c.want, s.values(c.q, c.r)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	r := made("x", 2, nil)
	r.Citations[1].Locator = "sub/a.md#L3"
	if !r.cites([]string{"a.md"}) || r.cites([]string{"b.md"}) {
		t.Error("a cited document")
	}
}

// TestTrusted holds the metrics of confidence against counts by hand.
func TestTrusted(t *testing.T) {
	row := func(c float64, was any) eval.Row {
		v := map[string]float64{confidence: c}
		if b, ok := was.(bool); ok {
			v[right] = number(b)
		}
		return eval.Row{Values: v}
	}
	rows := []eval.Row{row(0.95, true), row(0.95, false), row(0.5, true), row(0.2, false), row(0.7, nil)}
	want := map[string]eval.Metric{
		auroc:            {Name: auroc, Value: 2.5 / 4, N: 4},
		aurocAll:         {Name: aurocAll, Value: 3.5 / 6, N: 5},
		calibrationError: {Name: calibrationError, Value: (2*0.45 + 0.5 + 0.2) / 4, N: 4},
		sureRight:        {Name: sureRight, Value: 0.5, N: 2},
	}
	for _, m := range trusted(rows) {
		if w := want[m.Name]; m.N != w.N || math.Abs(m.Value-w.Value) > 1e-9 {
			t.Errorf("%+v, want %+v", m, w)
		}
	}
	for _, m := range trusted(rows[:1]) {
		if m.N > 0 && (m.Name == auroc || m.Name == aurocAll) {
			t.Errorf("%+v of one kind", m)
		}
	}
}
