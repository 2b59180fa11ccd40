package eval_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/evaltest"
)

// mini is a suite of numbers: a case is worth what its line says.
type mini struct {
	nums   []float64
	closed bool

	mu   sync.Mutex
	ran  []string
	stop func(id string) error // before a case; nil for never
	add  float64
}

func (m *mini) suite() eval.Suite {
	return eval.Suite{
		Name: "mini", Title: "numbers", Files: []string{"mini/numbers.jsonl.gz"}, Licence: "CC0", Measures: "nothing",
		Bars: []eval.Bar{{Metric: "worth", AtLeast: 0.5, Known: "by hand .5"}, {Metric: "cost", AtMost: 0.1}, {Metric: "seldom", AtLeast: 1}},
		Open: func(_ context.Context, env eval.Env) (eval.Session, error) {
			var err error
			m.nums, err = eval.Rows[float64](env.Data, "mini/numbers")
			return m, err
		},
	}
}

func (m *mini) Cases() []string {
	var ids []string
	for i := range m.nums {
		ids = append(ids, "n"+strconv.Itoa(i))
	}
	return ids
}

func (m *mini) Run(ctx context.Context, id string) (eval.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stop != nil {
		if err := m.stop(id); err != nil {
			return eval.Row{}, err
		}
	}
	m.ran = append(m.ran, id)
	i, err := strconv.Atoi(id[1:])
	usd := 0.25
	eval.Charge(ctx, eval.Spent{Tokens: 3, USD: &usd})
	eval.Charge(ctx, eval.Spent{Tokens: 4, USD: &usd})
	return eval.Row{Group: "g" + strconv.Itoa(i%2), Values: map[string]float64{"worth": m.nums[i] + m.add, "cost": 1 - m.nums[i]}}, err
}

func (m *mini) Score(rows []eval.Row) []eval.Metric {
	top := 0.0
	for _, r := range rows {
		top = max(top, r.Values["worth"])
	}
	return []eval.Metric{eval.Mean("worth", rows), eval.Mean("cost", rows), {Name: "top", Value: top, N: len(rows)}}
}

func (m *mini) Close() error { m.closed = true; return nil }

// numbers is the data of so many cases.
func numbers(t *testing.T, n int) evaltest.Data {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var rows []any
	for range n {
		rows = append(rows, math.Round(rng.Float64()*1000)/1000)
	}
	return evaltest.Data{"mini/numbers.jsonl.gz": evaltest.Lines(t, rows...)}
}

func options(journal string) eval.Options {
	return eval.Options{Settings: eval.Settings{Mind: "m/1", Seed: 5}, Parallel: 3, Journal: journal, Version: "v", Build: "b", Now: time.Now}
}

func encoded(t *testing.T, r *eval.Report) []byte {
	t.Helper()
	if r.Took == nil || r.Took.WallSec < 0 {
		t.Errorf("took %+v", r.Took)
	}
	timeless := *r
	timeless.Took = nil
	b, err := timeless.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRunTwiceGivesTheSameBytes(t *testing.T) {
	data := numbers(t, 40)
	var reports [][]byte
	for _, parallel := range []int{1, 7} {
		m := &mini{}
		o := options("")
		o.Parallel = parallel
		var seen []int
		o.Progress = func(done, total int) {
			if total != 40 {
				t.Errorf("%d cases in all", total)
			}
			seen = append(seen, done)
		}
		r, err := eval.Run(t.Context(), m.suite(), eval.Env{Data: data.Folder()}, o)
		if err != nil {
			t.Fatal(err)
		}
		if !m.closed || !slices.IsSorted(seen) || seen[len(seen)-1] != 40 {
			t.Errorf("closed %v, progress %v", m.closed, seen)
		}
		reports = append(reports, encoded(t, r))
		back, err := eval.DecodeReport(reports[0])
		if err != nil || len(back.Rows) != 40 || back.Tokens != 280 || back.USD == nil || *back.USD != 20 {
			t.Errorf("read back: %v, %+v", err, back)
		}
		worth, _ := back.Metric("worth")
		bar := back.Bar("worth")
		if worth.N != 40 || bar.Reached == nil || *bar.Reached != (worth.Value >= 0.5) || bar.Known != "by hand .5" {
			t.Errorf("%+v against %+v", worth, bar)
		}
		if len(back.Bars) != 2 || len(back.Below()) == 0 || back.Below()[0].Metric != "cost" && back.Below()[0].Metric != "worth" {
			t.Errorf("bars %+v, below %+v", back.Bars, back.Below())
		}
	}
	if diff := cmp.Diff(string(reports[0]), string(reports[1])); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
}

// A run that was broken off goes on with what it has, whatever a crash left of the
// last line, and ends with the report of a whole run.
func TestResume(t *testing.T) {
	data := numbers(t, 30)
	whole, err := eval.Run(t.Context(), (&mini{}).suite(), eval.Env{Data: data.Folder()}, options(""))
	if err != nil {
		t.Fatal(err)
	}
	for name, harm := range map[string]func([]byte) []byte{
		"as it was": func(b []byte) []byte { return b },
		"torn":      func(b []byte) []byte { return b[:len(b)-7] },
		"empty":     func([]byte) []byte { return nil },
		"garbage":   func([]byte) []byte { return []byte("x\ny") },
		"one digit of a row": func(b []byte) []byte {
			i := bytes.LastIndex(b, []byte(`"worth":`)) + len(`"worth":0.`)
			out := slices.Clone(b)
			out[i] = '0' + ('9' - out[i])
			return out
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "deep", "rows")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m := &mini{}
			m.stop = func(string) error {
				if len(m.ran) == 11 {
					cancel()
					return ctx.Err()
				}
				return nil
			}
			_, err := eval.Run(ctx, m.suite(), eval.Env{Data: data.Folder()}, options(path))
			if marchwarden.CodeOf(err) != marchwarden.CodeCanceled || marchwarden.HintOf(err) == "" || !strings.Contains(err.Error(), "11 of 30") {
				t.Fatalf("broken off: %v (%s)", err, marchwarden.HintOf(err))
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, harm(before), 0o600); err != nil {
				t.Fatal(err)
			}
			again := &mini{}
			r, err := eval.Run(t.Context(), again.suite(), eval.Env{Data: data.Folder()}, options(path))
			if err != nil {
				t.Fatal(err)
			}
			lost := map[string]int{"as it was": 0, "torn": 1, "empty": 11, "garbage": 11, "one digit of a row": 1}[name]
			if len(again.ran) != 19+lost || r.Took.Resumed != 11-lost {
				t.Errorf("%d cases were run again, %d were kept", len(again.ran), r.Took.Resumed)
			}
			if diff := cmp.Diff(string(encoded(t, whole)), string(encoded(t, r))); diff != "" {
				t.Errorf("the report is another:\n%s", diff)
			}
			if err := errors.Join(eval.Forget(path), eval.Forget(path)); err != nil {
				t.Error(err)
			}
		})
	}
}

// What the rows of another run are worth is nothing, and so are those of one that was
// not to be gone on with.
func TestJournalOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows")
	data := numbers(t, 6)
	run := func(change func(*eval.Options), data evaltest.Data) int {
		t.Helper()
		o := options(path)
		change(&o)
		m := &mini{}
		if _, err := eval.Run(t.Context(), m.suite(), eval.Env{Data: data.Folder()}, o); err != nil {
			t.Fatal(err)
		}
		return len(m.ran)
	}
	same := func(*eval.Options) {}
	if n := run(same, data); n != 6 {
		t.Errorf("%d cases at first", n)
	}
	for name, c := range map[string]struct {
		change func(*eval.Options)
		data   evaltest.Data
		want   int
	}{
		"the same":      {same, data, 0},
		"parallel":      {func(o *eval.Options) { o.Parallel = 1 }, data, 0},
		"another mind":  {func(o *eval.Options) { o.Mind = "n/1" }, data, 6},
		"another depth": {func(o *eval.Options) { o.Depth = "deep" }, data, 6},
		"another build": {func(o *eval.Options) { o.Build = "c" }, data, 6},
		"another seed":  {func(o *eval.Options) { o.Seed = 6 }, data, 6},
		"other data":    {same, numbers(t, 7), 7},
		"fresh":         {func(o *eval.Options) { o.Fresh = true }, data, 6},
	} {
		t.Run(name, func(t *testing.T) {
			run(same, data)
			if n := run(c.change, c.data); n != c.want {
				t.Errorf("%d cases were run, want %d", n, c.want)
			}
		})
	}
}

func TestRunFails(t *testing.T) {
	data := numbers(t, 5)
	broken := errors.New("it broke")
	for name, c := range map[string]struct {
		change func(*mini, *eval.Suite)
		code   marchwarden.Code
		says   string
	}{
		"a case":       {func(m *mini, _ *eval.Suite) { m.stop = func(string) error { return broken } }, marchwarden.CodeInternal, "it broke"},
		"a panic":      {func(m *mini, _ *eval.Suite) { m.stop = func(string) error { panic("no") } }, marchwarden.CodeInternal, "a bug in this program"},
		"no number":    {func(m *mini, _ *eval.Suite) { m.add = math.NaN() }, marchwarden.CodeInternal, "worth is not a number"},
		"missing data": {func(_ *mini, s *eval.Suite) { s.Files = []string{"mini/none.jsonl.gz"} }, marchwarden.CodeNotFound, "mini/none.jsonl.gz is not in testdata"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mini{}
			s := m.suite()
			c.change(m, &s)
			_, err := eval.Run(t.Context(), s, eval.Env{Data: data.Folder()}, options(""))
			if marchwarden.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A journal that somebody writes is not written by another.
func TestJournalIsHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows")
	data := numbers(t, 3)
	m := &mini{}
	m.stop = func(string) error {
		_, err := eval.Run(t.Context(), (&mini{}).suite(), eval.Env{Data: data.Folder()}, options(path))
		if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || !strings.Contains(err.Error(), "another run") {
			t.Errorf("beside another: %v", err)
		}
		return nil
	}
	if _, err := eval.Run(t.Context(), m.suite(), eval.Env{Data: data.Folder()}, options(path)); err != nil {
		t.Fatal(err)
	}
}

func TestSample(t *testing.T) {
	var ids []string
	for i := range 100 {
		ids = append(ids, fmt.Sprintf("%02d", i))
	}
	if diff := cmp.Diff([]string{"10", "44", "72", "79"}, eval.Sample(ids, 4, 1)); diff != "" {
		t.Errorf("the sample has changed, and so has every golden number:\n%s", diff)
	}
	rapid.Check(t, func(t *rapid.T) {
		limit, seed := rapid.IntRange(0, 150).Draw(t, "limit"), rapid.Uint64().Draw(t, "seed")
		got := eval.Sample(ids, limit, seed)
		want := limit
		if limit == 0 || limit > 100 {
			want = 100
		}
		if len(got) != want || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != want {
			t.Fatalf("%d of 100: %v", limit, got)
		}
		for i, id := range got { // spread evenly
			n, _ := strconv.Atoi(id)
			if n < i*100/want || n >= (i+1)*100/want {
				t.Fatalf("%s is not in stretch %d of %d", id, i, want)
			}
		}
	})
}

func TestCompare(t *testing.T) {
	data := numbers(t, 200)
	run := func(add float64, noisy bool) *eval.Report {
		t.Helper()
		m := &mini{add: add}
		r, err := eval.Run(t.Context(), m.suite(), eval.Env{Data: data.Folder()}, options(""))
		if err != nil {
			t.Fatal(err)
		}
		if noisy {
			rng := rand.New(rand.NewPCG(3, 4))
			for i := range r.Rows {
				r.Rows[i].Values["worth"] += rng.NormFloat64() * 0.2
				r.Rows[i].Values["cost"] += 0.05
			}
		}
		return r
	}
	verdicts := func(a, b *eval.Report, score func([]eval.Row) []eval.Metric) map[string]eval.Verdict {
		t.Helper()
		list, err := eval.Compare(a, b, score, 1)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]eval.Verdict{}
		for _, c := range list {
			out[c.Metric] = c.Verdict
			if c.Verdict == eval.Better && (c.P > 0.05 || c.Low > c.Difference || c.High < c.Difference) {
				t.Errorf("%+v", c)
			}
		}
		return out
	}
	base := run(0, false)
	for _, c := range []struct {
		name string
		b    *eval.Report
		want map[string]eval.Verdict
	}{
		{"itself", run(0, false), map[string]eval.Verdict{"worth": eval.Noise, "cost": eval.Noise, "top": eval.Untold}},
		{"a planted gain", run(0.02, false), map[string]eval.Verdict{"worth": eval.Better, "cost": eval.Noise, "top": eval.Untold}},
		{"a planted loss", run(-0.02, false), map[string]eval.Verdict{"worth": eval.Worse, "cost": eval.Noise, "top": eval.Untold}},
		{"noise, and a higher cost", run(0, true), map[string]eval.Verdict{"worth": eval.Noise, "cost": eval.Worse, "top": eval.Untold}},
	} {
		if diff := cmp.Diff(c.want, verdicts(base, c.b, nil)); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
	// A metric that is no mean is told by scoring drawn cases anew.
	for want, add := range map[eval.Verdict]float64{eval.Noise: 0, eval.Better: 0.02, eval.Worse: -0.02} {
		if got := verdicts(base, run(add, false), (&mini{}).Score)["top"]; got != want {
			t.Errorf("the top %+.2f is %s, want %s", add, got, want)
		}
	}
	seldom := func(rows []eval.Row) []eval.Metric { // of one case only
		for _, r := range rows {
			if r.ID == "n0" && rows[0].ID == "n0" {
				return []eval.Metric{{Name: "top", Value: 1, N: 1}}
			}
		}
		return nil
	}
	if got := verdicts(base, base, seldom)["top"]; got != eval.Untold {
		t.Errorf("a metric that most samples lack is %s", got)
	}
	other := *base
	other.Suite = "maxi"
	changed := *base
	changed.Data = []eval.File{{Name: "mini/numbers.jsonl.gz", SHA256: "00"}}
	apart := *base
	apart.Rows = []eval.Row{{ID: "z"}}
	for _, bad := range []*eval.Report{&other, &changed, &apart} {
		if _, err := eval.Compare(base, bad, nil, 1); marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
			t.Errorf("compared: %v", err)
		}
	}
}

func TestDecodeReport(t *testing.T) {
	for _, text := range []string{"", "{}", "[]", `{"format":99,"suite":"x"}`, `{"format":1}`} {
		if _, err := eval.DecodeReport([]byte(text)); marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestData(t *testing.T) {
	data := evaltest.Data{
		"a/rows.jsonl.gz":  evaltest.Lines(t, map[string]int{"n": 1}, `{"n":2}`),
		"a/bad.jsonl.gz":   evaltest.Lines(t, `{"n":1}`, `{"n":`),
		"a/none.jsonl.gz":  evaltest.Lines(t),
		"a/plain.jsonl.gz": []byte(`{"n":1}`),
		"a/files.tar.gz":   evaltest.Tar(t, "one.txt", "first", "two.md", "second"),
	}.Folder()
	type row struct{ N int }
	rows, err := eval.Rows[row](data, "a/rows")
	if diff := cmp.Diff([]row{{1}, {2}}, rows); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for name, code := range map[string]marchwarden.Code{"a/bad": marchwarden.CodeInvalid, "a/none": marchwarden.CodeInvalid, "a/plain": marchwarden.CodeInvalid, "a/no": marchwarden.CodeNotFound} {
		if _, err := eval.Rows[row](data, name); marchwarden.CodeOf(err) != code || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	all, err := eval.Tar(data, "a/files.tar.gz", nil)
	if err != nil || len(all) != 2 || string(all[1].Data) != "second" {
		t.Errorf("%v %v", all, err)
	}
	some, err := eval.Tar(data, "a/files.tar.gz", func(name string) bool { return strings.HasSuffix(name, ".txt") })
	if err != nil || len(some) != 1 || some[0].Name != "one.txt" {
		t.Errorf("%v %v", some, err)
	}
	if _, err := eval.Tar(data, "a/files.tar.gz", func(string) bool { return false }); marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
		t.Error(err)
	}
	if !data.Has("a/files.tar.gz") || data.Has("a") || data.Has("b") || (eval.Data{}).Has("a") {
		t.Error("what is there")
	}
	ids, err := data.Identify([]string{"a/plain.jsonl.gz"})
	if err != nil || len(ids) != 1 || ids[0].Bytes != 7 || !strings.HasPrefix(ids[0].SHA256, "2bfd14f4") {
		t.Errorf("%+v %v", ids, err)
	}
}
