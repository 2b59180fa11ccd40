package answers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
)

func clapnq() eval.Suite {
	return eval.Suite{
		Name: "clapnq", Title: "CLAPnq, each passage by itself and all as one library", Files: []string{"qa/clapnq.jsonl.gz"},
		Licence: "Apache-2.0", Measures: "the sentences of an answer are those that people chose",
		Bars: []eval.Bar{
			{Metric: "sentence F1"},
			{Metric: "lead-2 F1"},
			{Metric: "times lead-2", AtLeast: 1.3, Known: "the reader was trained on four fifths of this half"},
			{Metric: "sentence F1 pooled", Known: "lead-2 knows the passage"},
			{Metric: cited, AtLeast: 1},
		},
		Open: openClapnq,
	}
}

type clapCase struct {
	ID         string `json:"id"`
	Answerable bool   `json:"answerable"`
	Input      string `json:"input"`
	Passages   []struct {
		Title     string   `json:"title"`
		Sentences []string `json:"sentences"`
	} `json:"passages"`
	Output []struct {
		Selected []string `json:"selected_sentences"`
	} `json:"output"`
}

// clapSession asks each question twice: of the passage that was given to the people who
// chose the sentences, which is what lead-2 is taken from, and of all passages.
type clapSession struct {
	desk  eval.Desk
	lib   eval.Library
	ids   []string
	cases map[string]clapCase
}

func openClapnq(ctx context.Context, env eval.Env) (eval.Session, error) {
	rows, err := eval.Rows[clapCase](env.Data, "qa/clapnq")
	if err != nil {
		return nil, err
	}
	s := &clapSession{desk: env.Desk, cases: map[string]clapCase{}}
	docs := eval.Docs{}
	for _, c := range rows {
		if _, twice := s.cases[c.ID]; twice || len(c.Passages) == 0 {
			continue
		}
		s.ids = append(s.ids, c.ID)
		s.cases[c.ID] = c
		for i, p := range c.Passages {
			docs[fmt.Sprintf("%s-%d.md", c.ID, i)] = titled(p.Title, strings.Join(p.Sentences, " "))
		}
	}
	s.lib, err = env.Desk.Open(ctx, "clapnq", docs.FS())
	return s, err
}

func (s *clapSession) Cases() []string { return s.ids }

func (s *clapSession) Close() error { return s.lib.Close() }

func (s *clapSession) Run(ctx context.Context, id string) (eval.Row, error) {
	c := s.cases[id]
	res, err := s.lib.Ask(ctx, marchwarden.Request{Question: question(c.Input)})
	if err != nil {
		return eval.Row{}, err
	}
	row := eval.Row{ID: id, Values: common(res)}
	row.Values[answerable] = number(c.Answerable)
	if !c.Answerable {
		if len(res.Citations) > 0 {
			row.Values[right] = 0
		}
		return row, nil
	}
	alone, err := s.given(ctx, c)
	if err != nil {
		return eval.Row{}, err
	}
	first := map[int]bool{0: true, 1: len(c.Passages[0].Sentences) > 1}
	lead := 0.0
	for _, o := range c.Output {
		lead = max(lead, f1(first, c.places(o.Selected), 0))
	}
	best := c.rate(alone)
	row.Values["sentence F1"], row.Values["lead-2 F1"], row.Values["sentence F1 pooled"] = best, lead, c.rate(res)
	row.Values["sentences"] = float64(len(alone.Claims))
	if len(res.Citations) > 0 {
		row.Values[right] = number(row.Values["sentence F1 pooled"] > 0)
	}
	return row, nil
}

// given asks the question of its own passage alone.
func (s *clapSession) given(ctx context.Context, c clapCase) (res *marchwarden.Result, err error) {
	docs := eval.Docs{}
	for i, p := range c.Passages {
		docs[fmt.Sprintf("%s-%d.md", c.ID, i)] = titled(p.Title, strings.Join(p.Sentences, " "))
	}
	lib, err := s.desk.Open(ctx, "given", docs.FS())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lib.Close()) }()
	return lib.Ask(ctx, marchwarden.Request{Question: question(c.Input)})
}

// rate is the F1 of an answer's sentences against the choice of the annotator who comes
// nearest.
func (c clapCase) rate(res *marchwarden.Result) float64 {
	chosen, strange := c.chosen(res)
	best := 0.0
	for _, o := range c.Output {
		best = max(best, f1(chosen, c.places(o.Selected), strange))
	}
	return best
}

// question is the input with the mark of a question.
func question(s string) string { return strings.TrimRight(strings.TrimSpace(s), "?. ") + "?" }

// chosen are the sentences of the passage that the answer says, by their places, and
// how many claims stand in no sentence of it. A sentence is said when at least half of
// its letters stand in claims: the sentences of the set were cut by others, and
// sometimes otherwise.
func (c clapCase) chosen(res *marchwarden.Result) (map[int]bool, int) {
	said := map[int]bool{}
	strange := 0
	whole := make([]int, len(c.Passages[0].Sentences))
	for _, claim := range res.Claims {
		text, found := squeezed(claim.Text), false
		for i, s := range c.Passages[0].Sentences {
			s = squeezed(s)
			switch {
			case s == "":
			case strings.Contains(text, s):
				whole[i] += len(s)
				found = true
			case strings.Contains(s, text):
				whole[i] += len(text)
				found = true
			}
		}
		if !found {
			strange++
		}
	}
	for i, s := range c.Passages[0].Sentences {
		if n := len(squeezed(s)); n > 0 && 2*whole[i] >= n {
			said[i] = true
		}
	}
	return said, strange
}

// places are where sentences stand in the passage.
func (c clapCase) places(sentences []string) map[int]bool {
	out := map[int]bool{}
	for _, want := range sentences {
		want = squeezed(want)
		for i, s := range c.Passages[0].Sentences {
			if s = squeezed(s); s == want || strings.Contains(want, s) && len(s) > 20 || strings.Contains(s, want) && len(want) > 20 {
				out[i] = true
			}
		}
	}
	return out
}

// squeezed is the letters and digits of a text: a document is stored without the marks of
// its format, and a sentence of the set has spaces around every sign.
func squeezed(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// f1 is that of the sentences said against those wanted; strange are said beside them.
func f1(said, want map[int]bool, strange int) float64 {
	both, n := 0, strange
	for i, yes := range said {
		if yes {
			n++
			if want[i] {
				both++
			}
		}
	}
	if both == 0 {
		return 0
	}
	return 2 * float64(both) / float64(n+len(want))
}

func (s *clapSession) Score(rows []eval.Row) []eval.Metric {
	f, lead := eval.Mean("sentence F1", rows), eval.Mean("lead-2 F1", rows)
	times := eval.Metric{Name: "times lead-2", N: f.N}
	if lead.Value > 0 {
		times.Value = f.Value / lead.Value
	}
	out := []eval.Metric{f, lead, times, eval.Mean("sentences", rows), eval.Mean("sentence F1 pooled", rows)}
	out = append(out, told(rows)...)
	return append(out, risk(rows), eval.Mean(cited, rows))
}
