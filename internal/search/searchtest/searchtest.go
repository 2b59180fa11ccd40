// Package searchtest holds the conformance suite that every search.Engine
// passes, and a scripted engine for the tests of what is built on top of one. It
// is for tests only and judges no engine's ranking beyond the plainest cases.
package searchtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// Make returns an engine over exactly these documents, given as text by name.
// A name such as "soils.md" is its file name; the locator of its hits must end
// in it. What Make opens, it closes with t.Cleanup.
type Make func(t *testing.T, docs map[string]string) search.Engine

// Run checks the promises of search.Engine. Its filter is ".txt", which lets the
// documents of that kind through: an engine of files filters by file name.
func Run(t *testing.T, newEngine Make) {
	RunFilter(t, newEngine, ".txt", func(locator string) bool { return strings.HasSuffix(locator, ".txt") })
}

// RunFilter is Run for engines that filter by host: some of the documents must be
// at locators that the filter allows, and allowed must say which.
func RunFilter(t *testing.T, newEngine Make, filter string, allowed func(locator string) bool) {
	t.Run("Name", func(t *testing.T) {
		e := newEngine(t, garden())
		if name := e.Name(); name == "" || name != strings.ToLower(name) || strings.ContainsAny(name, " \t\n") {
			t.Errorf("Name() = %q, want one short word in lower case", name)
		}
	})
	t.Run("Finds", func(t *testing.T) { testFinds(t, newEngine(t, garden())) })
	t.Run("BestFirst", func(t *testing.T) { testBestFirst(t, newEngine(t, garden())) })
	t.Run("OncePerLocator", func(t *testing.T) { testOnce(t, newEngine) })
	t.Run("Limit", func(t *testing.T) { testLimit(t, newEngine(t, garden())) })
	t.Run("Filter", func(t *testing.T) { testFilter(t, newEngine(t, garden()), filter, allowed) })
	t.Run("NoHitIsNoError", func(t *testing.T) {
		for _, docs := range []map[string]string{garden(), {}} {
			hits, err := newEngine(t, docs).Search(t.Context(), search.Query{Text: "zyzzyva quokka", Limit: 5})
			if err != nil || len(hits) != 0 {
				t.Errorf("with %d documents: %v, %v; want no hit and no error", len(docs), hits, err)
			}
		}
	})
	t.Run("HostileQueries", func(t *testing.T) { testHostile(t, newEngine(t, garden())) })
	t.Run("Cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := newEngine(t, garden()).Search(ctx, search.Query{Text: "tomato", Limit: 5})
		if !errors.Is(err, marchwarden.CodeCanceled) {
			t.Errorf("cancelled search gave %v, want %v", err, marchwarden.CodeCanceled)
		}
	})
	t.Run("Deterministic", func(t *testing.T) {
		a, b := newEngine(t, garden()), newEngine(t, garden())
		for _, q := range []string{"tomato", "water garden soil", "the"} {
			x, y := names(mustSearch(t, a, q, 10)), names(mustSearch(t, b, q, 10))
			if fmt.Sprint(x) != fmt.Sprint(y) {
				t.Errorf("%q: %v and %v from the same documents", q, x, y)
			}
		}
	})
	t.Run("Concurrent", func(t *testing.T) { testConcurrent(t, newEngine(t, garden())) })
}

// garden is a small library in which it is plain what answers what.
func garden() map[string]string {
	return map[string]string{
		"tomato.md":   "# Growing tomatoes\n\nTomatoes need eight hours of sun. A tomato plant sets fruit below 90 degrees.\n\nPlant a tomato deep; tomatoes root along the stem.",
		"soil.md":     "# Utah soils\n\nMost soils of the valley are alkaline, with a pH between 7.5 and 8.5.\n\nCompost helps; a tomato tolerates it.",
		"water.txt":   "Watering the garden.\n\nWater deeply twice a week. Drip lines save half of the water.",
		"pests.txt":   "Pests of the orchard.\n\nCodling moth attacks apples in May. Spray at petal fall.",
		"history.txt": "The garden was laid out in 1889.\n\nIts first keeper came from Bergen.",
	}
}

func mustSearch(t *testing.T, e search.Engine, text string, limit int) []search.Hit {
	t.Helper()
	hits, err := e.Search(t.Context(), search.Query{Text: text, Limit: limit})
	if err != nil {
		t.Fatalf("Search(%q): %v", clip(text), err)
	}
	return hits
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

func names(hits []search.Hit) []string {
	out := make([]string, len(hits))
	for i, h := range hits {
		out[i] = h.Locator
	}
	return out
}

func testFinds(t *testing.T, e search.Engine) {
	for query, name := range map[string]string{
		"tomato plant sun":                         "tomato.md",
		"alkaline soil pH":                         "soil.md",
		"What does the codling moth do to apples?": "pests.txt",
		"When was the garden laid out, 1889?":      "history.txt",
	} {
		hits := mustSearch(t, e, query, 5)
		if len(hits) == 0 || !strings.HasSuffix(hits[0].Locator, name) {
			t.Errorf("Search(%q) = %v, want %s first", query, names(hits), name)
			continue
		}
		if s := hits[0].Snippet; !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
			t.Errorf("Search(%q): snippet %q is not plain text on one line", query, s)
		}
	}
}

func testBestFirst(t *testing.T, e search.Engine) {
	hits := mustSearch(t, e, "tomato soil water garden", 10)
	if len(hits) < 3 {
		t.Fatalf("hits %v, want at least 3", names(hits))
	}
	for i := 1; i < len(hits); i++ {
		if hits[i].Score > hits[i-1].Score {
			t.Errorf("hit %d scores %v, the one before it %v", i, hits[i].Score, hits[i-1].Score)
		}
	}
}

// testOnce uses a document long enough to be many passages.
func testOnce(t *testing.T, newEngine Make) {
	docs := garden()
	docs["long.txt"] = strings.Repeat("The tomato has a long history in this garden. Water it well, and mind the soil.\n\n", 200)
	seen := map[string]bool{}
	for _, h := range mustSearch(t, newEngine(t, docs), "tomato history garden water", 20) {
		if seen[h.Locator] {
			t.Errorf("locator %s twice", h.Locator)
		}
		seen[h.Locator] = true
	}
	if len(seen) < 3 {
		t.Errorf("locators %v, want at least 3", seen)
	}
}

func testLimit(t *testing.T, e search.Engine) {
	for limit := 1; limit <= 4; limit++ {
		if hits := mustSearch(t, e, "tomato soil water garden", limit); len(hits) > limit {
			t.Errorf("limit %d gave %d hits", limit, len(hits))
		}
	}
	one := mustSearch(t, e, "tomato soil water garden", 1)
	all := mustSearch(t, e, "tomato soil water garden", 10)
	if len(one) != 1 || len(all) < 2 || one[0].Locator != all[0].Locator {
		t.Errorf("best of one is %v, of all %v", names(one), names(all))
	}
}

func testFilter(t *testing.T, e search.Engine, text string, allowed func(string) bool) {
	filter, err := marchwarden.ParseSourceFilter(text)
	if err != nil {
		t.Fatal(err)
	}
	hits, err := e.Search(t.Context(), search.Query{Text: "tomato soil water garden", Limit: 10, Filter: filter})
	if err != nil {
		t.Fatal(err)
	}
	if len(hits) == 0 {
		t.Errorf("filter %s: no hits, want some", text)
	}
	for _, h := range hits {
		if !allowed(h.Locator) {
			t.Errorf("filter %s let %s through", text, h.Locator)
		}
	}
	none, _ := marchwarden.ParseSourceFilter(".gov")
	hits, err = e.Search(t.Context(), search.Query{Text: "tomato", Limit: 10, Filter: none})
	if err != nil || len(hits) != 0 {
		t.Errorf("filter .gov: %v, %v; want no hit and no error", names(hits), err)
	}
}

// HostileQueries are texts that some search language takes for operators, or
// that are no sensible query at all.
func HostileQueries() []string {
	return []string{
		"", " ", "\x00", "tomato\x00soil", `"`, `""`, `"tomato`, `tomato"`, `'; DROP TABLE docs; --`, "tomato AND", "OR", "AND OR NOT", "NOT tomato",
		"NEAR(tomato soil, 2)", "NEAR(", "NEAR", "tomato NEAR/3 soil", "*", "tom*", "^tomato", "title:tomato", "nosuchcolumn:tomato", "{title body}: x",
		"(((((", ")", "(tomato", "tomato + soil", "- tomato", "the of and to a", "?!.,;:-—…", "\u202etomato", "\ufeff", "\xff\xfe tomato", "🍅", "トマト", "6,000 ft.",
		strings.Repeat("tomato ", 1500), strings.Repeat("(", 10000), strings.Repeat("x", 10000), strings.Repeat(`"a" OR `, 1500),
	}
}

func testHostile(t *testing.T, e search.Engine) {
	for _, q := range HostileQueries() {
		if _, err := e.Search(t.Context(), search.Query{Text: q, Limit: 5}); err != nil {
			t.Errorf("Search(%q): %v", clip(q), err)
		}
	}
	hits := mustSearch(t, e, "tomato\x00 \"sun\" AND (", 5)
	if len(hits) == 0 || !strings.HasSuffix(hits[0].Locator, "tomato.md") {
		t.Errorf("words among operators: %v, want tomato.md first", names(hits))
	}
}

func testConcurrent(t *testing.T, e search.Engine) {
	want := fmt.Sprint(names(mustSearch(t, e, "tomato soil water garden", 10)))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 10 {
				hits, err := e.Search(t.Context(), search.Query{Text: "tomato soil water garden", Limit: 10})
				if got := fmt.Sprint(names(hits)); err != nil || got != want {
					t.Errorf("concurrent search gave %s, %v; want %s", got, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}
