//go:build !nomodel

package reader

import (
	_ "embed"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
)

//go:embed reader.q8
var weights []byte

var load = sync.OnceValues(func() (Reader, error) {
	embedder, vocabulary, err := bert.MiniLMFiles()
	if err != nil {
		return nil, err
	}
	net, err := bert.OpenCross(weights, embedder, vocabulary)
	if err != nil {
		return nil, err
	}
	if net.Window() != Window {
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "the reader's weights are for %d tokens at a time, not %d", net.Window(), Window)
	}
	return &model{net}, nil
})

// New gives the model in the binary. It is loaded at the first call and shared by
// all; weights are read where they lie in the binary. Without a model in the binary
// the error is ErrNoModel.
func New() (Reader, error) { return load() }
