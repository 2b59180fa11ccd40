package evidence

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// raceEnabled is set where the race detector runs: what is measured over thousands of
// documents takes minutes there, and has no second goroutine.
var raceEnabled bool

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// headChars is what the baseline shows of each source.
const headChars = 3000

var allowances = []int{2000, 8000}

// packing fills an allowance with spans of sources, by source.
type packing func(tk task, tokens int) map[int][]marchwarden.Span

// heads is the baseline: the first 3,000 characters of each source, in the order
// of retrieval, until the allowance is full. What is left of the allowance is
// filled with as much of the next source as fits.
func heads(tk task, tokens int) map[int][]marchwarden.Span {
	packed := map[int][]marchwarden.Span{}
	for _, i := range retrieved(tk) {
		text := tk.set.Sources()[i].Text
		span, _ := fit(text, marchwarden.Span{Start: 0, End: len(text)}, headChars)
		if tokens -= labelTokens; tokens <= 0 {
			break
		}
		if room := tokens * 4; span.End > room {
			for span.End = room; !utf8.RuneStart(text[span.End]); span.End-- {
			}
		}
		tokens -= lexicon.EstimateTokens(text[:span.End])
		packed[i] = []marchwarden.Span{span}
	}
	return packed
}

// retrieved is the order in which a search by BM25 over whole sources gives them.
func retrieved(tk task) []int {
	query := lexicon.Terms(tk.question)
	slices.Sort(query)
	x := &tk.set.index
	lengths := make([]float64, len(tk.set.Sources()))
	x.read()
	for at, p := range x.passages {
		lengths[p.Source-1] += x.lengths[at]
	}
	mean := x.total / float64(len(lengths))
	scores := make([]float64, len(lengths))
	for _, term := range slices.Compact(query) {
		counts := make([]float64, len(lengths))
		for _, e := range x.postings(term) {
			counts[x.passages[e.passage].Source-1] += e.weight
		}
		df := 0.0
		for _, c := range counts {
			df += min(c, 1)
		}
		idf := math.Log(1 + (float64(len(lengths))-df+0.5)/(df+0.5))
		for i, c := range counts {
			scores[i] += idf * c * (bm25K1 + 1) / (c + bm25K1*(1-bm25B+bm25B*lengths[i]/mean))
		}
	}
	order := make([]int, len(lengths))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return order
}

// spans gives passages as a packing does.
func spans(packed []Scored) map[int][]marchwarden.Span {
	out := map[int][]marchwarden.Span{}
	for _, p := range packed {
		out[p.Source-1] = append(out[p.Source-1], p.Span)
	}
	return out
}

// ranked is the plain packing: the best passages while they fit.
func ranked(tk task, tokens int) map[int][]marchwarden.Span {
	var packed []Scored
	for _, p := range tk.set.Rank(lexicon.Terms(tk.question), 0) {
		if cost := plainPrice(p.Passage, false); cost <= tokens {
			tokens -= cost
			packed = append(packed, p)
		}
	}
	return spans(packed)
}

// chosen is what a model is shown.
func chosen(tk task, tokens int) map[int][]marchwarden.Span {
	return spans(PackFor(tk.set, [][]string{lexicon.Terms(tk.question)}, tokens, plainPrice))
}

// reached counts the gold of a task that is wholly in what was packed, passages
// that follow each other taken as one.
func reached(tk task, packed map[int][]marchwarden.Span) int {
	n := 0
	for _, g := range tk.gold {
		text := tk.set.Sources()[g.source].Text
		parts := slices.Clone(packed[g.source])
		slices.SortFunc(parts, func(a, b marchwarden.Span) int { return a.Start - b.Start })
		at := g.span.Start
		for _, p := range parts {
			if p.Start <= at || strings.TrimSpace(text[at:p.Start]) == "" {
				at = max(at, p.End)
			}
		}
		if at >= g.span.End {
			n++
		}
	}
	return n
}

// TestThrift measures, for the same allowance of tokens, which share of the
// evidence for an answer is in what a model is shown: the first 3,000 characters
// of each source ("heads"), the best passages ("ranked") and the choice of
// PackFor ("chosen"). It holds ours above the heads at every allowance, for every
// set, and compares with testdata/thrift.txt, which -update rewrites. The everyday form
// measures two sets; MARCHWARDEN_TEST_FULL=1 measures all.
//
// multihop-rag is left out: it gives the facts without their articles, and all of
// its facts together would fit into the largest allowance.
func TestThrift(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("thrift: skipped with -short and -race, which tell nothing new about it")
	}
	t.Parallel()
	sets := thriftSets(t)
	report := new(strings.Builder)
	report.WriteString("# share of gold evidence in the prompt, for our packing and two others; compared within 0.01\n# set allowance packing share\n")
	mean := map[string]float64{}
	for _, s := range sets {
		describe(t, s.name, s.tasks)
		for _, tokens := range allowances {
			shares := map[string]float64{}
			for _, p := range packings {
				shares[p.name] = share(s.tasks, p.pack, tokens)
				mean[fmt.Sprint(tokens, p.name)] += shares[p.name] / float64(len(sets))
				fmt.Fprintf(report, "%s %d %s %.4f\n", s.name, tokens, p.name, shares[p.name])
			}
			if shares["chosen"] <= shares["heads"] {
				t.Errorf("%s at %d tokens: ours reaches %.4f of the evidence, the heads of the sources %.4f", s.name, tokens, shares["chosen"], shares["heads"])
			}
		}
	}
	for _, tokens := range allowances {
		if !datatest.Full() {
			break // a mean is over all sets
		}
		for _, p := range packings {
			fmt.Fprintf(report, "mean %d %s %.4f\n", tokens, p.name, mean[fmt.Sprint(tokens, p.name)])
		}
		if mean[fmt.Sprint(tokens, "chosen")] <= mean[fmt.Sprint(tokens, "ranked")] {
			t.Errorf("at %d tokens plain ranking is as good as the choice", tokens)
		}
	}
	t.Log("\n" + table(report.String()))
	datatest.GoldenNumbers(t, "testdata/thrift.txt", report.String(), 0.01, *update)
}

// thriftSet is a set of questions with its name.
type thriftSet struct {
	name  string
	tasks []task
}

func thriftSets(t *testing.T) []thriftSet {
	if !datatest.Full() {
		return []thriftSet{{"clapnq", clapTasks(t)}, {"pubmedqa", pubmedTasks(t)}}
	}
	musique, steps := musiqueTasks(t)
	return []thriftSet{
		{"squad2", squadTasks(t)}, {"clapnq", clapTasks(t)}, {"pubmedqa", pubmedTasks(t)}, {"hotpot", hotpotTasks(t)},
		{"musique", musique}, {"musique-steps", steps}, {"excerpts", excerptTasks(t)},
	}
}

// packings are what is compared.
var packings = []struct {
	name string
	pack packing
}{{"heads", heads}, {"ranked", ranked}, {"chosen", chosen}}

// table lays a report out for people: a row for each set and packing.
func table(report string) string {
	var rows []string
	cells := map[string]string{}
	for line := range strings.Lines(report) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		row := fmt.Sprintf("%-14s %-7s", f[0], f[2])
		if cells[row] == "" {
			rows = append(rows, row)
		}
		cells[row] += "  " + f[3]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-22s", "set")
	for _, tokens := range allowances {
		fmt.Fprintf(&b, "  %6d", tokens)
	}
	for _, row := range rows {
		b.WriteString("\n" + row + cells[row])
	}
	return b.String()
}

// describe logs the size of a set and fails if its sources are too small for the
// question to be hard.
func describe(t *testing.T, name string, tasks []task) {
	t.Helper()
	golds, least, total := 0, math.MaxInt, 0
	for _, tk := range tasks {
		golds += len(tk.gold)
		size := 0
		for _, src := range tk.set.Sources() {
			size += lexicon.EstimateTokens(src.Text)
		}
		least, total = min(least, size), total+size
	}
	t.Logf("%s: %d questions, %d pieces of evidence, %d tokens a question (least %d)", name, len(tasks), golds, total/len(tasks), least)
	if least < 25000 {
		t.Errorf("%s: a question has only %d tokens of sources", name, least)
	}
}

// share is how much of the gold of all tasks is reached.
func share(tasks []task, pack packing, tokens int) float64 {
	got, all := 0, 0
	for _, tk := range tasks {
		got += reached(tk, pack(tk, tokens))
		all += len(tk.gold)
	}
	return float64(got) / float64(all)
}
