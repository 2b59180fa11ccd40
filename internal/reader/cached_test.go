package reader

import (
	"context"
	"errors"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"github.com/google/go-cmp/cmp"
)

// counting makes readings up and counts them.
type counting struct{ read, related int }

func (*counting) ID() string { return "counting/1" }

func (c *counting) Read(_ context.Context, question string, passages []Passage) ([]Reading, error) {
	var out []Reading
	for _, p := range passages {
		c.read++
		r := Reading{Relevance: float64(len(question)), Answerable: -0.5, SpanScore: NoSpan}
		for i := 0; i < min(MaxSpans, len(p.Text)/2); i++ {
			r.Spans = append(r.Spans, Scored{marchwarden.Span{Start: 2 * i, End: 2*i + 2}, float64(-i)})
		}
		if len(r.Spans) > 0 {
			r.Span, r.SpanScore = r.Spans[0].Span, r.Spans[0].Score
		}
		out = append(out, r)
	}
	return out, nil
}

func (c *counting) Relate(_ context.Context, pairs []Pair) ([]Relation, error) {
	var out []Relation
	for range pairs {
		c.related++
		out = append(out, newRelation(0.25, 0.5))
	}
	return out, nil
}

type broken struct{}

func (broken) Get(string, []string) ([]embed.Vector, error) { return nil, errors.New("broken") }
func (broken) Put(string, []string, []embed.Vector) error   { return errors.New("broken") }

// forgetful is a store that keeps nothing.
type forgetful struct{}

func (forgetful) Get(_ string, texts []string) ([]embed.Vector, error) {
	return make([]embed.Vector, len(texts)), nil
}
func (forgetful) Put(string, []string, []embed.Vector) error { return nil }

var cachedPassages = []Passage{{"h", "some text"}, {"", "hsome text"}, {"h", "some text"}, {"", ""}, {"hs", "ome text"}}
var cachedPairs = []Pair{{"a", "bc"}, {"ab", "c"}, {"a", "bc"}}

// TestCached: every store gives what the reader gives, and those that keep
// something ask once.
func TestCached(t *testing.T) {
	kept := embed.OpenDiskStore(t.TempDir(), 0)
	for name, c := range map[string]struct {
		store         embed.Store
		read, related int
	}{
		"kept":      {kept, 4, 2},
		"forgetful": {forgetful{}, 8, 4},
		"broken":    {broken{}, 8, 4},
	} {
		plain, behind := &counting{}, &counting{}
		r := Cached(behind, c.store)
		if r.ID() != plain.ID() {
			t.Errorf("%s: ID %q", name, r.ID())
		}
		want, _ := plain.Read(t.Context(), "question", cachedPassages)
		related, _ := plain.Relate(t.Context(), cachedPairs)
		for range 2 {
			got, err := r.Read(t.Context(), "question", cachedPassages)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
			}
			rel, err := r.Relate(t.Context(), cachedPairs)
			if diff := cmp.Diff(related, rel); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
			}
		}
		if behind.read != c.read || behind.related != c.related {
			t.Errorf("%s: read %d times and related %d times, want %d and %d", name, behind.read, behind.related, c.read, c.related)
		}
	}
}
