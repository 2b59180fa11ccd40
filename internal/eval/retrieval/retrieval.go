// Package retrieval measures whether the documents that people judged to be relevant
// are found first. It owns three suites, SciFact, CACM and Cranfield. It does not rank:
// every query goes through the engine that a user's library is searched by, one document
// a file, and through the textbook's, which stands beside ours in the same run.
package retrieval

import (
	"context"
	"fmt"
	"path"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/metric"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// depth is how many documents are asked for. What is not among them counts as never
// found.
const depth = 100

// The metrics. Those of the plain ranking have its name before them.
const (
	ndcg   = "nDCG@10"
	meanAP = "MAP"
	recall = "recall@100"
	mrr    = "MRR@10"
	plain  = "BM25 "
)

// Suites are the suites of this package.
func Suites() []eval.Suite { return []eval.Suite{scifact(), cacm(), cranfield()} }

// document is one document of a set, as a file of a library.
type document struct{ id, file, text string }

// query is a query and what of the set answers it.
type query struct {
	id, text string
	gains    map[string]float64            // by document, above 0
	also     map[string]map[string]float64 // further judgements, by name
}

// session asks the queries of one set.
type session struct {
	lib     eval.Library
	byFile  map[string]string // document by file name
	queries map[string]query
	ids     []string
	plain   *metric.BM25 // over the stems of whole documents, without stop words
	docs    []string     // as the plain ranking numbers them
}

// open indexes a set, for the engine and for the plain ranking.
func open(ctx context.Context, env eval.Env, name string, docs []document, queries []query) (eval.Session, error) {
	s := &session{byFile: map[string]string{}, queries: map[string]query{}}
	files := eval.Docs{}
	var texts []string
	for _, d := range docs {
		s.byFile[d.file] = d.id
		files[d.file] = d.text
		s.docs, texts = append(s.docs, d.id), append(texts, d.text)
	}
	s.plain = metric.NewBM25(texts, lexicon.Terms)
	for _, q := range queries {
		if _, twice := s.queries[q.id]; twice {
			return nil, fmt.Errorf("set %s has two queries %q", name, q.id)
		}
		s.queries[q.id] = q
		s.ids = append(s.ids, q.id)
	}
	var err error
	s.lib, err = env.Desk.Open(ctx, name, files.FS())
	return s, err
}

// Cases are the queries.
func (s *session) Cases() []string { return s.ids }

// Close frees the library.
func (s *session) Close() error { return s.lib.Close() }

// Run ranks for one query, by the engine and by the plain ranking.
func (s *session) Run(ctx context.Context, id string) (eval.Row, error) {
	q := s.queries[id]
	hits, err := s.lib.Engine().Search(ctx, search.Query{Text: q.text, Limit: depth})
	if err != nil {
		return eval.Row{}, err
	}
	ours := make([]string, len(hits))
	for i, h := range hits {
		_, file, _ := strings.Cut(h.Locator, ":")
		ours[i] = s.byFile[path.Base(file)]
	}
	row := eval.Row{ID: id, Values: map[string]float64{}}
	measure(row.Values, "", ours, q.gains)
	var theirs []string
	for _, at := range s.plain.Rank(q.text, depth) {
		theirs = append(theirs, s.docs[at])
	}
	measure(row.Values, plain, theirs, q.gains)
	for name, gains := range q.also {
		row.Values[ndcg+name] = metric.NDCG(ours, gains, 10)
	}
	return row, nil
}

// Score averages over the queries.
func (s *session) Score(rows []eval.Row) []eval.Metric {
	var out []eval.Metric
	for _, before := range []string{"", plain} {
		for _, name := range []string{ndcg, meanAP, recall, mrr} {
			out = append(out, eval.Mean(before+name, rows))
		}
	}
	for _, name := range further {
		if m := eval.Mean(ndcg+name, rows); m.N > 0 {
			out = append(out, m)
		}
	}
	return out
}

// measure writes the measures of one ranking.
func measure(values map[string]float64, before string, ranked []string, gains map[string]float64) {
	relevant := map[string]bool{}
	for id, gain := range gains {
		relevant[id] = gain > 0
	}
	values[before+ndcg] = metric.NDCG(ranked, gains, 10)
	values[before+meanAP] = metric.AveragePrecision(ranked, relevant)
	values[before+recall] = metric.RecallAt(ranked, relevant, depth)
	values[before+mrr] = 0
	for i, id := range ranked[:min(10, len(ranked))] {
		if relevant[id] {
			values[before+mrr] = 1 / float64(i+1)
			break
		}
	}
}
