package anthropic

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// TestUsageStaysInBounds feeds any numbers in any order.
func TestUsageStaysInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := llm.Call{Input: strings.Repeat("word ", rapid.IntRange(1, 500).Draw(t, "words")), MaxTokens: rapid.IntRange(1, 10_000).Draw(t, "max")}
		var r reading
		for range rapid.IntRange(0, 3).Draw(t, "reports") {
			n := rapid.SliceOfN(rapid.OneOf(rapid.Int64(), rapid.Int64Range(-10, 1000)), 4, 4).Draw(t, "counts")
			r.tally.see(counts{n[0], n[1], n[2], n[3]})
		}
		b := &block{kind: "text"}
		b.body.WriteString(rapid.StringN(0, 50, -1).Draw(t, "said"))
		r.blocks = append(r.blocks, b)
		u := r.usage(c)
		if u.In < 1 || u.In > llm.Estimate(c)*4+100_000 || u.Out < 0 || u.Out > c.MaxTokens*2+1_000 || u.CacheRead < 0 || u.CacheWrite < 0 || u.CacheRead+u.CacheWrite > u.In {
			t.Fatalf("%+v", u)
		}
	})
}
