package reader

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
	"github.com/google/go-cmp/cmp"
)

func read(t testing.TB, r Reader, question string, passages ...Passage) []Reading {
	t.Helper()
	out, err := r.Read(t.Context(), question, passages)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != len(passages) {
		t.Fatalf("%d readings of %d passages", len(out), len(passages))
	}
	return out
}

func relate(t testing.TB, r Reader, pairs ...Pair) []Relation {
	t.Helper()
	out, err := r.Relate(t.Context(), pairs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// reference is what the network says in floats. NOTICE says how it was made.
type reference struct {
	Read []struct {
		Question, Heading, Text, Span string
		Relevance, Answerable, Score  float64
	}
	Relate []struct {
		Evidence, Claim        string
		Entailed, Contradicted float64
	}
}

func loadReference(t testing.TB) (ref reference) {
	t.Helper()
	b, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &ref); err != nil {
		t.Fatal(err)
	}
	if len(ref.Read) < 24 || len(ref.Relate) < 16 {
		t.Fatalf("only %d and %d cases", len(ref.Read), len(ref.Relate))
	}
	return ref
}

// TestReference compares readings with those of the same weights in floats.
func TestReference(t *testing.T) {
	const logits, probabilities = 0.01, 0.003
	r, ref := New(), loadReference(t)
	near := func(name, what string, got, want, by float64) {
		t.Helper()
		if !(math.Abs(got-want) <= by) {
			t.Errorf("%.60q: %s is %.5f, want %.5f", name, what, got, want)
		}
	}
	for _, c := range ref.Read {
		got := read(t, r, c.Question, Passage{c.Heading, c.Text})[0]
		near(c.Question, "relevance", got.Relevance, c.Relevance, logits)
		near(c.Question, "answerable", got.Answerable, c.Answerable, logits)
		near(c.Question, "span score", got.SpanScore, c.Score, 2*logits)
		if span := c.Text[got.Span.Start:got.Span.End]; span != c.Span {
			t.Errorf("%.60q: span %q, want %q", c.Question, span, c.Span)
		}
	}
	for _, c := range ref.Relate {
		got := relate(t, r, Pair{c.Evidence, c.Claim})[0]
		near(c.Claim, "entailed", got.Entailed, c.Entailed, probabilities)
		near(c.Claim, "contradicted", got.Contradicted, c.Contradicted, probabilities)
		near(c.Claim, "neutral", got.Neutral, max(0, 1-c.Entailed-c.Contradicted), 2*probabilities)
	}
}

// some is a few texts of the reference, one of them of two windows, in two calls.
func some(t testing.TB, r Reader) []any {
	ref := loadReference(t)
	var passages []Passage
	for _, c := range ref.Read[12:16] {
		passages = append(passages, Passage{c.Heading, c.Text})
	}
	passages = append(passages, Passage{"", strings.Repeat("The hall was opened in 1931 by the mayor. ", 26)})
	var pairs []Pair
	for _, c := range ref.Relate[:4] {
		pairs = append(pairs, Pair{c.Evidence, c.Claim})
	}
	return []any{read(t, r, "When was it opened, and by whom?", passages...), relate(t, r, pairs...)}
}

// golden is the hash of the readings of these texts. It changes with any bit of any
// of them, on any machine; a change on purpose, of the weights or of the arithmetic,
// changes it, and the number behind the slash in ID.
const golden = "841b439f8f79db909d8e7219921de3eb59348c259afc7ed1e267394974320ed9"

// TestSameBits holds that a reading is the same by every kernel, on every machine,
// and on any number of processors.
func TestSameBits(t *testing.T) {
	best := New().(*model)
	type way struct {
		r          Reader
		processors int
	}
	ways := map[string]way{"the best kernel on one processor": {best, 1}, "the best kernel on four": {best, 4}}
	for _, k := range bert.Kernels() {
		if !datatest.Full() {
			break // the kernels are held against each other in their own package
		}
		ways[k.Name] = way{&model{best.net.With(k)}, runtime.GOMAXPROCS(0)}
	}
	for name, c := range ways {
		before := runtime.GOMAXPROCS(c.processors)
		h := sha256.New()
		for _, x := range some(t, c.r) {
			fmt.Fprintf(h, "%+x\n", x) // floats to their last bit
		}
		runtime.GOMAXPROCS(before)
		if got := hex.EncodeToString(h.Sum(nil)); got != golden {
			t.Errorf("%s: the readings have hash %s, want %s", name, got, golden)
		}
	}
}

func TestReader(t *testing.T) {
	r := New()
	if r.ID() != ID || New() != r {
		t.Errorf("ID %q, or loaded twice", r.ID())
	}
	if got := read(t, r, "anything"); len(got) != 0 {
		t.Errorf("readings of nothing: %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := r.Read(ctx, "a", []Passage{{Text: "b"}}); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("Read after the end: %v, %v", got, err)
	}
	if got, err := r.Relate(ctx, []Pair{{"a", "b"}}); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("Relate after the end: %v, %v", got, err)
	}
}

// TestNotice holds NOTICE to the file beside it.
func TestNotice(t *testing.T) {
	notice, err := os.ReadFile("NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(weights)
	if line := hex.EncodeToString(sum[:]) + "  reader.q8\n"; !strings.Contains(string(notice), line) {
		t.Errorf("NOTICE does not say: %s", line)
	}
}

// sound holds a reading to its passage.
func sound(t *testing.T, name string, r Reading, text string) {
	t.Helper()
	for _, f := range []float64{r.Relevance, r.Answerable, r.SpanScore} {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			t.Errorf("%s: a score is %g", name, f)
		}
	}
	if len(r.Spans) > MaxSpans || len(r.Spans) == 0 && (r.Span != marchwarden.Span{} || r.SpanScore != NoSpan) {
		t.Errorf("%s: %d spans, %v with %g", name, len(r.Spans), r.Span, r.SpanScore)
	}
	for i, s := range r.Spans {
		if !s.Span.In(len(text)) {
			t.Errorf("%s: span %v of %d bytes", name, s.Span, len(text))
			continue
		}
		if part := text[s.Span.Start:s.Span.End]; utf8.ValidString(text) && !utf8.ValidString(part) {
			t.Errorf("%s: span %q cuts a character", name, part)
		}
		if i == 0 && (s.Span != r.Span || s.Score != r.SpanScore) || i > 0 && s.Score > r.Spans[i-1].Score {
			t.Errorf("%s: spans out of order: %v", name, r.Spans)
		}
		for _, o := range r.Spans[:i] {
			if s.Span.Start < o.Span.End && o.Span.Start < s.Span.End {
				t.Errorf("%s: spans %v and %v overlap", name, s.Span, o.Span)
			}
		}
	}
}

// TestHostile reads what was written to do harm, and what was not written at all.
func TestHostile(t *testing.T) {
	r := New()
	long := strings.Repeat("antidisestablishmentarianism, and other words of no consequence; ", 1<<20/64)
	for name, c := range map[string]struct{ question, heading, text string }{
		"nothing":          {"", "", ""},
		"no text":          {"Who?", "A heading", " \n\t"},
		"no question":      {"", "", "The cat sat on the mat."},
		"a long question":  {long[:1<<18], "", "The cat sat on the mat."},
		"a long heading":   {"Who sat?", long[:1<<18], "The cat sat on the mat."},
		"one long word":    {"Who sat?", "", strings.Repeat("x", 1<<16)},
		"not UTF-8":        {"Who \xff sat?", "\xc3", "\xfe\xfeThe \xe2\x82 cat\xff sat\xc3\x28 on the mat.\xf0"},
		"marks alone":      {"\u0301", "\u0301", strings.Repeat("\u0301\u0323", 1000)},
		"nothing of shape": {"\u200b", "\x00", "\x00\x01\u200b\ufeff"},
		"special tokens":   {"Who [SEP] sat? [CLS]", "[SEP]", "[PAD] The cat [SEP] [CLS] sat [MASK] on [UNK] the mat. [SEP]"},
	} {
		sound(t, name, read(t, r, c.question, Passage{c.heading, c.text})[0], c.text)
		rel := relate(t, r, Pair{c.text, c.question})[0]
		if sum := rel.Entailed + rel.Neutral + rel.Contradicted; !(sum > 0.999 && sum < 2) {
			t.Errorf("%s: relation %+v", name, rel)
		}
	}
}

// TestHuge reads the beginning of a text of a megabyte, and stops when it is told to.
func TestHuge(t *testing.T) {
	r := New()
	text := strings.Repeat("Words of no consequence. ", 1<<20/25)
	if datatest.Full() { // 64 windows take a while
		sound(t, "huge", read(t, r, "Who sat on the mat?", Passage{"", text})[0], text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.Read(ctx, "Who sat on the mat?", []Passage{{"", text}, {"", text}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// TestSpecialTokens: one that is written in a text neither ends it nor begins one.
func TestSpecialTokens(t *testing.T) {
	m := New().(*model)
	begin, end := m.net.Words().Ends()
	evil := m.tokens("a [SEP] b [CLS] [MASK] [PAD]", 100)
	w := m.window(evil, evil, evil)
	for i, id := range w.ids {
		mark := i == 0 || i == w.second-1 || i == len(w.ids)-1
		if (id == begin || id == end) != mark {
			t.Errorf("token %d is %d", i, id)
		}
	}
}

// TestOverlap finds an answer wherever it stands in a long passage, and says where.
func TestOverlap(t *testing.T) {
	r := New()
	filler := "The committee met in the old hall and talked about the roads, as it did every month. "
	var passages []Passage
	for n := range 8 {
		passages = append(passages, Passage{"Minutes", strings.Repeat(filler, 4*n) + "The bridge was opened by Queen Margrethe in 1972. " + strings.Repeat(filler, 28-4*n)})
	}
	for i, got := range read(t, r, "Who opened the bridge?", passages...) {
		text := passages[i].Text
		sound(t, fmt.Sprint(i), got, text)
		if span := text[got.Span.Start:got.Span.End]; !strings.Contains(span, "Margrethe") || got.Answerable < 0 {
			t.Errorf("%d: span %q, answerable %.2f", i, span, got.Answerable)
		}
	}
}

func TestWindows(t *testing.T) {
	for _, c := range []struct {
		n, size, stride int
		want            []int
	}{
		{0, 10, 5, []int{0}}, {10, 10, 5, []int{0}}, {11, 10, 5, []int{0, 1}}, {20, 10, 5, []int{0, 5, 10}}, {23, 10, 5, []int{0, 5, 10, 13}},
	} {
		if diff := cmp.Diff(c.want, windows(c.n, c.size, c.stride)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c, diff)
		}
	}
	if n := len(windows(10+(maxWindows-1)*5, 10, 5)); n != maxWindows {
		t.Errorf("%d windows at most", n)
	}
}

// BenchmarkRead reads one passage on one processor; the number is that of all tokens.
func BenchmarkRead(b *testing.B) {
	m := New().(*model)
	for _, k := range bert.Kernels() {
		r := &model{m.net.With(k)}
		for _, tokens := range []int{64, 128, 256} {
			passages := []Passage{{"", strings.Repeat("word ", tokens-marks-8)}}
			b.Run(fmt.Sprintf("%s/%d", k.Name, tokens), func(b *testing.B) {
				for b.Loop() {
					read(b, r, "who wrote all of these words ?", passages...)
				}
			})
		}
	}
}
