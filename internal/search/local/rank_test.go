package local

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// dial is an embedder whose vectors say how near a text is to the query: the number
// that stands behind "near" in it, of 10.
type dial struct {
	asked [][]string
	err   error
}

func (d *dial) ID() string { return "dial/1" }

func (d *dial) Embed(_ context.Context, texts []string) ([]embed.Vector, error) {
	d.asked = append(d.asked, texts)
	if d.err != nil {
		return nil, d.err
	}
	out := make([]embed.Vector, len(texts))
	for i, t := range texts {
		near := 10
		if _, after, ok := strings.Cut(t, "near "); ok {
			fmt.Sscan(after, &near)
		}
		cos := float64(near) / 10
		out[i] = embed.Vector{float32(cos), float32(math.Sqrt(1 - cos*cos))}
	}
	return out, nil
}

// text is a text that was found by its words, and placed what becomes of it.
type text struct {
	Title, Text string
	Words       float64
}

type placed struct {
	At    int
	Score float64
}

func places(list []placed) []int {
	out := make([]int, len(list))
	for i, p := range list {
		out[i] = p.At
	}
	return out
}

// ordered has a reader put texts in order.
func ordered(ctx context.Context, r *Reader, texts []text, limit int) ([]placed, error) {
	var list []*found
	for _, x := range texts {
		list = append(list, &found{title: x.Title, score: x.Words, hit: search.Hit{Snippet: x.Text}})
	}
	got, err := r.Order(ctx, list, limit)
	out := []placed{}
	for _, f := range got {
		out = append(out, placed{slices.Index(list, f), f.hit.Score})
	}
	return out, err
}

func order(t *testing.T, e embed.Embedder, texts []text) []placed {
	t.Helper()
	got, err := ordered(t.Context(), NewReader(e, "query"), texts, MaxTexts)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func sameRanks(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestOrderWithoutVectors(t *testing.T) {
	found := []text{{Text: "one", Words: 3}, {Text: "two", Words: 2}, {Text: "three", Words: 2}}
	sameRanks(t, "words alone", order(t, nil, found), []placed{{0, 3}, {1, 2}, {2, 2}})
	sameRanks(t, "nothing", order(t, nil, nil), []placed{})
}

func TestOrderByMeaning(t *testing.T) {
	found := []text{
		{Text: "near 1: has the words alone", Words: 10},
		{Text: "near 9: means it", Words: 6},
		{Text: "near 5", Words: 5},
	}
	got := order(t, &dial{}, found)
	sameRanks(t, "order", places(got), []int{1, 2, 0})
	// By words the part of the highest; by meaning where the cosine is between -1 and 1.
	if want := wordShare*.6 + (1-wordShare)*(1+.9)/2; math.Abs(got[0].Score-want) > 1e-6 {
		t.Errorf("score %v, want %v", got[0].Score, want)
	}
}

func TestWordsStillDecide(t *testing.T) {
	found := []text{
		{Text: "near 5: the very thing asked for", Words: 20},
		{Text: "near 6: something about it", Words: 4},
	}
	sameRanks(t, "order", places(order(t, &dial{}, found)), []int{0, 1})
}

func TestWhatIsEmbedded(t *testing.T) {
	e := &dial{}
	order(t, e, []text{
		{Title: "Roots", Text: "# Roots\n\nof trees\n12\t5\t1\n3.70 4.19\n", Words: 2},
		{Title: "Leaves", Text: "They fall.", Words: 1},
	})
	sameRanks(t, "texts", e.asked, [][]string{{"query", "# Roots\nof trees\n", "Leaves\nThey fall."}})
}

func TestOnlySoManyTexts(t *testing.T) {
	e := &dial{}
	var found []text
	for i := range 3 * MaxTexts {
		found = append(found, text{Text: fmt.Sprintf("text %d near %d", i, i%10), Words: float64(1000 - i)})
	}
	got := order(t, e, found)
	sameRanks(t, "embedded", len(e.asked[0]), 1+MaxTexts)
	sameRanks(t, "one call", len(e.asked), 1)
	for i, p := range got {
		if i >= MaxTexts && p.At != i {
			t.Fatalf("place %d holds %d: what was not compared keeps its place", i, p.At)
		}
		if i < MaxTexts && p.At >= MaxTexts {
			t.Fatalf("place %d holds %d, which was not compared", i, p.At)
		}
	}
	descending(t, got)
}

func TestSecondRound(t *testing.T) {
	e := &dial{}
	r := NewReader(e, "query")
	var found []text
	for i := range 6 {
		found = append(found, text{Text: fmt.Sprintf("text %d near %d", i, i), Words: float64(10 - i)})
	}
	if _, err := ordered(t.Context(), r, found, 2); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(found)
	for i := range found {
		found[i].Words = float64(10 - i)
	}
	got, err := ordered(t.Context(), r, found, 4)
	if err != nil {
		t.Fatal(err)
	}
	// The query and two texts first; then two more, and not those two again.
	sameRanks(t, "embedded", e.asked, [][]string{{"query", "text 0 near 0", "text 1 near 1"}, {"text 5 near 5", "text 4 near 4"}})
	sameRanks(t, "order", places(got), []int{0, 1, 4, 5, 2, 3})
	descending(t, got)
}

func descending(t rapid.TB, list []placed) {
	t.Helper()
	for i, p := range list {
		if !(p.Score > 0) || math.IsInf(p.Score, 0) || i > 0 && p.Score > list[i-1].Score {
			t.Fatalf("scores are not falling and above 0: %v", list)
		}
	}
}

func TestFailingVectors(t *testing.T) {
	found := []text{{Text: "near 1", Words: 3}, {Text: "near 9", Words: 2}}
	sameRanks(t, "a failure", order(t, &dial{err: errors.New("no such model")}, found), []placed{{0, 3}, {1, 2}})
	sameRanks(t, "too few vectors", order(t, few{}, found), []placed{{0, 3}, {1, 2}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ordered(ctx, NewReader(&dial{err: ctx.Err()}, "query"), found, MaxTexts); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// few is an embedder that leaves out vectors.
type few struct{}

func (few) ID() string { return "few/1" }

func (few) Embed(context.Context, []string) ([]embed.Vector, error) { return nil, nil }

func TestCopiesComeLast(t *testing.T) {
	found := []text{
		{Text: "Water boils at 100 degrees.", Words: 5},
		{Text: "water  boils at 100 degrees", Words: 4},
		{Text: "Water boils at 90 degrees.", Words: 3},
		{Text: "Water does not boil.", Words: 2},
	}
	got := order(t, nil, found)
	sameRanks(t, "order", places(got), []int{0, 2, 3, 1})
	descending(t, got)
}

func TestCopies(t *testing.T) {
	var found []text
	for i, said := range []string{"A b.", "a, B", "a b c", "...", "...", "A B C!", "a b"} {
		found = append(found, text{Text: said, Words: float64(9 - i)})
	}
	sameRanks(t, "order", places(order(t, nil, found)), []int{0, 2, 3, 4, 1, 5, 6})
}

func TestOrderIsAnOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var found []text
		for i, n := range rapid.SliceOfN(rapid.IntRange(1, 50), 0, 150).Draw(rt, "words") {
			found = append(found, text{Text: fmt.Sprintf("%d near %d", rapid.IntRange(0, 40).Draw(rt, "text"), i%10), Words: float64(n)})
		}
		slices.SortStableFunc(found, func(a, b text) int { return int(b.Words) - int(a.Words) })
		var e embed.Embedder
		if rapid.Bool().Draw(rt, "vectors") {
			e = &dial{}
		}
		got, err := ordered(context.Background(), NewReader(e, "query"), found, MaxTexts)
		if err != nil {
			rt.Fatal(err)
		}
		descending(rt, got)
		at := places(got)
		slices.Sort(at)
		for i, p := range at {
			if p != i {
				rt.Fatalf("%v is no order of %d texts", at, len(found))
			}
		}
	})
}
