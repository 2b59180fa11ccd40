package marchwarden

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// Result is the output of one research call. Slices are never nil in a result
// that leaves a researcher: an empty list is [] on the wire.
type Result struct {
	// Answer is Markdown; every factual sentence carries markers [1], [2]… that
	// index Citations, counted from one.
	Answer            string            `json:"answer"`
	Citations         []Citation        `json:"citations"`
	Gaps              []Gap             `json:"gaps"`
	DiscoveryEvents   []DiscoveryEvent  `json:"discovery_events"`
	OpenQuestions     []OpenQuestion    `json:"open_questions"`
	Confidence        Unit              `json:"confidence"`
	ConfidenceFactors ConfidenceFactors `json:"confidence_factors"`
	CostMetadata      CostMetadata      `json:"cost_metadata"`
	TraceID           TraceID           `json:"trace_id"`

	// ShortAnswer is the answer in a few words, if there is one, or that there is none.
	ShortAnswer *ShortAnswer `json:"short_answer,omitempty"`
	// Closest are, with a refusal, the passages nearest to the question.
	Closest []Closest `json:"closest,omitempty"`
	// Blocks are the answer as typed parts, of which Answer is the Markdown.
	Blocks []Block `json:"blocks,omitempty"`
	// Claims links each sentence of the answer to its evidence and verdict.
	Claims []Claim `json:"claims,omitempty"`
	// Rihlas are the journeys of a principal investigator's run.
	Rihlas []Rihla `json:"rihlas,omitempty"`
	// Decisions are what a principal investigator did about the gaps, discoveries
	// and open questions that were reported to it, and what it left alone.
	Decisions []Decision `json:"decisions,omitempty"`
	// Contradictions are pairs of excerpts that cannot both hold.
	Contradictions []Contradiction `json:"contradictions,omitempty"`
	// Warnings are what a person must know who keeps the result, such as that its
	// evidence could not be stored. They say nothing about the question.
	Warnings []string `json:"warnings,omitempty"`
	// CheckedAt is when the cited sources were last fetched again, after the run. The
	// stored result has none: it is added when a result is handed on later.
	CheckedAt *time.Time `json:"checked_at,omitempty"`
	// Follows is the run whose conversation this one continues, and CompletedQuestion
	// the question as it was understood from it.
	Follows           TraceID `json:"follows,omitzero"`
	CompletedQuestion string  `json:"completed_question,omitempty"`
}

// Normalize makes nil lists empty, so that the wire form has [] and never null.
func (r *Result) Normalize() {
	empty(&r.Citations)
	empty(&r.Gaps)
	empty(&r.DiscoveryEvents)
	empty(&r.OpenQuestions)
	r.Claims = cited(r.Claims)
	r.Blocks = slices.Clone(r.Blocks)
	for i := range r.Blocks {
		r.Blocks[i].Claims, r.Blocks[i].Items = cited(r.Blocks[i].Claims), cited(r.Blocks[i].Items)
	}
}

// cited is a copy of claims whose lists of citations are not nil.
func cited(claims []Claim) []Claim {
	claims = slices.Clone(claims)
	for i := range claims {
		empty(&claims[i].Citations)
	}
	return claims
}

func empty[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

// Unit is a number from 0 to 1.
type Unit float64

// CostMetadata is what a call consumed.
type CostMetadata struct {
	TokensUsed      int     `json:"tokens_used"` // the truth, over the budget or not
	IterationsRun   int     `json:"iterations_run"`
	WallTimeSec     float64 `json:"wall_time_sec"`
	BudgetExhausted bool    `json:"budget_exhausted"`
	ModelID         string  `json:"model_id"`
	// ReasonerID is who wrote the answer, where that was not the model asked for.
	ReasonerID string `json:"reasoner_id,omitempty"`
	// SourcesRead is how many documents were read; 0 is unknown or none.
	SourcesRead int `json:"sources_read,omitempty"`
	// OverBudget says that more tokens were used than the budget had: a provider
	// counted more than was set aside for a call.
	OverBudget bool `json:"over_budget,omitempty"`
	// CostUSD is what the models cost, in US dollars; nil where a price is unknown.
	CostUSD *float64 `json:"cost_usd,omitempty"`
}

// EncodeResult is the wire form of a result: one line of JSON, text as it is
// (nothing is escaped for HTML), nil lists as []. Equal results have equal bytes.
// r is not changed.
func EncodeResult(r *Result) ([]byte, error) {
	if r == nil {
		return nil, Errorf(CodeInternal, "encode the result: there is none")
	}
	normal := *r
	normal.Normalize()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&normal); err != nil {
		return nil, Wrap(err, CodeInternal, "encode the result")
	}
	return buf.Bytes(), nil
}

// DecodeResult reads a result from its wire form. Unknown fields are ignored,
// null and missing lists are empty. Whether its values keep the contract's bounds
// is for ResultSchema to say, and whether its citations stand for a verifier.
func DecodeResult(data []byte) (*Result, error) {
	var r Result
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return nil, Errorf(CodeInvalid, "read the result: it is not a JSON object")
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, Wrap(err, CodeInvalid, "read the result")
	}
	r.Normalize()
	return &r, nil
}
