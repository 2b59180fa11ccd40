package eval_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
)

func TestMarkdown(t *testing.T) {
	yes, no := true, false
	reports := []*eval.Report{
		{
			Suite: "b", Title: "two | parts", Settings: eval.Settings{Mind: "ollama/qwen3", Researcher: "pi", Depth: "deep", Limit: 5, Seed: 3}, Cases: 9,
			Metrics: []eval.Metric{{Name: "recall", Value: 0.5, N: 1}}, Rows: []eval.Row{{ID: "1"}},
			Bars: []eval.Held{{Bar: eval.Bar{Metric: "recall", AtLeast: 0.7, Known: "BM25 .6"}, Value: 0.5, N: 1, Reached: &no}},
		},
		{
			Suite: "a", Title: "one", Settings: eval.Settings{Mind: "extractive/2", Researcher: "files", Depth: "balanced", Embedder: "e/1", Seed: 1}, Cases: 1, Tokens: 812,
			Metrics: []eval.Metric{{Name: "error", Value: 0.04, N: 1}, {Name: "tokens", Value: 1234, N: 1}}, Rows: []eval.Row{{ID: "1"}},
			Bars: []eval.Held{{Bar: eval.Bar{Metric: "error", AtMost: 0.05}, Value: 0.04, N: 1, Reached: &yes}},
			Took: &eval.Took{Began: time.Date(2026, 11, 15, 1, 2, 3, 0, time.UTC), MedianSec: 0.0123},
		},
	}
	want := `| suite | measure | ours | n | to reach | | known of others |
|---|---|---:|---:|---|---|---|
| a | error | 0.0400 | 1 | ≤ 0.05 | reached |  |
| a | tokens | 1234 | 1 |  |  |  |
| b | recall | 0.5000 | 1 | ≥ 0.7 | **below** | BM25 .6 |

| suite | data | cases | with | date | tokens a case | seconds a case | command |
|---|---|---:|---|---|---:|---:|---|
| a | one | 1 | extractive/2, e/1 | 2026-11-15 | 812 | 0.012 | ` + "`marchwarden-lab run a`" + ` |
| b | two \| parts | 1 of 9 | ollama/qwen3, by pi, deep, no vectors |  | 0 |  | ` + "`marchwarden-lab run b --limit 5 --seed 3 --researcher pi --model ollama/qwen3 --depth deep --no-vectors`" + ` |
`
	if diff := cmp.Diff(want, eval.Markdown(reports)); diff != "" {
		t.Error(diff)
	}
	if reports[0].Suite != "b" {
		t.Error("the caller's list was sorted")
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0000", 1: "1.0000", 0.12345: "0.1235", 2: "2", 2.5: "2.5000", 1234.5: "1234", -0.5: "-0.5000"} {
		if got := eval.Number(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func TestDocs(t *testing.T) {
	docs := eval.Docs{"b.md": "second", "a.md": "first", "empty.txt": ""}
	if err := fstest.TestFS(docs.FS(), "a.md", "b.md", "empty.txt"); err != nil {
		t.Error(err)
	}
	var seen []string
	err := fs.WalkDir(docs.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		seen = append(seen, name)
		return err
	})
	if got := strings.Join(seen, " "); got != ". a.md b.md empty.txt" || err != nil {
		t.Errorf("%s %v", got, err)
	}
}
