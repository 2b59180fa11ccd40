//go:build nomodel

package minilm

import "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"

// New gives ErrNoModel: the program was built without its model.
func New() (embed.Embedder, error) { return nil, ErrNoModel }

// Files gives ErrNoModel, too.
func Files() (packed []byte, words string, err error) { return nil, "", ErrNoModel }
