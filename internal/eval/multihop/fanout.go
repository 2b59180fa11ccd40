package multihop

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi/derive"
)

// The metrics of fanoutqa, all of the first plan, before anything is known: the share of
// the sub-questions that people wrote of which a planned question, the whole one aside,
// has half of the words, or means nearly the same by its vector; the same for the first
// level of the tree alone that hangs on nothing else; and of the names that those
// sub-questions have and the question has too, how many stand in a planned one.
const (
	byWords   = "sub-questions planned, by words"
	openWords = "independent sub-questions planned, by words"
	byVector  = "sub-questions planned, by meaning"
	entities  = "names of the question planned"
	plannedN  = "questions planned"
)

const (
	wordsFloor  = 0.5 // of the words of a sub-question
	vectorFloor = 0.8 // cosine
)

func fanout() eval.Suite {
	return eval.Suite{
		Name: "fanoutqa", Title: "FanOutQA, the plan without a model against the written decomposition",
		Files: []string{"multidoc/fanoutqa.jsonl.gz"}, Licence: "MIT",
		Measures: "sub-questions that are planned before anything is read",
		Open:     openFanout,
	}
}

// part is a sub-question, as deep as the tree goes.
type part struct {
	Question string
	Needs    []string `json:"depends_on"`
	Parts    []part   `json:"decomposition"`
}

type fanSession struct {
	rows  []part
	embed embed.Embedder
	env   eval.Env
}

func openFanout(_ context.Context, env eval.Env) (eval.Session, error) {
	rows, err := eval.Rows[part](env.Data, "multidoc/fanoutqa")
	return &fanSession{rows, env.Embed, env}, err
}

// Cases are the questions by their numbers.
func (s *fanSession) Cases() []string {
	out := make([]string, len(s.rows))
	for i := range out {
		out[i] = strconv.Itoa(i)
	}
	return out
}

// leaves are all sub-questions below.
func (p part) leaves() []part {
	var out []part
	for _, q := range p.Parts {
		out = append(append(out, q), q.leaves()...)
	}
	return out
}

// Run plans for one question.
func (s *fanSession) Run(ctx context.Context, id string) (eval.Row, error) {
	i, err := strconv.Atoi(id)
	if err != nil || i < 0 || i >= len(s.rows) {
		return eval.Row{}, fmt.Errorf("there is no case %q", id)
	}
	r := s.rows[i]
	req := marchwarden.Request{Question: r.Question, Depth: marchwarden.Deep}
	sent, err := derive.New().Plan(ctx, &pi.Brief{
		Request: req, Limits: req.Limits(), Now: s.env.Now, Most: 24,
		Members: []dispatch.Member{{Name: "files", Scope: "documents of an encyclopedia"}},
	})
	if err != nil {
		return eval.Row{}, err
	}
	var planned []string
	for _, p := range sent {
		if p.Question != r.Question {
			planned = append(planned, p.Question)
		}
	}
	out := eval.Row{ID: id, Values: map[string]float64{plannedN: float64(len(planned))}}
	return out, s.judge(ctx, r, planned, out.Values)
}

func (s *fanSession) judge(ctx context.Context, r part, planned []string, values map[string]float64) error {
	gold := r.leaves()
	words, open, opened, names, named := 0.0, 0.0, 0.0, 0.0, 0.0
	for _, g := range gold {
		hit := slices.ContainsFunc(planned, func(p string) bool { return overlap(g.Question, p) >= wordsFloor })
		words += number(hit)
		if len(g.Needs) == 0 {
			opened++
			open += number(hit)
		}
	}
	for _, n := range lexicon.Names(r.Question) {
		if slices.ContainsFunc(gold, func(g part) bool { return overlap(n, g.Question) == 1 }) {
			names++
			named += number(slices.ContainsFunc(planned, func(p string) bool { return overlap(n, p) == 1 }))
		}
	}
	values[byWords] = words / float64(max(1, len(gold)))
	if opened > 0 {
		values[openWords] = open / opened
	}
	if names > 0 {
		values[entities] = named / names
	}
	if s.embed == nil {
		return nil
	}
	texts := slices.Clone(planned)
	for _, g := range gold {
		texts = append(texts, g.Question)
	}
	vs, err := s.embed.Embed(ctx, texts)
	if err != nil {
		return err
	}
	near := 0.0
	for _, g := range vs[len(planned):] {
		near += number(slices.ContainsFunc(vs[:len(planned)], func(p embed.Vector) bool { return p.Dot(g) >= vectorFloor }))
	}
	values[byVector] = near / float64(max(1, len(gold)))
	return nil
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// overlap is the share of a's words that b has.
func overlap(a, b string) float64 {
	x, y := lexicon.Terms(a), lexicon.Terms(b)
	n := 0
	for _, w := range x {
		if slices.Contains(y, w) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(x)))
}

// Score is the means.
func (s *fanSession) Score(rows []eval.Row) []eval.Metric {
	out := []eval.Metric{eval.Mean(byWords, rows), eval.Mean(openWords, rows), eval.Mean(entities, rows), eval.Mean(plannedN, rows)}
	if m := eval.Mean(byVector, rows); m.N > 0 {
		out = append(out, m)
	}
	return out
}

// Close frees nothing.
func (s *fanSession) Close() error { return nil }
