package llm

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestUsageStaysInBounds feeds any numbers in any order.
func TestUsageStaysInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Call{Input: strings.Repeat("word ", rapid.IntRange(1, 500).Draw(t, "words")), MaxTokens: rapid.IntRange(1, 10_000).Draw(t, "max")}
		h := Heard{call: c, slots: map[int64]*heardCall{}}
		for range rapid.IntRange(0, 3).Draw(t, "reports") {
			n := rapid.SliceOfN(rapid.OneOf(rapid.Int64(), rapid.Int64Range(-10, 1000)), 4, 4).Draw(t, "counts")
			h.Count(n[0], n[1], n[2], n[3])
		}
		h.Say(rapid.StringN(0, 50, -1).Draw(t, "said"))
		u := h.usage()
		if u.In < 1 || u.In > Estimate(c)*4+100_000 || u.Out < 0 || u.Out > c.MaxTokens*2+1_000 || u.CacheRead < 0 || u.CacheWrite < 0 || u.CacheRead+u.CacheWrite > u.In {
			t.Fatalf("%+v", u)
		}
	})
}
