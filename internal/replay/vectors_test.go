package replay_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

func bitsOf(vs []embed.Vector) (bits []uint32) {
	for _, v := range vs {
		for _, x := range v {
			bits = append(bits, math.Float32bits(x))
		}
	}
	return bits
}

// Vectors come back from the record to the bit, and a failed call with what it cost.
func TestVectorsOfARecord(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	odd := []embed.Vector{{0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32}, {math.MaxFloat32, -0.1, 1.0 / 3}}
	texts := []string{"a", "b"}
	gone := marchwarden.Errorf(marchwarden.CodeTimeout, "service: no answer")
	use := func(j replay.Journal, live bool) {
		t.Helper()
		got, err := replay.Embed(t.Context(), j, "s/1", texts, func(context.Context) (replay.Embedded, error) {
			if !live {
				t.Error("a rerun asks for vectors")
			}
			return replay.Embedded{Vectors: odd, Tokens: 7}, nil
		})
		if err != nil || got.Tokens != 7 || len(got.Vectors) != 2 || !slices.Equal(bitsOf(got.Vectors), bitsOf(odd)) {
			t.Errorf("live %v: %+v, %v", live, got, err)
		}
		got, err = replay.Embed(t.Context(), j, "s/1", texts[:1], func(context.Context) (replay.Embedded, error) {
			return replay.Embedded{Vectors: odd[:1], Tokens: 3}, gone
		})
		if !errors.Is(err, marchwarden.CodeTimeout) || replay.Fatal(err) || got.Tokens != 3 || got.Vectors != nil {
			t.Errorf("live %v: %+v, %v", live, got, err)
		}
		q := search.Query{Text: "peas", Limit: 10}
		if tokens, err := replay.SearchVectors(t.Context(), j, "s/1", "local", q, func() (int, error) { return 5, nil }); tokens != 5 || err != nil {
			t.Errorf("live %v: %d, %v", live, tokens, err)
		}
		q.Since = "2020-01-01"
		if tokens, err := replay.SearchVectors(t.Context(), j, "s/1", "local", q, func() (int, error) { return 0, gone }); tokens != 0 || !errors.Is(err, marchwarden.CodeTimeout) {
			t.Errorf("live %v: %d, %v", live, tokens, err)
		}
	}
	use(r.journal(), true)
	use(replay.Rerun(r.log(), r.blobs), false)
	var done []int
	for _, s := range r.log().Steps {
		if s, ok := s.(*trace.EmbedComplete); ok {
			done = append(done, s.TokensIn)
		}
	}
	if !slices.Equal(done, []int{7, 3, 5, 0}) {
		t.Errorf("%v", done)
	}
	if _, err := replay.Embed(t.Context(), replay.Rerun(r.log(), r.blobs), "s/2", texts, nil); !replay.Fatal(err) || !errors.Is(err, marchwarden.CodeNotRecorded) {
		t.Errorf("vectors of another model: %v", err)
	}
}
