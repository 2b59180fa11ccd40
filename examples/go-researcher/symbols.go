package main

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"fmt"
	"strings"
	"time"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// file is what the rows are cited as, and what a source filter is held against.
const file = "symbols.csv"

// document is one row as text, which is what is cited and handed over.
type document struct {
	locator string
	text    string
	hash    string
	words   map[string]bool
}

// symbols is the researcher. Nothing in it changes, so calls need no lock.
type symbols struct {
	rows   []document
	byHash map[string]document
	now    func() time.Time
}

func newSymbols(table string, now func() time.Time) (*symbols, error) {
	rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the table: %w", err)
	}
	s := &symbols{byHash: map[string]document{}, now: now}
	for n, row := range rows[1:] {
		text := fmt.Sprintf("The state %s of Utah is the %s, chosen in %s.", row[0], row[1], row[2])
		d := document{
			locator: fmt.Sprintf("%s#row=%d", file, n+2), text: text,
			hash: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))), words: wordsOf(text),
		}
		s.rows, s.byHash[d.hash] = append(s.rows, d), d
	}
	return s, nil
}

// evidence hands over what was cited, byte for byte, so that readers can check it.
func (s *symbols) evidence(_ context.Context, hash string) ([]byte, error) {
	d, ok := s.byHash[hash]
	if !ok {
		return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "no row has the hash %s", hash)
	}
	return []byte(d.text), nil
}

// Research answers with the rows that say most of what is asked. The request was
// validated by the server. A call that finds nothing has a gap, not an error.
func (s *symbols) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	if req.Resume != "" {
		return nil, &marchwarden.Error{Code: marchwarden.CodeNotFound, Field: "resume", Message: "this researcher keeps no earlier runs", Hint: "ask the question again"}
	}
	started := s.now()
	if sink != nil {
		sink(marchwarden.Event{Stage: marchwarden.StageSearch, Message: fmt.Sprintf("looking through %d rows", len(s.rows))})
	}
	res := &marchwarden.Result{TraceID: serve.NewTraceID()}
	found, match := s.find(req)
	if len(found) == 0 {
		res.Gaps = append(res.Gaps, marchwarden.Gap{Topic: req.Question, Category: marchwarden.SourceNotFound, Detail: "no row of " + file + " speaks of it"})
	}
	most := req.Limits().MaxSources
	switch {
	case ctx.Err() != nil: // stopped: hand over what there is, which is nothing yet
		found = nil
		res.Gaps = []marchwarden.Gap{marchwarden.GapFor(req.Question, ctx.Err())}
	case len(found) > most:
		res.CostMetadata.BudgetExhausted = true
		res.Gaps = append(res.Gaps, marchwarden.Gap{Topic: req.Question, Category: marchwarden.BudgetExhausted,
			Detail: fmt.Sprintf("%d rows were left out: max_sources is %d", len(found)-most, most)})
		found = found[:most]
	}
	var answer []string
	for n, d := range found {
		answer = append(answer, fmt.Sprintf("%s [%d]", d.text, n+1))
		res.Citations = append(res.Citations, marchwarden.Citation{
			Source: "file", Locator: d.locator, Title: "Symbols of Utah", Confidence: 0.9,
			RawExcerpt: d.text, ContentHash: d.hash, Span: &marchwarden.Span{Start: 0, End: len(d.text)},
		})
		res.Claims = append(res.Claims, marchwarden.Claim{Text: d.text, Citations: []int{n + 1}, Support: marchwarden.Supported})
	}
	res.Answer = strings.Join(answer, " ")
	if len(found) == 0 {
		res.Answer = "Nothing was found in " + file + "."
		match = 0
	}
	// One origin, of unknown standing: a match of all words is worth 0.7.
	res.Confidence = 0.7 * match
	res.ConfidenceFactors = marchwarden.ConfidenceFactors{
		NumCorroboratingSources: min(len(found), 1), SourceAuthority: marchwarden.LowAuthority,
		QuerySpecificityMatch: match, BudgetExhausted: res.CostMetadata.BudgetExhausted,
	}
	res.CostMetadata.IterationsRun, res.CostMetadata.SourcesRead, res.CostMetadata.ModelID = 1, len(found), "none"
	res.CostMetadata.WallTimeSec = s.now().Sub(started).Seconds()
	res.Normalize()
	return res, nil
}

// find gives the rows that hold the most words of the question, if that is half of
// them or more, and which part of them it is.
func (s *symbols) find(req marchwarden.Request) (found []document, match marchwarden.Unit) {
	asked := wordsOf(req.Question)
	if len(asked) == 0 || !req.Filter().Allows(file) {
		return nil, 0
	}
	most := (len(asked) + 1) / 2
	for _, d := range s.rows {
		n := 0
		for w := range asked {
			if d.words[w] {
				n++
			}
		}
		if n > most {
			found, most = nil, n
		}
		if n == most {
			found = append(found, d)
		}
	}
	return found, marchwarden.Unit(most) / marchwarden.Unit(len(asked))
}

// idle are words that say nothing about what is asked.
var idle = wordsIn("a an and are as at by did do does for from how in is it its of on or the to was were what when where which who why with")

// wordsOf are the words of a text that say something, in lower case.
func wordsOf(text string) map[string]bool {
	words := wordsIn(text)
	for w := range idle {
		delete(words, w)
	}
	return words
}

func wordsIn(text string) map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		words[w] = true
	}
	return words
}
