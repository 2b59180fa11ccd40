package ledger

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	childPath = "LEDGER_TEST_PATH"
	childName = "LEDGER_TEST_NAME"
	processes = 8
	perChild  = 200
)

// TestMain plays a writing process when it is told to.
func TestMain(m *testing.M) {
	path := os.Getenv(childPath)
	if path == "" {
		os.Exit(m.Run())
	}
	for i := range perChild {
		if err := Append(path, Entry{Time: at, Researcher: os.Getenv(childName), TokensUsed: i}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

var at = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func id(t *testing.T) marchwarden.TraceID {
	t.Helper()
	id, err := marchwarden.ParseTraceID("0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAppendAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "costs.jsonl")
	in, out, usd := 3, 4, 0.5
	want := []Entry{
		{Time: at, TraceID: id(t), Researcher: "files", Question: "why <b>?", Model: "extractive/1", TokensUsed: 7, TokensIn: &in, TokensOut: &out,
			Iterations: 2, WallTimeSec: 0.25, Searches: 5, BudgetExhausted: true, Confidence: 0.75, CostUSD: &usd, Outcome: Answered},
		{Time: at.Add(time.Hour), Outcome: Failed},
	}
	for _, e := range want {
		if err := Append(path, e); err != nil {
			t.Fatal(err)
		}
	}
	got, bad, err := Read(path)
	if err != nil || len(bad) != 0 {
		t.Fatalf("Read: %v, %v", bad, err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(marchwarden.TraceID{})); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder mode %v, %v; want 0700", info.Mode(), err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(raw), `"question":"why <b>?"`) || !strings.Contains(string(raw), `"cost_usd":null`) {
		t.Errorf("lines are not as documented: %s %v", raw, err)
	}
}

func TestReadMissingIsEmpty(t *testing.T) {
	got, bad, err := Read(filepath.Join(t.TempDir(), "none"))
	if len(got) != 0 || len(bad) != 0 || err != nil {
		t.Errorf("got %v %v %v", got, bad, err)
	}
}

func TestTornAndForeignLinesAreCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "costs.jsonl")
	if err := Append(path, Entry{Time: at, Model: "a"}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	stump := "\n[1]\nnull\n" + strings.Repeat("x", lines.Most+200_000) + "\n" + `{"time":"2026-11-0`
	if _, err := f.WriteString(stump); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := Append(path, Entry{Time: at, Model: "b"}); err != nil {
		t.Fatal(err)
	}
	got, bad, err := Read(path)
	if err != nil || len(bad) != 4 {
		t.Errorf("%d skipped, %v; want 4", len(bad), err)
	}
	if len(got) != 2 || got[0].Model != "a" || got[1].Model != "b" {
		t.Errorf("the whole lines must survive a torn one: %v", got)
	}
}

func TestTextsAreCleanedAndCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "costs.jsonl")
	long := "a\x1b[31m\n\tb\u202e " + strings.Repeat("é", 300) + "\xff"
	if err := Append(path, Entry{Time: at, Question: long}); err != nil {
		t.Fatal(err)
	}
	got, _, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	q := got[0].Question
	if n := utf8.RuneCountInString(q); n != MaxQuestionChars {
		t.Errorf("question has %d characters, want %d", n, MaxQuestionChars)
	}
	if strings.ContainsAny(q, "\x1b\n\u202e") || !strings.HasPrefix(q, "a [31m b é") || !strings.HasSuffix(q, "é…") {
		t.Errorf("question was not cleaned: %q", q)
	}
}

func TestAppendFails(t *testing.T) {
	dir := t.TempDir()
	if err := Append(dir, Entry{Time: at}); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
		t.Errorf("appending to a folder: %v", err)
	}
	if _, _, err := Read(dir); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
		t.Errorf("reading a folder: %v", err)
	}
}

func TestEntryOf(t *testing.T) {
	res := &marchwarden.Result{
		TraceID: id(t), Confidence: 0.5, Citations: []marchwarden.Citation{{}},
		CostMetadata: marchwarden.CostMetadata{TokensUsed: 10, IterationsRun: 2, WallTimeSec: 1.5, BudgetExhausted: true, ModelID: "extractive/1"},
	}
	zero := 0.0
	want := Entry{Time: at, TraceID: id(t), Researcher: "files", Question: "q", Model: "extractive/1", TokensUsed: 10, Iterations: 2,
		WallTimeSec: 1.5, BudgetExhausted: true, Confidence: 0.5, CostUSD: &zero, Outcome: Answered}
	if diff := cmp.Diff(want, EntryOf(at, "files", "q", res), cmp.AllowUnexported(marchwarden.TraceID{})); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
	res.Citations = nil
	for _, model := range []string{"unheard-of", "gpt-4.1"} { // a sum of tokens cannot tell the cost where input and output differ
		res.CostMetadata.ModelID = model
		if e := EntryOf(at, "files", "q", res); e.Outcome != Refused || e.CostUSD != nil {
			t.Errorf("no citation, and no price of %s: %v %v", model, e.Outcome, e.CostUSD)
		}
	}
}

func TestEstimate(t *testing.T) {
	tests := []struct {
		model   string
		in, out int
		usd     float64
		known   bool
	}{
		{"extractive/1", 5, 6, 0, true},
		{"gpt-4.1", 1_000_000, 500_000, 6, true},
		{"gpt-4.1-2025-04-14", 1_000_000, 0, 2, true},
		{"gpt-4.1-20250414", 0, 1_000_000, 8, true},
		{"gpt-4.1-mini", 1_000_000, 0, 0.4, true},
		{"gpt-4.1-huge", 1, 1, 0, false},
		{"gpt-4.1-2025-xx-14", 1, 1, 0, false},
		{"gpt-4.10", 1, 1, 0, false},
		{"gpt-4", 1, 1, 0, false},
		{"", 1, 1, 0, false},
	}
	for _, tt := range tests {
		prices, _ := Prices(nil).Of(tt.model)
		usd, known := prices.Cost(tt.model, Tokens{In: tt.in, Out: tt.out})
		if known != tt.known || math.Abs(usd-tt.usd) > 1e-9 {
			t.Errorf("Cost(%q) = %v %v, want %v %v", tt.model, usd, known, tt.usd, tt.known)
		}
	}
}

func TestPriceTable(t *testing.T) {
	if _, err := time.Parse(time.DateOnly, PricesAsOf()); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for _, p := range table().Models {
		if p.ID == "" || seen[p.ID] || p.Input < 0 || p.Output < p.Input {
			t.Errorf("bad row %+v", p)
		}
		seen[p.ID] = true
	}
	if len(seen) == 0 {
		t.Error("there is no price")
	}
}

func TestSummarize(t *testing.T) {
	usd := 0.25
	entries := []Entry{
		{Time: at.AddDate(0, 0, -9), Model: "b", TokensUsed: 1000},
		{Time: at, Model: "b", Researcher: "files", TokensUsed: 10, Searches: 2, WallTimeSec: 1, CostUSD: &usd},
		{Time: at.Add(13 * time.Hour), Model: "a", TokensUsed: 5, Searches: 1, WallTimeSec: 2},
		{Time: at.Add(time.Minute), Model: "b", Researcher: "files", TokensUsed: 1, CostUSD: &usd},
	}
	since := at.AddDate(0, 0, -1)
	total := Sum{Key: "total", Calls: 3, Searches: 3, TokensUsed: 16, WallTimeSec: 3, CostUSD: 0.5, UnknownCost: 1}
	first := Sum{Calls: 2, Searches: 2, TokensUsed: 11, WallTimeSec: 1, CostUSD: 0.5}
	second := Sum{Calls: 1, Searches: 1, TokensUsed: 5, WallTimeSec: 2, UnknownCost: 1}
	keyed := func(s Sum, key string) Sum { s.Key = key; return s }
	want := map[string][]Sum{
		"day":        {keyed(first, "2026-11-01"), keyed(second, "2026-11-02")},
		"model":      {keyed(second, "a"), keyed(first, "b")},
		"researcher": {keyed(first, "files"), keyed(second, "unknown")},
	}
	for by, groups := range want {
		gotGroups, gotTotal, err := Summarize(entries, by, since)
		if diff := cmp.Diff(groups, gotGroups); diff != "" || err != nil {
			t.Errorf("by %s (-want +got):\n%s", by, diff)
		}
		if diff := cmp.Diff(total, gotTotal); diff != "" {
			t.Errorf("total by %s (-want +got):\n%s", by, diff)
		}
	}
	if _, _, err := Summarize(entries, "week", since); marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
		t.Errorf("by week: %v", err)
	}
}

// TestProcessesShareALedger has 8 processes append 200 entries each, after a
// line that a crash tore.
func TestProcessesShareALedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "costs.jsonl")
	if err := os.WriteFile(path, []byte(`{"time":"20`), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childPath+"="+path, fmt.Sprintf("%s=p%d", childName, i))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, out)
			}
		})
	}
	wg.Wait()
	entries, bad, err := Read(path)
	if err != nil || len(bad) != 1 || len(entries) != processes*perChild {
		t.Fatalf("%d entries, %d skipped, %v; want %d, 1", len(entries), len(bad), err, processes*perChild)
	}
	next := map[string]int{}
	for _, e := range entries {
		if e.TokensUsed != next[e.Researcher] {
			t.Fatalf("entry %d of %s where %d was due", e.TokensUsed, e.Researcher, next[e.Researcher])
		}
		next[e.Researcher]++
	}
}

func FuzzRead(f *testing.F) {
	line, err := json.Marshal(Entry{Time: at})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(line) + "\n")
	f.Add("{\n\n\x00")
	f.Fuzz(func(t *testing.T, s string) {
		good, bad, err := lines.Scan(strings.NewReader(s))
		if n := len(good) + len(bad); err != nil || n > strings.Count(s, "\n")+1 {
			t.Errorf("%d lines of %q: %v", n, s, err)
		}
	})
}

func TestCharge(t *testing.T) {
	for _, tt := range []struct {
		name string
		used map[string]Tokens
		in   int
		usd  float64
		free bool // of a known price
	}{
		{"cached input is cheaper", map[string]Tokens{"anthropic/claude-sonnet-4-5": {In: 1_000_000, CacheRead: 400_000, CacheWrite: 100_000, Out: 100_000}}, 1_000_000, 500_000*3/1e6 + .4*.30 + .1*3.75 + 1.5, true},
		{"two models", map[string]Tokens{"openai/gpt-4.1": {In: 1_000_000}, "ollama/qwen3": {In: 5}}, 1_000_005, 2, true},
		{"one price unknown", map[string]Tokens{"openai/gpt-4.1": {In: 1}, "openrouter/x": {In: 5}}, 6, 0, false},
		{"a cache larger than the input", map[string]Tokens{"gpt-4.1": {In: 1_000_000, CacheRead: 1 << 40}}, 1_000_000, .5, true},
	} {
		var e Entry
		e.Charge(tt.used)
		if (e.CostUSD != nil) != tt.free || e.CostUSD != nil && math.Abs(*e.CostUSD-tt.usd) > 1e-9 || *e.TokensIn != tt.in {
			t.Errorf("%s: %v for %d", tt.name, e.CostUSD, *e.TokensIn)
		}
	}
	zero := 0.0
	e := Entry{CostUSD: &zero}
	if e.Charge(nil); e.CostUSD == nil || e.TokensIn != nil {
		t.Error("a call without models was charged")
	}
}
