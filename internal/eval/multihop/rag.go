package multihop

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/metric"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// The metrics of multihop-rag: the share of the facts that a question needs whose
// article is among the first hits, the share of the questions with all of theirs there,
// and how well the confidence of an answer tells the questions that have an answer
// from those that have none.
const (
	hits10  = "facts in 10 hits"
	hits4   = "facts in 4 hits"
	allHits = "all facts in 10 hits"
	refusal = "AUROC of refusal"
)

func rag() eval.Suite {
	return eval.Suite{
		Name: "multihop-rag", Title: "MultiHop-RAG, the facts of each article as a document",
		Files: []string{"multidoc/multihop-rag.jsonl.gz"}, Licence: "ODC-BY",
		Measures: "facts found by one search, refusal of questions without an answer",
		Bars: []eval.Bar{
			{Metric: hits10, Known: "published over whole articles: .747"},
			{Metric: refusal},
		},
		Open: openRAG,
	}
}

type ragRow struct {
	Question string
	Type     string `json:"question_type"`
	Evidence []struct {
		Fact, Title, Source string
		Published           string `json:"published_at"`
	} `json:"evidence_list"`
	Answer string
}

type ragSession struct {
	rows  []ragRow
	files map[string]string // by title
	lib   eval.Library
}

// openRAG makes a library of what the set has of the articles: their titles, where and
// when they were published, and the facts.
func openRAG(ctx context.Context, env eval.Env) (eval.Session, error) {
	rows, err := eval.Rows[ragRow](env.Data, "multidoc/multihop-rag")
	if err != nil {
		return nil, err
	}
	s := &ragSession{rows: rows, files: map[string]string{}}
	facts := map[string][]string{}
	var titles []string
	for _, r := range rows {
		for _, e := range r.Evidence {
			if _, ok := facts[e.Title]; !ok {
				titles = append(titles, e.Title)
				facts[e.Title] = []string{strings.TrimSuffix(fmt.Sprintf("%s, %.10s", e.Source, e.Published), ", ") + "."}
			}
			if !slices.Contains(facts[e.Title], e.Fact) {
				facts[e.Title] = append(facts[e.Title], e.Fact)
			}
		}
	}
	docs := eval.Docs{}
	for i, t := range titles {
		s.files[t] = fmt.Sprintf("%03d.md", i)
		docs[s.files[t]] = page(t, strings.Join(facts[t], "\n\n"))
	}
	s.lib, err = env.Desk.Open(ctx, "articles", docs.FS())
	return s, err
}

// Cases are the questions by their numbers.
func (s *ragSession) Cases() []string {
	out := make([]string, len(s.rows))
	for i := range out {
		out[i] = strconv.Itoa(i)
	}
	return out
}

// Run searches for one question and asks it.
func (s *ragSession) Run(ctx context.Context, id string) (eval.Row, error) {
	i, err := strconv.Atoi(id)
	if err != nil || i < 0 || i >= len(s.rows) {
		return eval.Row{}, fmt.Errorf("there is no case %q", id)
	}
	r := s.rows[i]
	res, err := s.lib.Ask(ctx, marchwarden.Request{Question: within(r.Question)})
	if err != nil {
		return eval.Row{}, err
	}
	out := eval.Row{ID: id, Group: r.Type, Values: map[string]float64{"confidence": float64(res.Confidence), "answerable": 0}}
	if len(r.Evidence) == 0 {
		if len(res.Citations) > 0 {
			out.Values["right"] = 0
		}
		return out, nil
	}
	out.Values["answerable"] = 1
	hits, err := s.lib.Engine().Search(ctx, search.Query{Text: r.Question, Limit: 10})
	if err != nil {
		return eval.Row{}, err
	}
	found := func(k int) (n float64) {
		for _, e := range r.Evidence {
			if slices.ContainsFunc(hits[:min(k, len(hits))], func(h search.Hit) bool { return fileOf(h.Locator) == s.files[e.Title] }) {
				n++
			}
		}
		return n / float64(len(r.Evidence))
	}
	out.Values[hits10], out.Values[hits4] = found(10), found(4)
	out.Values[allHits] = float64(int(found(10)))
	return out, nil
}

// within is a question of the length that can be asked, cut at a word.
func within(q string) string {
	runes := []rune(q)
	if len(runes) <= marchwarden.MaxQuestionChars {
		return q
	}
	q = string(runes[:marchwarden.MaxQuestionChars])
	return q[:max(0, strings.LastIndexByte(q, ' '))]
}

// Score is the means, and the area over both kinds of questions.
func (s *ragSession) Score(rows []eval.Row) []eval.Metric {
	var with, without []float64
	for _, r := range rows {
		if r.Values["answerable"] > 0 {
			with = append(with, r.Values["confidence"])
		} else {
			without = append(without, r.Values["confidence"])
		}
	}
	out := []eval.Metric{eval.Mean(hits10, rows), eval.Mean(hits4, rows), eval.Mean(allHits, rows)}
	if len(with) > 0 && len(without) > 0 {
		out = append(out, eval.Metric{Name: refusal, Value: metric.AUROC(with, without), N: len(rows)})
	}
	return out
}

// Close frees the index.
func (s *ragSession) Close() error { return s.lib.Close() }
