// Package answerable tells how far the best sentence that was found for a question
// answers it, by features that people can name and weights that a command fits. It
// owns the features, the words that turn an answer into none (opposites, others of a
// kind) and the weights. It finds no sentence and writes nothing.
//
// The weights are in weights.json, which says what fitted them, on what and when. Two
// models stand there, one for evidence with vectors and one without; each is a straight
// line and a sum of shallow trees, whose log-odds are averaged: the line says what
// generally speaks for an answer, the trees where that depends on something else.
package answerable

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/question"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
)

// Sentence is a sentence of the evidence and how well it holds each term of the
// question, 0 to 1.
type Sentence struct {
	Text   string
	Tokens []lexicon.Token
	Held   []float64
}

// Evidence is a question before the sentence that answers it best, with what stands
// around that sentence. Slices that go by terms follow Question.Terms.
type Evidence struct {
	Question *question.Question
	Best     Sentence
	// Beside are the sentences before and after it in its paragraph, as far as there
	// are; Paragraph is all of the paragraph that was read.
	Beside, Paragraph []Sentence
	// Above is what its title and heading hold.
	Above []float64
	// Rarity is how much hangs on each term.
	Rarity []float64
	// Type is how far the sentence has the kind of thing that is asked for.
	Type float64
	// Cosines are those of the question's vector with the sentences read, the best
	// one's first; empty without vectors.
	Cosines []float64
}

// Model is a line and trees over the same features.
type Model struct {
	Line  *stat.Logistic `json:"line"`
	Trees *stat.Trees    `json:"trees"`
}

// Weights are the committed models.
type Weights struct {
	Made    string `json:"made"`
	Command string `json:"command"`
	Data    string `json:"data"`
	Words   Model  `json:"words"`   // without vectors
	Vectors Model  `json:"vectors"` // with them
}

//go:embed weights.json
var committed []byte

// shipped are the weights in the binary, read when they are first asked for.
var shipped = sync.OnceValue(func() *Weights {
	w, err := Parse(committed)
	if err != nil {
		panic(err) // the binary was built with a file that TestParseRefuses does not take
	}
	return w
})

// Parse reads weights as they are committed. It refuses what does not fit the
// features.
func Parse(b []byte) (*Weights, error) {
	var raw struct {
		Made, Command, Data string
		Words, Vectors      struct{ Line, Trees json.RawMessage }
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, fmt.Errorf("read weights of answerable: %w", err)
	}
	w := &Weights{Made: raw.Made, Command: raw.Command, Data: raw.Data}
	for _, m := range []struct {
		into        *Model
		line, trees json.RawMessage
		names       []string
	}{{&w.Words, raw.Words.Line, raw.Words.Trees, Names(false)}, {&w.Vectors, raw.Vectors.Line, raw.Vectors.Trees, Names(true)}} {
		var err error
		if m.into.Line, err = stat.ParseLogistic(m.line); err != nil {
			return nil, err
		}
		if m.into.Trees, err = stat.ParseTrees(m.trees); err != nil {
			return nil, err
		}
		if !slices.Equal(m.into.Trees.Names, m.names) || !slices.EqualFunc(m.into.Line.Features, m.names, func(f stat.Feature, n string) bool { return f.Name == n }) {
			return nil, fmt.Errorf("read weights of answerable: they are for other features")
		}
	}
	return w, nil
}

// Odds are the log-odds that the model gives a row of features.
func (m Model) Odds(row []float64) float64 {
	return (logit(m.Line.Score(row)) + logit(m.Trees.Score(row))) / 2
}

func logit(p float64) float64 {
	p = max(1e-6, min(1-1e-6, p))
	return math.Log(p / (1 - p))
}

// Odds are the log-odds that the evidence answers the question, among questions half
// of which were written to look as if it did.
func (e *Evidence) Odds() float64 {
	if len(e.Cosines) > 0 {
		return shipped().Vectors.Odds(e.Features())
	}
	return shipped().Words.Odds(e.Features())
}

// watchKey is the key of a watcher in a context.
type watchKey struct{}

// Watch is a context under which the evidence of every draft is shown to see: the fit
// of the weights learns from what a mind meets.
func Watch(ctx context.Context, see func(*Evidence)) context.Context {
	return context.WithValue(ctx, watchKey{}, see)
}

// Show shows evidence to the watcher of ctx, if there is one.
func Show(ctx context.Context, e *Evidence) {
	if see, ok := ctx.Value(watchKey{}).(func(*Evidence)); ok {
		see(e)
	}
}
