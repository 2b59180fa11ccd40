package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// shop is a researcher as small as one can be: it has one document and cites the
// lines of it that share a longer word with the question. A complete one, with
// budgets and a filter, is in examples/go-researcher.
type shop struct{ document, hash string }

func newShop() *shop {
	const document = `Seeds of rabbitbrush grow in dry soil in Utah and are sown in October.
Seeds of Rocky Mountain beeplant grow in Utah without watering once they are up.
Serviceberry is sold as a young shrub and fruits in Utah in its third year.
`
	return &shop{document, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(document)))}
}

// evidence hands over the document, so that the investigator can check excerpts.
func (s *shop) evidence(_ context.Context, hash string) ([]byte, error) {
	if hash != s.hash {
		return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "the shop has one document, and not %s", hash)
	}
	return []byte(s.document), nil
}

// Research cites what fits.
func (s *shop) Research(_ context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
	res := &marchwarden.Result{TraceID: serve.NewTraceID()}
	res.ConfidenceFactors.SourceAuthority = marchwarden.LowAuthority
	res.CostMetadata = marchwarden.CostMetadata{IterationsRun: 1, ModelID: "none", SourcesRead: 1}
	start := 0
	for line := range strings.Lines(s.document) {
		end := start + len(strings.TrimSuffix(line, "\n"))
		if excerpt := s.document[start:end]; fits(excerpt, req.Question) {
			res.Citations = append(res.Citations, marchwarden.Citation{
				Source: "file", Locator: "shop/seeds.txt", Title: "Seed list of the shop", RawExcerpt: excerpt, Confidence: 0.8,
				ContentHash: s.hash, Span: &marchwarden.Span{Start: start, End: end},
			})
			res.Answer += fmt.Sprintf("%s [%d] ", excerpt, len(res.Citations))
		}
		start += len(line)
	}
	if len(res.Citations) == 0 {
		res.Answer = "The shop has nothing on it."
		res.Gaps = []marchwarden.Gap{{Topic: req.Question, Category: marchwarden.SourceNotFound, Detail: "no line of the seed list speaks of it"}}
	} else {
		res.Confidence, res.ConfidenceFactors.NumCorroboratingSources = 0.6, 1
	}
	res.Normalize()
	return res, nil
}

func fits(line, question string) bool {
	for _, word := range strings.Fields(strings.ToLower(strings.Trim(question, "?"))) {
		if len(word) > 3 && word != "what" && strings.Contains(strings.ToLower(line), word) {
			return true
		}
	}
	return false
}
