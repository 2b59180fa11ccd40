// Package reader reads a question together with a passage, and a claim together with
// its evidence: whether the passage is about the question, whether it answers it and
// with which of its words, and whether the evidence entails the claim or contradicts
// it. It owns the model that comes with the program, and how texts become its input; the
// file NOTICE says where the model comes from. What follows from a reading is not its
// business.
//
// The forward pass is in embed/bert, and the tokens are those of the sentence encoder. A
// reading has the same bits on every machine and can be made again at any time.
package reader

import (
	"context"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// ID names the model and the arithmetic: a change of either that changes a bit of
// any reading changes the number behind the slash.
const ID = "reader-minilm-l6-q8/2"

// Window is how many tokens are read at a time. A longer text is read in windows
// that overlap.
const Window = 256

// MaxSpans is how many spans a reading has at most.
const MaxSpans = 3

// NoSpan is the score of a span where a passage has no words.
const NoSpan = -1e4

// Passage is a text to read: its heading path ("Manual > Fines", may be "") and its
// words.
type Passage struct{ Heading, Text string }

// Reading is what a reader says of a question and a passage. Scores are logits: above
// 0 is rather yes than no, and they may be compared within one model.
type Reading struct {
	Relevance  float64          // the passage is about what the question asks
	Answerable float64          // the passage answers the question
	SpanScore  float64          // of Span, over the score of there being no answer; else NoSpan
	Span       marchwarden.Span // the words that answer best, as bytes of Passage.Text; empty if there are none
	Spans      []Scored         // up to MaxSpans that do not overlap, best first; the first is Span
}

// Scored is a part of Passage.Text, in bytes, and its score as a whole answer.
type Scored struct {
	Span  marchwarden.Span
	Score float64
}

// Pair is a claim and what may speak for it or against it.
type Pair struct{ Evidence, Claim string }

// Relation is how evidence bears on a claim, as probabilities. They sum to 1, but
// where long evidence has one part for the claim and another against it, the first
// and the last are each those of their part.
type Relation struct{ Entailed, Neutral, Contradicted float64 }

// Reader reads. Implementations are safe for concurrent use.
type Reader interface {
	// ID names the model and its version. Two readers with the same ID give the
	// same readings.
	ID() string

	// Read gives one reading for each passage, in order. A long question is cut,
	// as is a heading; of a passage over some six thousand tokens the beginning
	// is read. It gives all readings or an error, which is ctx's own where ctx
	// ended.
	Read(ctx context.Context, question string, passages []Passage) ([]Reading, error)

	// Relate gives one relation for each pair, in order. A long claim is cut, and
	// evidence is as a passage is to Read.
	Relate(ctx context.Context, pairs []Pair) ([]Relation, error)
}
