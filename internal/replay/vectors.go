package replay

import (
	"context"
	"encoding/binary"
	"math"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Embedded is what an embedder gave, and the tokens that it was charged for.
type Embedded struct {
	Vectors []embed.Vector
	Tokens  int
}

// packed is the stored form: the numbers of all vectors one after the other, four
// bytes each, the lowest first.
type packed struct {
	Texts   int    `json:"texts,omitempty"`
	Numbers []byte `json:"numbers,omitempty"`
	Tokens  int    `json:"tokens,omitempty"`
}

func pack(e Embedded) packed {
	p := packed{Texts: len(e.Vectors), Tokens: e.Tokens}
	for _, v := range e.Vectors {
		for _, x := range v {
			p.Numbers = binary.LittleEndian.AppendUint32(p.Numbers, math.Float32bits(x))
		}
	}
	return p
}

func (p packed) unpack(texts int) (Embedded, error) {
	e := Embedded{Tokens: p.Tokens}
	if p.Texts == 0 {
		return e, nil
	}
	each := len(p.Numbers) / 4 / p.Texts
	if p.Texts != texts || each == 0 || len(p.Numbers) != 4*each*p.Texts {
		return e, journalError(marchwarden.CodeCorrupt, nil, "read recorded vectors: %d bytes for %d texts", len(p.Numbers), texts)
	}
	for range p.Texts {
		v := make(embed.Vector, each)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(p.Numbers[4*i:]))
		}
		e.Vectors, p.Numbers = append(e.Vectors, v), p.Numbers[4*each:]
	}
	return e, nil
}

// Embed records that texts were embedded, by run, with the model of an id. What it
// gave in spite of an error is the tokens alone.
func Embed(ctx context.Context, j Journal, id string, texts []string, run func(context.Context) (Embedded, error)) (Embedded, error) {
	p, err := do(ctx, j, Effect{
		Kind: trace.ActionEmbedComplete,
		Input: struct {
			Model string
			Texts []string
		}{id, texts},
		Begin: &trace.Embed{Head: head("ask %s for the vectors of %d texts", id, len(texts)), Model: id, Texts: len(texts)},
		Done: func(out []byte, err error) trace.Recorded {
			p := read[packed](out)
			return &trace.EmbedComplete{Head: outcomeHead(err, "%d vectors for %d tokens", p.Texts, p.Tokens), Model: id, Texts: len(texts), TokensIn: p.Tokens}
		},
	}, func(ctx context.Context) (packed, error) {
		e, err := run(ctx)
		if err != nil {
			e.Vectors = nil
		}
		return pack(e), err
	})
	if err != nil {
		return Embedded{Tokens: p.Tokens}, err
	}
	return p.unpack(len(texts))
}

// SearchVectors records what vectors a search has had made by the model of an id: the
// tokens that were charged, and why they failed if they did. The vectors themselves
// are in its hits.
func SearchVectors(ctx context.Context, j Journal, id, engine string, q search.Query, spent func() (int, error)) (int, error) {
	p, err := do(ctx, j, Effect{
		Kind: trace.ActionEmbedComplete,
		Input: struct {
			Model, Engine, Query string
			Limit                int
			Filter, Since, Until string
		}{id, engine, q.Text, q.Limit, q.Filter.String(), q.Since, q.Until},
		Done: func(out []byte, err error) trace.Recorded {
			p := read[packed](out)
			return &trace.EmbedComplete{Head: outcomeHead(err, "vectors for %q took %d tokens", q.Text, p.Tokens), Model: id, Query: q.Text, TokensIn: p.Tokens}
		},
	}, func(context.Context) (packed, error) {
		tokens, err := spent()
		return packed{Tokens: tokens}, err
	})
	return p.Tokens, err
}
