package answers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
)

// squadFile is the data of the suite and of the refusal scorer.
const squadFile = "qa/squad2"

func squad2() eval.Suite {
	return eval.Suite{
		Name: "squad2", Title: "SQuAD 2.0, the whole pack as one library", Files: []string{squadFile + ".jsonl.gz"},
		Licence: "CC BY-SA 4.0", Measures: "a citation holds the answer; confidence and refusal tell what has none",
		Bars: []eval.Bar{
			{Metric: "answer@1"},
			{Metric: "answer@3", AtLeast: 0.85},
			{Metric: "answerability AUROC", AtLeast: 0.75, Known: "BM25 .589; the reader was trained on this half, four articles excepted: by itself it reaches .72 on those"},
			{Metric: "answerable refused", AtMost: 0.03},
			{Metric: cited, AtLeast: 1},
		},
		Open: openSquad2,
	}
}

// squadArticle is an article of the set with the questions asked about each paragraph.
type squadArticle struct {
	Title      string `json:"title"`
	Paragraphs []struct {
		Context string          `json:"context"`
		QAs     []squadQuestion `json:"qas"`
	} `json:"paragraphs"`
}

type squadQuestion struct {
	ID         string   `json:"id"`
	Question   string   `json:"question"`
	Answers    []string `json:"answers"`
	Impossible bool     `json:"is_impossible"`
}

func (q squadQuestion) heldIn(text string) bool {
	return slices.ContainsFunc(q.Answers, func(a string) bool { return strings.Contains(text, a) })
}

// squadSession asks every question of all paragraphs, each a document under the title
// of its article.
type squadSession struct {
	lib   eval.Library
	ids   []string
	cases map[string]squadCase
}

type squadCase struct {
	squadQuestion
	article string
}

func openSquad2(ctx context.Context, env eval.Env) (eval.Session, error) {
	articles, err := eval.Rows[squadArticle](env.Data, squadFile)
	if err != nil {
		return nil, err
	}
	s := &squadSession{cases: map[string]squadCase{}}
	docs := eval.Docs{}
	for _, a := range articles {
		for i, p := range a.Paragraphs {
			docs[fmt.Sprintf("%s-%03d.md", a.Title, i)] = titled(strings.ReplaceAll(a.Title, "_", " "), p.Context)
			for _, q := range p.QAs {
				if _, twice := s.cases[q.ID]; !twice {
					s.ids = append(s.ids, q.ID)
					s.cases[q.ID] = squadCase{q, a.Title}
				}
			}
		}
	}
	s.lib, err = env.Desk.Open(ctx, "squad2", docs.FS())
	return s, err
}

func (s *squadSession) Cases() []string { return s.ids }

func (s *squadSession) Close() error { return s.lib.Close() }

func (s *squadSession) Run(ctx context.Context, id string) (eval.Row, error) {
	c := s.cases[id]
	res, err := s.lib.Ask(ctx, marchwarden.Request{Question: c.Question})
	if err != nil {
		return eval.Row{}, err
	}
	row := eval.Row{ID: id, Group: c.article, Values: common(res)}
	row.Values[answerable] = number(!c.Impossible)
	at := 0
	for i, cite := range res.Citations {
		if c.heldIn(cite.RawExcerpt) {
			at = i + 1
			break
		}
	}
	if !c.Impossible {
		row.Values["answer@1"], row.Values["answer@3"] = number(at == 1), number(at > 0 && at <= 3)
		best := 0.0
		for _, claim := range res.Claims[:min(1, len(res.Claims))] {
			for _, a := range c.Answers {
				best = max(best, overlap(claim.Text, a))
			}
		}
		row.Values["first sentence F1"] = best
	}
	if len(res.Citations) > 0 {
		row.Values[right] = number(!c.Impossible && at > 0 && at <= 3)
	}
	return row, nil
}

func (s *squadSession) Score(rows []eval.Row) []eval.Metric {
	out := []eval.Metric{eval.Mean("answer@1", rows), eval.Mean("answer@3", rows), eval.Mean("first sentence F1", rows)}
	out = append(out, told(rows)...)
	out = append(out, calibration(rows)...)
	return append(out, risk(rows), eval.Mean(cited, rows))
}
