package reader

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

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

// The lengths of the vectors.
const (
	readingNumbers  = 2 + 3*MaxSpans
	relationNumbers = 2
)

// maxExact is the first place in a text that a number of a vector may not give
// exactly: a reading with such a span is not kept.
const maxExact = 1 << 24

// Read gives what the store knows and asks the reader for the rest.
func (c cached) Read(ctx context.Context, question string, passages []Passage) ([]Reading, error) {
	keys := make([]string, len(passages))
	for i, p := range passages {
		keys[i] = frame(question, p.Heading, p.Text)
	}
	s := shelved[Reading]{store: c.store, model: c.ID() + " read", pack: packReading,
		unpack: func(i int, v embed.Vector) (Reading, bool) { return unpackReading(v, len(passages[i].Text)) }}
	return s.get(ctx, keys, func(missing []int) ([]Reading, error) {
		return c.Reader.Read(ctx, question, pick(passages, missing))
	})
}

// Relate gives what the store knows and asks the reader for the rest.
func (c cached) Relate(ctx context.Context, pairs []Pair) ([]Relation, error) {
	keys := make([]string, len(pairs))
	for i, p := range pairs {
		keys[i] = frame(p.Claim, p.Evidence)
	}
	s := shelved[Relation]{store: c.store, model: c.ID() + " relate", pack: packRelation,
		unpack: func(_ int, v embed.Vector) (Relation, bool) { return unpackRelation(v) }}
	return s.get(ctx, keys, func(missing []int) ([]Relation, error) {
		return c.Reader.Relate(ctx, pick(pairs, missing))
	})
}

// shelved is a kind of value in a store of vectors.
type shelved[T any] struct {
	store  embed.Store
	model  string
	pack   func(T) embed.Vector // nil for what cannot be kept
	unpack func(i int, v embed.Vector) (T, bool)
}

// get gives the values of the keys: those of the store, and those that read gives
// for the places whose keys are not in it.
func (s *shelved[T]) get(ctx context.Context, keys []string, read func(missing []int) ([]T, error)) ([]T, error) {
	if len(keys) == 0 {
		return nil, ctx.Err()
	}
	found, err := s.store.Get(s.model, keys)
	if err != nil || len(found) != len(keys) {
		found = make([]embed.Vector, len(keys))
	}
	out := make([]T, len(keys))
	first := map[string]int{} // missing key → its place in missing
	var missing, again []int
	for i, k := range keys {
		var ok bool
		if out[i], ok = s.unpack(i, found[i]); ok {
			continue
		}
		if _, ok := first[k]; ok {
			again = append(again, i)
			continue
		}
		first[k] = len(missing)
		missing = append(missing, i)
	}
	if len(missing) == 0 {
		return out, ctx.Err()
	}
	made, err := read(missing)
	if err != nil {
		return nil, err
	}
	if len(made) != len(missing) {
		return nil, fmt.Errorf("reader: %d readings for %d texts", len(made), len(missing))
	}
	for j, i := range missing {
		out[i] = made[j]
	}
	for _, i := range again {
		out[i] = made[first[keys[i]]]
	}
	s.put(pick(keys, missing), made)
	return out, nil
}

// put keeps values. What cannot be kept is made again next time.
func (s *shelved[T]) put(keys []string, values []T) {
	var (
		names   []string
		vectors []embed.Vector
	)
	for i, value := range values {
		if v := s.pack(value); v != nil {
			names, vectors = append(names, keys[i]), append(vectors, v)
		}
	}
	if len(names) > 0 {
		_ = s.store.Put(s.model, names, vectors)
	}
}

func packReading(r Reading) embed.Vector {
	v := make(embed.Vector, readingNumbers)
	v[0], v[1] = float32(r.Relevance), float32(r.Answerable)
	for i, s := range r.Spans {
		if s.Span.End >= maxExact {
			return nil
		}
		v[2+3*i], v[3+3*i], v[4+3*i] = float32(s.Span.Start), float32(s.Span.End), float32(s.Score)
	}
	return v
}

// unpackReading is the way back, for a passage of n bytes. What cannot be a reading
// is none.
func unpackReading(v embed.Vector, n int) (Reading, bool) {
	if len(v) != readingNumbers {
		return Reading{}, false
	}
	for _, f := range v {
		if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
			return Reading{}, false
		}
	}
	r := Reading{Relevance: float64(v[0]), Answerable: float64(v[1]), SpanScore: NoSpan}
	for i := 2; i < len(v) && v[i+1] != 0; i += 3 {
		if v[i] < 0 || v[i+1] >= maxExact {
			return Reading{}, false
		}
		s := Scored{marchwarden.Span{Start: int(v[i]), End: int(v[i+1])}, float64(v[i+2])}
		if !s.Span.In(n) {
			return Reading{}, false
		}
		r.Spans = append(r.Spans, s)
	}
	if len(r.Spans) > 0 {
		r.Span, r.SpanScore = r.Spans[0].Span, r.Spans[0].Score
	}
	return r, true
}

func packRelation(r Relation) embed.Vector {
	return embed.Vector{float32(r.Entailed), float32(r.Contradicted)}
}

// unpackRelation is the way back.
func unpackRelation(v embed.Vector) (Relation, bool) {
	if len(v) != relationNumbers {
		return Relation{}, false
	}
	for _, f := range v {
		if !(f >= 0 && f <= 1) {
			return Relation{}, false
		}
	}
	return newRelation(float64(v[0]), float64(v[1])), true
}

// frame joins parts, each with its length before it.
func frame(parts ...string) string {
	n := 0
	for _, p := range parts {
		n += 8 + len(p)
	}
	b := make([]byte, 0, n)
	for _, p := range parts {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(p))), p...)
	}
	return string(b)
}

func pick[T any](all []T, at []int) []T {
	out := make([]T, len(at))
	for i, j := range at {
		out[i] = all[j]
	}
	return out
}
