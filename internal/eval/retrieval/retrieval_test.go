package retrieval

import (
	"math"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/evaltest"
	"github.com/google/go-cmp/cmp"
)

func suite(t *testing.T, name string) eval.Suite {
	t.Helper()
	for _, s := range Suites() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no suite %q", name)
	return eval.Suite{}
}

func near(t *testing.T, r *eval.Report, metric string, want float64) {
	t.Helper()
	if got := evaltest.Value(t, r, metric); math.Abs(got-want) > 1e-9 {
		t.Errorf("%s is %v, want %v", metric, got, want)
	}
}

func TestSciFact(t *testing.T) {
	data := evaltest.Data{
		"claims/scifact-corpus.jsonl.gz": evaltest.Lines(t,
			`{"doc_id": 7, "title": "Tomatoes in the cold.", "abstract": ["Tomato plants die in frost.", "They like warmth."]}`,
			`{"doc_id": 8, "title": "Apples", "abstract": ["Apples keep all winter in a cellar."]}`,
			`{"doc_id": 9, "title": "Pears", "abstract": ["Pears keep for a month."]}`,
		),
		"claims/scifact-train.jsonl.gz": evaltest.Lines(t,
			`{"id": 1, "claim": "Frost kills tomato plants.", "cited_doc_ids": [7], "evidence": {"7": [{"label": "SUPPORT", "sentences": [0]}]}}`,
			`{"id": 2, "claim": "Apples keep in a cellar.", "cited_doc_ids": [9], "evidence": {}}`,
		),
	}
	r := evaltest.Run(t, suite(t, "scifact"), evaltest.Env(t, data.Folder(), nil), 0)
	// The first claim has its abstract first, the second has it second.
	second := 1 / math.Log2(3)
	near(t, r, "nDCG@10", (1+second)/2)
	near(t, r, "MRR@10", .75)
	near(t, r, "recall@100", 1)
	near(t, r, "nDCG@10, evidence alone", 1)
	near(t, r, "BM25 nDCG@10", (1+second)/2)
	near(t, r, "BM25 MAP", .75)
}

func TestJudged(t *testing.T) {
	data := evaltest.Data{
		"retrieval/cacm-docs.jsonl.gz": evaltest.Lines(t,
			map[string]string{"id": "CACM-0001", "text": "\nSorting by exchange\n\nA method of sorting.\n\n1\t5\t1\n"},
			map[string]string{"id": "CACM-0012", "text": "Sorting on tapes\n"},
			map[string]string{"id": "CACM-0200", "text": "Compilers\n"},
		),
		"retrieval/cacm-queries.jsonl.gz": evaltest.Lines(t,
			`{"id": "1", "text": "sorting", "qrels": {"CACM-1": 1, "CACM-12": 1, "CACM-200": 0}}`,
			`{"id": "2", "text": "nothing is known about this", "qrels": {}}`,
			`{"id": "3", "text": "weather", "qrels": {"CACM-200": 1}}`,
		),
	}
	r := evaltest.Run(t, suite(t, "cacm"), evaltest.Env(t, data.Folder(), nil), 0)
	for _, metric := range []string{"MAP", "BM25 MAP", "nDCG@10", "recall@100"} {
		near(t, r, metric, .5) // both found for the first request, none for the third
	}
	if n := len(r.Rows); n != 2 {
		t.Errorf("%d requests were run, want the 2 with judgements", n)
	}

	data["retrieval/cacm-queries.jsonl.gz"] = evaltest.Lines(t, `{"id": "1", "text": "sorting", "qrels": {"CACM-3": 1}}`)
	_, err := suite(t, "cacm").Open(t.Context(), evaltest.Env(t, data.Folder(), nil))
	if err == nil || !strings.Contains(err.Error(), "CACM-3") {
		t.Errorf("error %v, want one that names the unknown document", err)
	}
	delete(data, "retrieval/cacm-docs.jsonl.gz")
	_, err = suite(t, "cacm").Open(t.Context(), evaltest.Env(t, data.Folder(), nil))
	if marchwarden.CodeOf(err) != marchwarden.CodeNotFound {
		t.Errorf("error %v, want that the file is missing", err)
	}
}

func TestMeasure(t *testing.T) {
	got := map[string]float64{}
	measure(got, "", []string{"x", "a", "y", "b"}, map[string]float64{"a": 1, "b": 1, "c": 1})
	ideal := 1 + 1/math.Log2(3) + 1/math.Log2(4)
	want := map[string]float64{
		"nDCG@10":    (1/math.Log2(3) + 1/math.Log2(5)) / ideal,
		"MAP":        (1./2 + 2./4) / 3,
		"recall@100": 2. / 3,
		"MRR@10":     .5,
	}
	close := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
	if d := cmp.Diff(want, got, close); d != "" {
		t.Errorf("measures (-want +got):\n%s", d)
	}
}

func TestUnpadded(t *testing.T) {
	for id, want := range map[string]string{"CACM-0115": "CACM-115", "CACM-115": "CACM-115", "12": "12", "012": "12", "x": "x"} {
		if got := unpadded(id); got != want {
			t.Errorf("unpadded(%q) = %q, want %q", id, got, want)
		}
	}
}
