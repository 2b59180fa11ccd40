//go:build !nomodel

package minilm

import (
	_ "embed"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
)

//go:embed minilm.q8
var weights []byte

//go:embed vocab.txt
var vocabulary string

var load = sync.OnceValues(func() (embed.Embedder, error) { return bert.Open(ID, weights, vocabulary) })

// New gives the model in the binary. It is loaded at the first call and shared by
// all; weights are read where they lie in the binary. The embedder is an embed.Pure.
// Without a model in the binary the error is ErrNoModel.
func New() (embed.Embedder, error) { return load() }

// Files gives the packed weights and the vocabulary, for a model that shares the
// tokens of this one. They must not be changed. Without a model in the binary the
// error is ErrNoModel.
func Files() (packed []byte, words string, err error) { return weights, vocabulary, nil }
