//go:build nomodel

package bert

import "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"

// MiniLM gives ErrNoModel: the program was built without its model.
func MiniLM() (embed.Embedder, error) { return nil, ErrNoModel }

// MiniLMFiles gives ErrNoModel, too.
func MiniLMFiles() (packed []byte, words string, err error) { return nil, "", ErrNoModel }
