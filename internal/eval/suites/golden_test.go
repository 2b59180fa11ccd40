package suites_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/evaltest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/suites"
)

var (
	update = flag.Bool("update", false, "rewrite the golden file")
	only   = flag.String("only", "", "measure this suite alone, and compare with nothing")
)

// sample is how many cases of a suite the golden file is about: with words alone, and
// with sentence vectors, which cost a hundred times as much. None is -1.
type sample struct{ words, vectors int }

// usual is the sample of suites that have none of their own. All of it together has to
// take less than a minute of one processor: a case with vectors takes one to two seconds.
var usual = sample{40, -1}

var samples = map[string]sample{
	"cacm":         {30, -1},
	"clapnq":       {24, -1},
	"excerpts":     {25, 1},
	"folders":      {-1, -1}, // it starts the program for every question; see 'make folders'
	"mtrag":        {24, -1},
	"multihop":     {16, -1},
	"multihop-rag": {30, -1},
	"pubmedqa":     {24, -1},
	"scifact":      {30, -1},
	"squad2":       {60, 1},
}

// costly are the suites that take most of the time. They are measured where
// MARCHWARDEN_TEST_FULL is set; the others are measured every day.
var costly = []string{"attributionbench", "cacm", "clapnq", "density", "excerpts", "mtrag", "multihop-rag", "scifact", "squad2"}

// TestGolden runs every suite on a small fixed sample and holds the numbers against a
// committed file, so that a change of quality is seen by who reviews it. The full runs
// are in docs/quality.md.
func TestGolden(t *testing.T) {
	if testing.Short() {
		t.Skip("quality is measured without -short")
	}
	root := filepath.Dir(filepath.Dir(datatest.Path(t, "README.md"))) // skips where there is no data
	data := eval.NewData(os.DirFS(filepath.Join(root, "data")), "shared/data")
	vectors := builtin(t)
	if vectors == nil {
		t.Skip("not measured: this build has no model")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s %-58s %9s %6s %9s %6s\n", "suite", "metric", "words", "n", "vectors", "n")
	for _, s := range suites.All() {
		if i := slices.IndexFunc(s.Files, func(name string) bool { return !data.Has(name) }); i >= 0 {
			t.Skipf("not measured: %s is missing", s.Files[i])
		}
		if *only != "" && *only != s.Name || *only == "" && !datatest.Full() && slices.Contains(costly, s.Name) {
			continue
		}
		size, ok := samples[s.Name]
		if !ok {
			size = usual
		}
		began := processorTime()
		words := measured(t, s, data, nil, size.words)
		both := measured(t, s, data, vectors, size.vectors)
		t.Logf("%s took %v of a processor", s.Name, processorTime()-began)
		for _, name := range names(words, both) {
			fmt.Fprintf(&b, "%-16s %-58s %s %s\n", s.Name, name, words[name], both[name])
		}
	}
	if *only != "" || t.Failed() {
		t.Log("\n" + b.String())
		return
	}
	if datatest.Full() {
		datatest.Golden(t, "testdata/golden.txt", lines(b.String()), *update)
		return
	}
	want, err := os.ReadFile("testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lines(b.String()), datatest.Measured(string(want), b.String()); got != want {
		t.Errorf("testdata/golden.txt differs; if the change is meant, run 'make golden'\n--- want\n%s--- got\n%s", want, got)
	}
}

// processorTime is what this process has used, where the system tells.
func processorTime() time.Duration {
	stat, err := os.ReadFile("/proc/self/stat")
	fields := strings.Fields(string(stat))
	if err != nil || len(fields) < 15 {
		return 0
	}
	ticks := 0
	for _, f := range fields[13:15] {
		n, _ := strconv.Atoi(f)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// builtin is the model in the program. Its vectors have the same bits on every machine.
func builtin(t *testing.T) embed.Embedder {
	t.Helper()
	return embed.Cached(bert.MiniLM(), embed.OpenDiskStore(t.TempDir(), 0))
}

// measured are the metrics of a sample, each with its number of cases.
func measured(t *testing.T, s eval.Suite, data eval.Data, e embed.Embedder, limit int) map[string]string {
	t.Helper()
	out := map[string]string{}
	if limit < 0 {
		return out
	}
	env := evaltest.Env(t, data, e)
	env.Seed = 1
	r, err := eval.Run(t.Context(), s, env, eval.Options{Settings: eval.Settings{Limit: limit, Seed: 1}, Parallel: runtime.GOMAXPROCS(0), Now: time.Now})
	if err != nil {
		t.Error(err)
		return out
	}
	for _, m := range r.Metrics {
		out[m.Name] = fmt.Sprintf("%9.3f %6d", m.Value, m.N)
	}
	return out
}

// names are the metrics of either sample, in one order.
func names(a, b map[string]string) []string {
	var list []string
	for _, m := range []map[string]string{a, b} {
		for name := range m {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// lines is a text without white space at the ends of its lines.
func lines(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// TestSuites holds every suite and trainer to what the commands rely on.
func TestSuites(t *testing.T) {
	seen := map[string]bool{"all": true}
	for _, s := range suites.All() {
		if seen[s.Name] || s.Name == "" || strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("suite %q: its name is taken or has other characters than a-z, 0-9 and -", s.Name)
		}
		seen[s.Name] = true
		if s.Title == "" || s.Licence == "" || s.Measures == "" || len(s.Files) == 0 && s.Own == nil || s.Open == nil {
			t.Errorf("suite %s lacks a title, a licence, what it measures, files or a way to open it", s.Name)
		}
		for _, bar := range s.Bars {
			if bar.Metric == "" {
				t.Errorf("suite %s has a bar for no metric", s.Name)
			}
		}
	}
	seen = map[string]bool{}
	for _, tr := range suites.Trainers() {
		if seen[tr.Name] || tr.Name == "" || tr.Fit == nil || len(tr.Files) == 0 {
			t.Errorf("trainer %q: its name is taken, or it lacks files or a way to fit", tr.Name)
		}
		seen[tr.Name] = true
		if _, err := os.Stat(filepath.Join("..", "..", "..", filepath.FromSlash(tr.Writes))); err != nil {
			t.Errorf("trainer %s writes a file that is not there: %v", tr.Name, err)
		}
	}
}
