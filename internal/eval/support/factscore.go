package support

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// factSuite measures how answers are split into claims, against facts that people
// wrote down sentence by sentence.
func factSuite() eval.Suite {
	return eval.Suite{
		Name: "factscore", Title: "FActScore: biographies split into claims, against facts that people split them into",
		Files: []string{"citations/factscore-ChatGPT.jsonl.gz", "citations/factscore-InstructGPT.jsonl.gz"}, Licence: "MIT",
		Measures: "splitting answers into claims: sentences found exactly, facts within one sentence",
		Bars:     []eval.Bar{{Metric: "sentences_exact"}, {Metric: "fact_in_sentence"}},
		Open: func(_ context.Context, env eval.Env) (eval.Session, error) {
			s := &facts{answers: map[string]biography{}}
			for _, who := range []string{"ChatGPT", "InstructGPT"} {
				rows, err := eval.Rows[biography](env.Data, "citations/factscore-"+who)
				if err != nil {
					return nil, err
				}
				for i, r := range rows {
					id := who + "-" + strconv.Itoa(i)
					s.ids = append(s.ids, id)
					s.answers[id] = r
				}
			}
			return s, nil
		},
	}
}

// biography is an answer and what people made of its sentences.
type biography struct {
	Output      string `json:"output"`
	Annotations []struct {
		Text  string `json:"text"`
		Facts []struct {
			Text string `json:"text"`
		} `json:"human-atomic-facts"`
	} `json:"annotations"`
}

type facts struct {
	ids     []string
	answers map[string]biography
}

func (s *facts) Cases() []string                  { return s.ids }
func (s *facts) Close() error                     { return nil }
func (s *facts) Score(r []eval.Row) []eval.Metric { return factMetrics(r) }

// heldShare is how much of a fact's words a piece of text must hold to state it.
const heldShare = 0.8

// Run splits one answer.
func (s *facts) Run(_ context.Context, id string) (eval.Row, error) {
	b, ok := s.answers[id]
	if !ok {
		return eval.Row{}, marchwarden.Errorf(marchwarden.CodeNotFound, "no case %q", id)
	}
	exact := map[string]bool{}
	var whole []map[string]bool
	for _, sp := range lexicon.Sentences(b.Output) {
		text := b.Output[sp.Start:sp.End]
		exact[strings.TrimSpace(text)] = true
		whole = append(whole, stems(text))
	}
	v := map[string]float64{}
	for _, a := range b.Annotations {
		if len(a.Facts) == 0 {
			continue
		}
		v["sentences"]++
		if exact[strings.TrimSpace(a.Text)] {
			v["sentences_found"]++
		}
		spoken := stems(a.Text)
		for _, f := range a.Facts {
			said := stems(f.Text)
			for w := range said { // what a fact names that its sentence does not, it takes from elsewhere
				if !spoken[w] {
					delete(said, w)
				}
			}
			v["facts"]++
			v["in_sentence"] += held(said, whole)
		}
	}
	return eval.Row{ID: id, Group: id, Values: v, Note: fmt.Sprintf("%.0f facts", v["facts"])}, nil
}

// held is 1 if one of the pieces holds enough of the words.
func held(words map[string]bool, pieces []map[string]bool) float64 {
	for _, p := range pieces {
		n := 0
		for w := range words {
			if p[w] {
				n++
			}
		}
		if float64(n) >= heldShare*float64(len(words)) {
			return 1
		}
	}
	return 0
}

func stems(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range lexicon.Terms(s) {
		m[w] = true
	}
	return m
}

func factMetrics(rows []eval.Row) []eval.Metric {
	sum := map[string]float64{}
	for _, name := range []string{"sentences", "sentences_found", "facts", "in_sentence"} {
		for _, r := range rows {
			sum[name] += r.Values[name] // whole numbers: the order is of no matter
		}
	}
	over := func(name, part, all string) eval.Metric {
		return eval.Metric{Name: name, Value: sum[part] / max(1, sum[all]), N: int(sum[all])}
	}
	return []eval.Metric{over("sentences_exact", "sentences_found", "sentences"), over("fact_in_sentence", "in_sentence", "facts")}
}
