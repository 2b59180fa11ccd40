//go:build !nomodel

package bert

import (
	_ "embed"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
)

//go:embed minilm.q8
var weights []byte

//go:embed vocab.txt
var vocabulary string

var load = sync.OnceValues(func() (embed.Embedder, error) { return Open(MiniLMID, weights, vocabulary) })

// MiniLM gives the sentence encoder that comes with the program: all-MiniLM-L6-v2, 384
// dimensions, English. NOTICE says where it comes from. It is loaded at the first call and
// shared by all; weights are read where they lie in the binary.
func MiniLM() (embed.Embedder, error) { return load() }

// MiniLMFiles gives the packed weights and the vocabulary, for a model that shares the
// tokens of this one. They must not be changed.
func MiniLMFiles() (packed []byte, words string, err error) { return weights, vocabulary, nil }
