package reader

import (
	"context"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

type encoder string

func (e encoder) ID() string { return string(e) }

func (encoder) Embed(context.Context, []string) ([]embed.Vector, error) { return nil, nil }

// What a start says of vectors decides what they are made by, if they can be.
func TestVectorsOf(t *testing.T) {
	t.Parallel()
	has := func(e embed.Embedder) func(string) embed.Embedder {
		return func(string) embed.Embedder { return e }
	}
	for name, tt := range map[string]struct {
		made embed.Embedder
		of   func(string) embed.Embedder
		code marchwarden.Code
	}{
		"without":     {nil, has(encoder("a/1")), ""},
		"the same":    {encoder("a/1"), has(encoder("a/1")), ""},
		"another":     {encoder("a/1"), has(encoder("a/2")), marchwarden.CodeUnsupported},
		"none":        {encoder("a/1"), has(nil), marchwarden.CodeUnsupported},
		"none to ask": {encoder("a/1"), nil, marchwarden.CodeUnsupported},
	} {
		start := &trace.Start{Instruments: trace.Instruments{Vectors: "left over"}}
		Describe(start, tt.made)
		e, err := VectorsOf(start, tt.of)
		if marchwarden.CodeOf(err) != tt.code || (e != nil) != (tt.made != nil && tt.code == "") {
			t.Errorf("%s: %v, %v", name, e, err)
		}
		if err != nil && (marchwarden.HintOf(err) == "" || !strings.Contains(err.Error(), "a/1")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
