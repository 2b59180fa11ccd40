package reader

import (
	"context"
	"encoding/binary"
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
)

// Cached is r with a store in front of it: what was read once is not read again, and
// what stands twice in a call is read once, too. The ID is that of r. A store that
// fails costs time, never the result.
//
// Readings are kept as vectors of embed.Store, whose model is the ID with " read" or
// " relate" behind it, and whose text is the question or claim, the heading and the
// passage or evidence, each with its length before it. A reading is relevance,
// answerable, then MaxSpans times start, end and score, with zeros for spans that
// are not there; a relation is its first number and its last.
func Cached(r Reader, s embed.Store) Reader { return cached{r, s} }

type cached struct {
	Reader
	store embed.Store
}

// maxExact is the length of a text from which a number of a vector may not give a place
// in it exactly.
const maxExact = 1 << 24

// Read gives what the store knows and asks the reader for the rest.
func (c cached) Read(ctx context.Context, question string, passages []Passage) ([]Reading, error) {
	if slices.ContainsFunc(passages, func(p Passage) bool { return len(p.Text) >= maxExact }) {
		return c.Reader.Read(ctx, question, passages)
	}
	key := func(p Passage) string { return frame(question, p.Heading, p.Text) }
	read := func(ctx context.Context, some []Passage) ([]Reading, error) {
		return c.Reader.Read(ctx, question, some)
	}
	return through(ctx, c, " read", passages, kept[Passage, Reading]{key, read, packReading, unpackReading})
}

// Relate gives what the store knows and asks the reader for the rest.
func (c cached) Relate(ctx context.Context, pairs []Pair) ([]Relation, error) {
	key := func(p Pair) string { return frame(p.Claim, p.Evidence) }
	pack := func(r Relation) embed.Vector { return embed.Vector{float32(r.Entailed), float32(r.Contradicted)} }
	unpack := func(v embed.Vector) Relation { return newRelation(float64(v[0]), float64(v[1])) }
	return through(ctx, c, " relate", pairs, kept[Pair, Relation]{key, c.Reader.Relate, pack, unpack})
}

// kept is how a kind of value is made, and how it becomes a vector and comes back.
type kept[K, V any] struct {
	key    func(K) string
	read   func(context.Context, []K) ([]V, error)
	pack   func(V) embed.Vector
	unpack func(embed.Vector) V
}

// through asks for values as for vectors that are kept.
func through[K, V any](ctx context.Context, c cached, kind string, asked []K, how kept[K, V]) ([]V, error) {
	keys, of := make([]string, len(asked)), map[string]K{}
	for i, k := range asked {
		keys[i] = how.key(k)
		of[keys[i]] = k
	}
	vectors, err := embed.Cached(maker{c.ID() + kind, func(ctx context.Context, keys []string) ([]embed.Vector, error) {
		missing := make([]K, len(keys))
		for i, key := range keys {
			missing[i] = of[key]
		}
		values, err := how.read(ctx, missing)
		out := make([]embed.Vector, len(values))
		for i, v := range values {
			out[i] = how.pack(v)
		}
		return out, err
	}}, c.store).Embed(ctx, keys)
	out := make([]V, len(vectors))
	for i, v := range vectors {
		out[i] = how.unpack(v)
	}
	return out, err
}

// maker is a function as an embedder.
type maker struct {
	id   string
	make func(context.Context, []string) ([]embed.Vector, error)
}

func (m maker) ID() string { return m.id }

func (m maker) Embed(ctx context.Context, keys []string) ([]embed.Vector, error) {
	return m.make(ctx, keys)
}

func packReading(r Reading) embed.Vector {
	v := make(embed.Vector, 2+3*MaxSpans)
	v[0], v[1] = float32(r.Relevance), float32(r.Answerable)
	for i, s := range r.Spans {
		v[2+3*i], v[3+3*i], v[4+3*i] = float32(s.Span.Start), float32(s.Span.End), float32(s.Score)
	}
	return v
}

func unpackReading(v embed.Vector) Reading {
	r := Reading{Relevance: float64(v[0]), Answerable: float64(v[1]), SpanScore: NoSpan}
	for i := 2; i < len(v) && v[i+1] != 0; i += 3 {
		r.Spans = append(r.Spans, Scored{marchwarden.Span{Start: int(v[i]), End: int(v[i+1])}, float64(v[i+2])})
	}
	if len(r.Spans) > 0 {
		r.Span, r.SpanScore = r.Spans[0].Span, r.Spans[0].Score
	}
	return r
}

func frame(parts ...string) string {
	var b []byte
	for _, p := range parts {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(p))), p...)
	}
	return string(b)
}
