package bench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var writeTo = flag.String("performance", "", "measure everything and write the page to this file; takes minutes")

// TestPerformance writes docs/performance.md; see the Makefile.
func TestPerformance(t *testing.T) {
	if *writeTo == "" {
		t.Skip("measured by make bench")
	}
	var groups []group
	add := func(name string, results ...[]result) {
		g := group{name, slices.Concat(results...)}
		for _, r := range g.results {
			t.Logf("%s: %.2f times %s (%s beside %s)", r.what, r.ratio, r.baseline, r.ours, r.theirs)
		}
		groups = append(groups, g)
	}
	add("Research", looping(t))
	add("Reading", splitting(t), locating(t), packing(t))
	add("Records", tracing(t))
	add("Vectors", embedding(t), vectors(t))
	add("Search", starting(t), indexing(t, 20_000, 2), querying(t, 100_000, 200, true))
	text := page(time.Now().UTC().Format(time.DateOnly), groups)
	t.Log("\n" + text)
	if err := os.WriteFile(filepath.FromSlash(*writeTo), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

type group struct {
	name    string
	results []result
}

// page writes the results, ratios first.
func page(date string, groups []group) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Performance

Written by `+"`make bench`"+` on %s: %s/%s, %d processors, %s. Every line is two things measured in turn in one run, the best of a few times each; the
ratio is how many times as good ours is, and below 1 ours is the slower one. The text is made up by a fixed seed, with words as frequent as those of a
language (internal/eval/bench). Absolute numbers are those of the machine and of what else ran on it; a line of
processor time, of all threads together, is disturbed by that less than one of the clock.
`, date, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), "Go "+strings.TrimPrefix(runtime.Version(), "go"))
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n| ratio | measured | ours | beside | theirs |\n|---|---|---|---|---|\n", g.name)
		for _, r := range g.results {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", number(r.ratio), r.what, r.ours, r.baseline, r.theirs)
		}
	}
	return b.String()
}

func TestPage(t *testing.T) {
	text := page("2026-01-02", []group{{"Search", []result{{"indexing", "40 MB/s", "plain", "10 MB/s", 4}}}})
	for _, want := range []string{"2026-01-02", "## Search", "| 4.00 | indexing | 40 MB/s | plain | 10 MB/s |"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}
