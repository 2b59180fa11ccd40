package bert

import (
	_ "embed"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
)

//go:embed minilm.q8
var packed []byte

//go:embed vocab.txt
var vocabulary string

var load = sync.OnceValue(func() embed.Embedder { return Open(MiniLMID, packed, vocabulary) })

// MiniLM is the sentence encoder that comes with the program: all-MiniLM-L6-v2, 384
// dimensions, English. NOTICE says where it comes from. It is loaded at the first call and
// shared by all; weights are read where they lie in the binary.
func MiniLM() embed.Embedder { return load() }

// MiniLMFiles are the packed weights and the vocabulary, for a model that shares the
// tokens of this one. They must not be changed.
func MiniLMFiles() (weights []byte, words string) { return packed, vocabulary }
