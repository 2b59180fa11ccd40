package retrieval

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
)

// onlyEvidence marks a measure by the documents that hold evidence alone.
const onlyEvidence = ", evidence alone"

// further are the judgements that a set may have beside its own.
var further = []string{onlyEvidence}

func scifact() eval.Suite {
	return eval.Suite{
		Name: "scifact", Title: "SciFact, the training claims over all abstracts",
		Files:   []string{"claims/scifact-corpus.jsonl.gz", "claims/scifact-train.jsonl.gz"},
		Licence: "ODC-By; CC BY 4.0", Measures: "the abstracts that a claim cites are found",
		Bars: []eval.Bar{
			{Metric: ndcg, AtLeast: .73, Known: "test claims: BM25 .686, with MiniLM .730, with gte-small .747"},
			{Metric: recall, Known: "test claims: BM25 .921"},
			{Metric: mrr, Known: "test claims: BM25 .648, with MiniLM .697"},
			{Metric: plain + ndcg, Known: "test claims: .686"},
		},
		Open: func(ctx context.Context, env eval.Env) (eval.Session, error) {
			docs, err := eval.Rows[struct {
				ID       int `json:"doc_id"`
				Title    string
				Abstract []string
			}](env.Data, "claims/scifact-corpus")
			if err != nil {
				return nil, err
			}
			claims, err := eval.Rows[claim](env.Data, "claims/scifact-train")
			if err != nil {
				return nil, err
			}
			var library []document
			for _, d := range docs {
				id := strconv.Itoa(d.ID)
				library = append(library, document{id, id + ".md", "# " + d.Title + "\n\n" + strings.Join(d.Abstract, " ") + "\n"})
			}
			var queries []query
			for _, c := range claims {
				queries = append(queries, c.query())
			}
			return open(ctx, env, "scifact", library, queries)
		},
	}
}

// claim is a claim of SciFact. The documents it cites are the relevant ones, as in
// BEIR: 919 of 809 claims. A part of them holds evidence, 564 of 505 claims; that
// measure is told beside the first.
type claim struct {
	ID       int
	Claim    string
	Cited    []int `json:"cited_doc_ids"`
	Evidence map[string]any
}

func (c claim) query() query {
	q := query{id: strconv.Itoa(c.ID), text: c.Claim, gains: map[string]float64{}}
	for _, id := range c.Cited {
		q.gains[strconv.Itoa(id)] = 1
	}
	if len(c.Evidence) > 0 {
		q.also = map[string]map[string]float64{onlyEvidence: {}}
		for id := range c.Evidence {
			q.also[onlyEvidence][id] = 1
		}
	}
	return q
}

// judged is a query of CACM or Cranfield with its judgements by document.
type judged struct {
	ID, Text string
	Qrels    map[string]float64
}

func cacm() eval.Suite {
	return eval.Suite{
		Name: "cacm", Title: "CACM, abstracts of a journal",
		Files:   []string{"retrieval/cacm-docs.jsonl.gz", "retrieval/cacm-queries.jsonl.gz"},
		Licence: "research use", Measures: "the abstracts that answer a request are found",
		Bars: []eval.Bar{
			{Metric: ndcg},
			{Metric: meanAP, AtLeast: .365, Known: "BM25 .312, with RM3 .365"},
			{Metric: plain + meanAP, Known: ".312"},
		},
		Open: openJudged("cacm"),
	}
}

func cranfield() eval.Suite {
	return eval.Suite{
		Name: "cranfield", Title: "Cranfield, abstracts of aerodynamics",
		Files:   []string{"retrieval/cranfield-docs.jsonl.gz", "retrieval/cranfield-queries.jsonl.gz"},
		Licence: "research use", Measures: "the abstracts that answer a request are found",
		Bars: []eval.Bar{{Metric: ndcg}, {Metric: meanAP}},
		Open: openJudged("cranfield"),
	}
}

// openJudged opens a set of documents and requests. A request without any relevant
// document measures nothing and is left out.
func openJudged(name string) func(context.Context, eval.Env) (eval.Session, error) {
	return func(ctx context.Context, env eval.Env) (eval.Session, error) {
		docs, err := eval.Rows[struct{ ID, Text string }](env.Data, "retrieval/"+name+"-docs")
		if err != nil {
			return nil, err
		}
		requests, err := eval.Rows[judged](env.Data, "retrieval/"+name+"-queries")
		if err != nil {
			return nil, err
		}
		byNumber := map[string]string{}
		var library []document
		for _, d := range docs {
			byNumber[unpadded(d.ID)] = d.ID
			library = append(library, document{d.ID, d.ID + ".txt", d.Text})
		}
		var queries []query
		for _, r := range requests {
			q := query{id: r.ID, text: r.Text, gains: map[string]float64{}}
			for id, gain := range r.Qrels {
				known, ok := byNumber[unpadded(id)]
				if !ok {
					return nil, fmt.Errorf("set %s: request %s names the unknown document %q", name, r.ID, id)
				}
				if gain > 0 {
					q.gains[known] = 1 // no degrees: one judgement of 1,612 is another number
				}
			}
			if len(q.gains) > 0 {
				queries = append(queries, q)
			}
		}
		return open(ctx, env, name, library, slices.Clip(queries))
	}
}

// unpadded is a document's name without the noughts before its number, which the
// judgements leave out: "CACM-0115" is "CACM-115".
func unpadded(id string) string {
	i := strings.LastIndexFunc(id, func(r rune) bool { return r < '0' || r > '9' }) + 1
	return id[:i] + strings.TrimLeft(id[i:], "0")
}
